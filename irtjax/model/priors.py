"""Prior settings of the estimators, each with its default and the reason for it."""

import dataclasses
import math
import re
from typing import Any

from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec

__all__ = ["LogNormal", "Normal", "Priors", "parse_prior"]


@dataclasses.dataclass(frozen=True)
class Normal:
    """Normal prior of a slope or an intercept, in logits; an infinite `sd` switches it off."""

    mean: float = 0.0
    sd: float = math.inf

    def __post_init__(self) -> None:
        _check_location(self)

    def __str__(self) -> str:
        return "off" if self.sd == math.inf else f"normal({self.mean:g}, {self.sd:g})"


@dataclasses.dataclass(frozen=True)
class LogNormal:
    """Normal prior of the logarithm of a slope's size; the slope's sign is that of its start."""

    mean: float = 0.0
    sd: float = 0.5

    def __post_init__(self) -> None:
        _check_location(self)

    def __str__(self) -> str:
        return f"lognormal({self.mean:g}, {self.sd:g})"


def _check_location(prior: "Normal | LogNormal") -> None:
    if not math.isfinite(prior.mean) or not prior.sd > 0:
        raise InputError(
            f"prior {type(prior).__name__.lower()} needs a finite mean and an sd above 0, not "
            f"({prior.mean!r}, {prior.sd!r})"
        )


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
        for name in (
            "mean_weight",
            "covariance_weight",
            "share_weight",
            "covariance_floor",
            "trace_penalty",
        ):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"prior {name} must be at least 0, not {getattr(self, name)!r}")
        if not 0 < self.effect_variance < math.inf:
            raise InputError(f"prior effect_variance must be above 0, not {self.effect_variance!r}")
        for name in ("guessing", "infeasibility"):
            if min(getattr(self, name)) < 1:
                raise InputError(
                    f"prior {name} is Beta(a, b) with a, b >= 1, not {getattr(self, name)}"
                )


_NAMED = {"slope": ("normal", "lognormal"), "intercept": ("normal",)}
_NAMED |= {"guessing": ("beta",), "infeasibility": ("beta",)}
_WRITTEN = re.compile(r"(?P<name>\w+)\s*[(:]\s*(?P<first>[^,]+),\s*(?P<second>[^)]+)\)?")


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
        first, second = float(found["first"]), float(found["second"])
    except ValueError:
        raise InputError(f"prior {text!r} needs two numbers; write {known}") from None
    if is_beta:
        return _with(priors, name, (first, second))
    return _with(
        priors, name, (LogNormal if found["name"] == "lognormal" else Normal)(first, second)
    )


def _with(priors: Priors, name: str, value: Any) -> Priors:
    return dataclasses.replace(priors, **{name: value})
