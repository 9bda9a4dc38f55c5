"""Which priors a fit has a use for: others are refused, not ignored, and not reported."""

import dataclasses

from irtjax.errors import InputError
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors, beta_text
from irtjax.model.spec import ModelSpec

__all__ = ["check_priors", "only_used", "used_priors"]

# Of the distributions of items that `marginal-items` estimates.
_OF_DISTRIBUTIONS = {
    "normal": ("mean_weight", "covariance_weight", "covariance_floor", "trace_penalty"),
    "empirical": ("share_weight", "covariance_floor"),
}
_OF_DISTRIBUTIONS["mixture"] = (*_OF_DISTRIBUTIONS["normal"], "share_weight")
_OF_ITEMS = ("slope", "intercept")
_FAMILY = {"guessing": "3pl or 4pl", "infeasibility": "4pl"}
_FLAT = (1.0, 1.0)


def used_priors(integrated: str, spec: ModelSpec, settings: FitSettings) -> tuple[str, ...]:
    """Names of the priors that have an effect, as the fields of `Priors`.

    Args:
        integrated: the side that is integrated out: `items`, `models` or `none`.
        spec: family and dims.
        settings: of the fit.
    """
    names: tuple[str, ...] = _OF_ITEMS
    if integrated == "items":
        names = _OF_DISTRIBUTIONS[settings.item_distribution]
        names += () if settings.group is None else ("effect_variance",)
    return names + tuple(name for name in _FAMILY if spec.has_prior(name))


def check_priors(
    priors: Priors, integrated: str, spec: ModelSpec, settings: FitSettings, estimator: str
) -> None:
    """Refuse priors that were changed and have no effect; arguments as `used_priors`.

    Raises:
        InputError: one line names the prior, and what has no use for it.
    """
    used = used_priors(integrated, spec, settings)
    default = Priors()
    for field in dataclasses.fields(Priors):
        name, value = field.name, getattr(priors, field.name)
        is_absent = name in _FAMILY and value == _FLAT  # off, and nothing to switch off
        if name not in used and value != getattr(default, name) and not is_absent:
            written = beta_text(value) if name in _FAMILY else value
            raise InputError(f"prior {name}={written} has no use: {_reason(name, spec, estimator)}")


def only_used(priors: Priors, integrated: str, spec: ModelSpec, settings: FitSettings) -> Priors:
    """The priors with the defaults in place of those that have no effect."""
    return Priors(**{n: getattr(priors, n) for n in used_priors(integrated, spec, settings)})


def _reason(name: str, spec: ModelSpec, estimator: str) -> str:
    if name in _FAMILY:
        return f"family {spec.family} has no {name}; drop it, or use family {_FAMILY[name]}"
    if name in _OF_ITEMS:
        return (
            f"{estimator} integrates the items out under distributions that it estimates; drop it "
            "(and --no-priors), or use estimator marginal-models or joint-map"
        )
    if name == "effect_variance":
        return "only marginal-items with a group has effects; drop it, or name a group"
    return (
        f"it is of item distributions that {estimator} does not have with these settings; drop it"
    )
