"""The items to select from, in the order of their ids, with the prior of what they measure.

Everything works in the order of the ids: equal gains then go to the first id, whatever order the
responses were in.
"""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.tables import ITEM_FLAGS, slope_and_intercept
from irtjax.model.curves import ItemCurves, item_curves

__all__ = ["Bank", "bank_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """Items in the order of their ids, and what is known before any of them is answered.

    Attributes:
        curves: the items; their posterior means.
        item_ids: in ascending order.
        position: of each item in the fit.
        prior: covariance of the abilities, dims x dims.
        group: the benchmark of each item, where models have effects on them; None without.
        effect_variance: of these effects.
        excluded: how many items were left out, by flag.
    """

    curves: ItemCurves
    item_ids: np.ndarray
    position: np.ndarray
    prior: np.ndarray
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
    flags = fit.item_parameters()["flags"].astype(str)
    is_kept, excluded = _kept(flags.tolist(), exclude_flags)
    position = np.flatnonzero(is_kept)
    ids = np.asarray(fit.data.item_ids, str)[position]
    position = position[np.argsort(ids, kind="stable")]
    slope, intercept, _ = slope_and_intercept(fit)
    fitted, group, variance = fit.parameters, None, 0.0
    if fitted.effect is not None and fitted.effect_variance is not None:
        group, variance = fit.groups()[0][position], float(fitted.effect_variance)
    return Bank(
        item_curves(
            jnp.asarray(slope[position]),
            jnp.asarray(intercept[position]),
            jnp.asarray(np.asarray(fitted.guessing)[position]),
            jnp.asarray(np.asarray(fitted.feasibility)[position]),
        ),
        np.asarray(fit.data.item_ids, str)[position],
        position,
        np.asarray(fitted.population_covariance[0], np.float64),
        group,
        variance,
        excluded,
    )


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
