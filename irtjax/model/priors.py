"""Prior settings of the estimators, each with its default and the reason for it."""

import dataclasses
import math
import re
from typing import Any

from irtjax.checks import check_number, shown
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec

__all__ = ["LogNormal", "Normal", "Priors", "beta_numbers", "beta_text", "parse_prior"]


# Logits past which float32 tells no response from its opposite.
_FARTHEST = 100.0
# The same for the logarithm of a slope: slopes from 5e-5 to 2e4.
_FARTHEST_LOG = 10.0
# Precisions of 1e6 leave float32 the digits of the responses' information beside them; a spread
# of 1e6 logits says no more than none.
_SPREAD = (1e-3, 1e6)
# Answers that a Beta prior is worth.
_ANSWERS = (1.0, 1e4)


@dataclasses.dataclass(frozen=True)
class Normal:
    """Normal prior of a slope or an intercept, in logits; an infinite `sd` switches it off.

    Raises:
        InputError: a mean beyond 100 logits, an sd that is not from .001 to 1e6 or infinite.
    """

    mean: float = 0.0
    sd: float = math.inf

    def __post_init__(self) -> None:
        _check_location(self, _FARTHEST)

    def __str__(self) -> str:
        return "off" if self.sd == math.inf else f"normal({self.mean:g}, {self.sd:g})"


@dataclasses.dataclass(frozen=True)
class LogNormal:
    """Normal prior of the logarithm of a slope's size; the slope's sign is that of its start.

    Raises:
        InputError: a mean beyond 10, an sd that is not from .001 to 1e6.
    """

    mean: float = 0.0
    sd: float = 0.5

    def __post_init__(self) -> None:
        _check_location(self, _FARTHEST_LOG)

    def __str__(self) -> str:
        return f"lognormal({self.mean:g}, {self.sd:g})"


def _check_location(prior: "Normal | LogNormal", farthest: float) -> None:
    name = type(prior).__name__.lower()
    off = "NAME=off switches a prior off"
    object.__setattr__(
        prior, "mean", check_number(f"the mean of a {name} prior", prior.mean, -farthest, farthest)
    )
    if not (isinstance(prior, Normal) and prior.sd == math.inf):
        sd = check_number(f"the sd of a {name} prior", prior.sd, *_SPREAD, remedy=off)
        object.__setattr__(prior, "sd", sd)


@dataclasses.dataclass(frozen=True)
class Priors:
    """Hyperparameters of the priors; priors are on by default.

    Without them half of the items at 12 models have unbounded estimates.

    Attributes:
        mean_weight: items' worth of the pooled mean in a benchmark's mean of (slope, intercept).
        covariance_weight: items' worth of the pooled covariance in a benchmark's covariance.
        share_weight: items' worth of the pooled component shares (mixtures only).
        covariance_floor: added to the diagonal of every covariance.
        trace_penalty: penalty per item on the trace of a covariance, in squared logits.
        effect_variance: start of the variance of model x benchmark effects (estimated).
        guessing: Beta(a, b) of guessing.
        infeasibility: Beta(a, b) of 1 - feasibility.
        slope: of each item's slopes where items are estimated, not integrated out. None is
            lognormal(0, .5) for 3PL and 4PL with one dim, else normal(0, 10): so weak that the
            textbooks' estimates stand (LSAT 7: slopes move by less than .002), yet all-right and
            all-wrong items stay finite. `joint-map` has stronger ones, normal(1, 1) in one dim and
            normal(0, 1) in more.
        intercept: of each item's intercept, likewise; None is normal(0, 10), normal(0, 2) in
            `joint-map`.
    """

    mean_weight: float = 1.0
    covariance_weight: float = 10.0
    share_weight: float = 5.0
    covariance_floor: float = 1e-3
    trace_penalty: float = 0.005
    effect_variance: float = 0.25
    guessing: tuple[float, float] = (5.0, 17.0)
    infeasibility: tuple[float, float] = (2.0, 18.0)
    slope: Normal | LogNormal | None = None
    intercept: Normal | None = None

    @classmethod
    def off(cls) -> "Priors":
        """No priors of item parameters: maximum likelihood where items are estimated."""
        flat = (1.0, 1.0)
        return cls(guessing=flat, infeasibility=flat, slope=Normal(), intercept=Normal())

    def of_slopes(self, spec: ModelSpec) -> Normal | LogNormal:
        """The prior of slopes for a family and a number of dims."""
        if self.slope is not None:
            return self.slope
        is_weakly_identified = spec.has_asymptotes and spec.dims == 1
        return LogNormal(0.0, 0.5) if is_weakly_identified else Normal(0.0, 10.0)

    def of_intercepts(self) -> Normal:
        """The prior of intercepts."""
        return Normal(0.0, 10.0) if self.intercept is None else self.intercept

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            checked: Any = check_number(f"prior {name}", getattr(self, name), least, most)
            object.__setattr__(self, name, checked)
        for name in ("guessing", "infeasibility"):
            object.__setattr__(self, name, _checked_beta(name, getattr(self, name)))
        if not isinstance(self.slope, Normal | LogNormal | None):
            raise InputError(
                f"prior slope must be Normal(mean, sd) or LogNormal(mean, sd), not "
                f"{shown(self.slope)}"
            )
        if not isinstance(self.intercept, Normal | None):
            raise InputError(
                f"prior intercept must be Normal(mean, sd), not {shown(self.intercept)}"
            )


# What float32 can add up beside the responses.
_RANGES = {
    "mean_weight": (0.0, 1e6),
    "covariance_weight": (0.0, 1e6),
    "share_weight": (0.0, 1e6),
    "covariance_floor": (0.0, 1e3),
    "trace_penalty": (0.0, 1e3),
    "effect_variance": (1e-6, 1e6),
}


def _checked_beta(name: str, given: Any) -> tuple[float, float]:
    """The two numbers of a Beta prior, as floats."""
    what = f"prior {name}"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"{what} is two numbers (a, b) of Beta(a, b), not {shown(given)}")
    first, second = (
        check_number(f"{what}, Beta(a, b): {letter}", number, *_ANSWERS)
        for letter, number in zip("ab", given, strict=True)
    )
    return first, second


_NAMED = {"slope": ("normal", "lognormal"), "intercept": ("normal",)}
_NAMED |= {"guessing": ("beta",), "infeasibility": ("beta",)}
_WRITTEN = re.compile(r"(?P<name>\w+)\s*\((?P<first>[^,()]+),(?P<second>[^,()]+)\)")


def parse_prior(priors: Priors, text: str) -> Priors:
    """Priors with one changed: `slope=lognormal(0, .5)`, `guessing=beta(5, 17)`, `intercept=off`.

    Raises:
        InputError: an unknown parameter, distribution or number; one line with what is allowed.

    >>> str(parse_prior(Priors(), "slope=normal(1, 0.5)").slope)
    'normal(1, 0.5)'
    """
    name, _, value = (part.strip() for part in text.partition("="))
    if name not in _NAMED:
        raise InputError(f"prior {text!r}: {name!r} has no prior; use one of {', '.join(_NAMED)}")
    is_beta = name in ("guessing", "infeasibility")
    if value == "off":
        return _with(priors, name, (1.0, 1.0) if is_beta else Normal())
    found = _WRITTEN.fullmatch(value)
    known = " or ".join(f"{name}={kind}(A, B)" for kind in _NAMED[name])
    if found is None or found["name"] not in _NAMED[name]:
        raise InputError(f"prior {text!r} is not understood; write {known}, or {name}=off")
    try:
        numbers = float(found["first"]), float(found["second"])
    except ValueError:
        raise InputError(f"prior {text!r} needs two numbers; write {known}") from None
    kinds: dict[str, Any] = {"lognormal": LogNormal, "normal": Normal}
    try:
        return _with(priors, name, numbers if is_beta else kinds[found["name"]](*numbers))
    except InputError as error:
        raise InputError(f"prior {text!r}: {error}") from None


def beta_text(prior: tuple[float, float]) -> str:
    """A Beta prior as `parse_prior` reads it.

    >>> beta_text((5.0, 17.0)), beta_text((1.0, 1.0))
    ('beta(5, 17)', 'off')
    """
    return "off" if prior == (1.0, 1.0) else f"beta({prior[0]:.12g}, {prior[1]:.12g})"


def beta_numbers(text: str) -> tuple[float, float]:
    """The numbers of what `beta_text` wrote."""
    return parse_prior(Priors(), f"guessing={text}").guessing


def _with(priors: Priors, name: str, value: Any) -> Priors:
    return dataclasses.replace(priors, **{name: value})
