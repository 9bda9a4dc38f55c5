"""The items to select from, in the order of their ids, with the prior of what they measure.

Everything works in the order of the ids: equal gains then go to the first id, whatever order the
responses were in.

Items tell about abilities what their mean curve tells, over what their parameters may be: a slope
that is only estimated high, by few models, promises less than one that is known.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.checks import check_several
from irtjax.errors import InputError
from irtjax.fit.packed import mixture_moments, quadratic
from irtjax.fit.result import FitResult
from irtjax.fit.tables import ITEM_FLAGS
from irtjax.model.curves import ItemCurves, item_curves, padded_curves
from irtjax.model.information import cell_information, logit_slope
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import response_probabilities
from irtjax.score.bank import item_posteriors

__all__ = ["Bank", "bank_of", "padded", "told_at"]

_N_NODES = 7


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """Items in the order of their ids, and what is known before any of them is answered.

    Attributes:
        curves: the items; their posterior means.
        item_ids: in ascending order.
        position: of each item in the fit.
        prior: covariance of the abilities, dims x dims.
        spread: covariance of each item's slopes and intercept (packed lower triangles); None where
            they are taken as known.
        group: the benchmark of each item, where models have effects on them; None without.
        effect_variance: of these effects.
        excluded: how many items were left out, by flag.
    """

    curves: ItemCurves
    item_ids: np.ndarray
    position: np.ndarray
    prior: np.ndarray
    spread: Float[Array, "items pairs"] | None = None
    group: np.ndarray | None = None
    effect_variance: float = 0.0
    excluded: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def n_groups(self) -> int:
        """Number of benchmark effects."""
        return 0 if self.group is None else int(self.group.max(initial=-1)) + 1

    def prior_covariance(self) -> np.ndarray:
        """Of abilities and effects together: dims + groups, squared, float64."""
        dims = self.curves.dims
        whole = np.eye(dims + self.n_groups) * self.effect_variance
        whole[:dims, :dims] = self.prior
        return whole


def bank_of(fit: FitResult, exclude_flags: Sequence[str] = ()) -> Bank:
    """The items of a fit, without those that have one of some flags.

    Raises:
        InputError: a flag that no item has ever, or no item is left.
    """
    exclude_flags = check_several("exclude_flags", exclude_flags)
    flags = fit.item_parameters()["flags"].astype(str)
    is_kept, excluded = _kept(flags.tolist(), exclude_flags)
    position = np.flatnonzero(is_kept)
    ids = np.asarray(fit.data.item_ids, str)[position]
    position = position[np.argsort(ids, kind="stable")]
    mean, spread = (part[position] for part in mixture_moments(*item_posteriors(fit)))
    fitted, group, variance = fit.parameters, None, 0.0
    if fitted.effect is not None and fitted.effect_variance is not None:
        group, variance = fit.groups()[0][position], float(fitted.effect_variance)
    return Bank(
        item_curves(
            jnp.asarray(mean[:, :-1]),
            jnp.asarray(mean[:, -1]),
            jnp.asarray(np.asarray(fitted.guessing)[position]),
            jnp.asarray(np.asarray(fitted.feasibility)[position]),
        ),
        np.asarray(fit.data.item_ids, str)[position],
        position,
        np.asarray(fitted.population_covariance[0], np.float64),
        jnp.asarray(spread, float),
        group,
        variance,
        excluded,
    )


def padded(curves: ItemCurves) -> ItemCurves:
    """With flat items to one of eight numbers in every doubling: few programs are compiled."""
    step = 1 << max((curves.n_items - 1).bit_length() - 3, 4)
    return padded_curves(curves, -(-curves.n_items // step) * step)


def told_at(bank: Bank, ability: np.ndarray) -> Float[Array, "points items"]:
    """What an answer to each item tells about its logit at each ability (`g`), per squared logit.

    Of the mean curve, whose slope is `E[dP/dz]` and whose variance is `E[P] E[1 - P]`.

    Args:
        bank: the items.
        ability: points x dims.

    Returns:
        Of the items `padded`.
    """
    curves = padded(bank.curves)
    points = jnp.asarray(ability, curves.slope.dtype)
    if bank.spread is None:
        return _told_of_known(curves, points)
    more = curves.n_items - bank.curves.n_items
    return _told(curves, jnp.asarray(np.pad(bank.spread, ((0, more), (0, 0)))), points)


_told_of_known = jax.jit(cell_information)


@jax.jit
def _told(
    curves: ItemCurves, spread: Float[Array, "items pairs"], ability: Float[Array, "points dims"]
) -> Float[Array, "points items"]:
    design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
    variance = jnp.maximum(quadratic(design) @ spread.T, 0)

    def at(logit: Float[Array, "points items"]) -> tuple[Array, Array, Array]:
        rise = logit_slope(logit, curves.guessing, curves.feasibility)
        return rise, *response_probabilities(logit, curves.asymptotes)

    rise, p, not_p = normal_expectation(at, curves.logit(ability), variance, _N_NODES)
    tiny = jnp.finfo(p.dtype).tiny  # far away both the rise and one of the answers vanish
    return rise / jnp.maximum(p, tiny) * (rise / jnp.maximum(not_p, tiny))


def _kept(flags: list[str], exclude: Sequence[str]) -> tuple[np.ndarray, dict[str, int]]:
    unknown = [flag for flag in exclude if flag not in ITEM_FLAGS]
    if unknown:
        raise InputError(f"no flag is called {unknown[0]!r}; flags: {', '.join(ITEM_FLAGS)}")
    sets = [set(each.split(";")) for each in flags]
    counts = {flag: sum(flag in each for each in sets) for flag in exclude}
    is_kept = np.array([not each & set(exclude) for each in sets], bool)
    if not is_kept.any():
        raise InputError(
            f"every item has one of the flags {', '.join(exclude)}; exclude fewer of them"
        )
    return is_kept, {flag: count for flag, count in counts.items() if count}
