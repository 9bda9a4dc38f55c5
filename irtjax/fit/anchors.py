"""Items that a fit takes from another one: their parameters are fixed, and so is the scale."""

import dataclasses
import hashlib
import os
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from irtjax.checks import counted, named_ids, shown
from irtjax.data.blocks import BlockLayout
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.item_pass import ItemPosteriors
from irtjax.fit.item_step import ItemParameters
from irtjax.fit.items_state import HeldItems
from irtjax.fit.packed import pair_index
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.fit.rotation import SCALE
from irtjax.fit.seen import seen_answers
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = ["AnchorRun", "Anchors", "anchor_run", "make_anchors", "warn_of_seen_models"]

# Asymptotes of a group are one where they differ by no more than their rounding.
_SAME = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Anchors:
    """Parameters of the items that another fit knows, in the order of the new data.

    Attributes:
        is_anchor: which items are fixed: known by id, and answered in both.
        mean: slopes and intercepts; 0 where not fixed, as everything below.
        covariance: of both.
        guessing: lower asymptotes.
        feasibility: upper asymptotes.
        guessing_se: their errors.
        feasibility_se: their errors.
        n_known: items known by id, answered or not.
        correlations: of the abilities of the other fit, whose scale this is.
        source: its folder, empty where it is a `FitResult`.
    """

    is_anchor: Bool[np.ndarray, " items"]
    mean: Float[np.ndarray, "items coordinates"]
    covariance: Float[np.ndarray, "items coordinates coordinates"]
    guessing: Float[np.ndarray, " items"]
    feasibility: Float[np.ndarray, " items"]
    guessing_se: Float[np.ndarray, " items"]
    feasibility_se: Float[np.ndarray, " items"]
    n_known: int
    correlations: Float[np.ndarray, "dims dims"]
    source: str = ""

    @property
    def n_anchors(self) -> int:
        """How many items are fixed."""
        return int(np.count_nonzero(self.is_anchor))

    def digest(self) -> str:
        """Of what is fixed, for checkpoints."""
        digest = hashlib.sha256()
        for array in (self.is_anchor, self.mean, self.covariance, self.guessing, self.feasibility):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def held_items(
        self, layout: BlockLayout, group: np.ndarray, spec: ModelSpec, n_components: int
    ) -> HeldItems:
        """The anchors as `marginal-items` has its items.

        Args:
            layout: of the blocks.
            group: code of each item's group of asymptotes (and distribution), 0, 1, ..
            spec: family and dims.
            n_components: of the item distribution.

        Raises:
            InputError: anchors of one group with asymptotes of their own.
        """
        dtype = jnp.zeros(()).dtype
        rows, columns = pair_index(self.mean.shape[1])

        def blocked(values: np.ndarray) -> Any:
            each = np.repeat(values[:, None], n_components, axis=1).astype(dtype)
            return np.moveaxis(layout.to_blocks(each), 1, -1)

        share: Any = np.moveaxis(
            layout.to_blocks(np.full((len(group), n_components), 1 / n_components, dtype)), 1, -1
        )
        items = ItemPosteriors(
            blocked(self.mean), blocked(self.covariance[:, rows, columns]), share
        )
        scale: Any = layout.to_blocks(self._scale().astype(dtype))
        has_anchor: Any = np.bincount(group[self.is_anchor], minlength=int(group.max()) + 1) > 0
        asymptotes = self._of_groups(group, has_anchor) if spec.has_asymptotes else None
        return HeldItems(items, scale, asymptotes, has_anchor)

    def held_parameters(self, spec: ModelSpec) -> HeldParameters:
        """The anchors as `marginal-models` has its items."""
        dtype = jnp.zeros(()).dtype
        size = spec.dims + 1 + spec.has_guessing + spec.has_feasibility
        covariance = np.zeros((len(self.mean), size, size))
        covariance[:, : spec.dims + 1, : spec.dims + 1] = self.covariance
        asymptotes = None
        if spec.has_asymptotes:
            # Of items that are not fixed, any that are valid.
            empty = 0.1 if spec.has_guessing else 0.0, 0.9 if spec.has_feasibility else 1.0
            guessing = np.where(self.is_anchor, self.guessing, empty[0])
            feasibility = np.where(self.is_anchor, self.feasibility, empty[1])
            asymptotes = Asymptotes.from_natural(
                jnp.asarray(guessing, dtype), jnp.asarray(feasibility, dtype)
            )
        items = ItemParameters(
            jnp.asarray(self.mean[:, :-1], dtype), jnp.asarray(self.mean[:, -1], dtype), asymptotes
        )
        return HeldParameters(items, jnp.asarray(covariance, dtype), jnp.asarray(self.is_anchor))

    def within(self, fitted: FittedParameters) -> FittedParameters:
        """Estimates with exactly the other fit's values and errors where items are fixed."""
        rows, columns = pair_index(self.mean.shape[1])
        packed = self.covariance[:, rows, columns]
        values = {
            "mean": self.mean[:, None],
            "covariance": packed[:, None],
            "guessing": self.guessing,
            "feasibility": self.feasibility,
            "guessing_se": self.guessing_se,
            "feasibility_se": self.feasibility_se,
        }
        if fitted.item_spread is not None:
            values["item_spread"] = np.zeros_like(packed)  # the covariance has it
        changed: dict[str, Any] = {}
        for name, value in values.items():
            own = np.asarray(getattr(fitted, name))
            is_anchor = self.is_anchor.reshape(-1, *[1] * (own.ndim - 1))
            changed[name] = np.where(is_anchor, value, own).astype(own.dtype)
        return dataclasses.replace(fitted, **changed)

    def described(self, n_items: int) -> dict[str, Any]:
        """What a report says of the anchors."""
        return {
            "run": self.source,
            "n_anchors": self.n_anchors,
            "n_known_items": self.n_known,
            "n_new_items": n_items - self.n_known,
            "sha256": self.digest(),
        }

    def _scale(self) -> Float[np.ndarray, " items"]:
        """Of the logit of `E[P]`, 0 of items that are no anchors.

        Averaged over a logit of variance v, a curve is near one whose logit is
        `(1 + v / 1.702^2)^-.5` times as large; v is that of the other fit's models.
        """
        slope = self.covariance[:, :-1, :-1]
        variance = np.einsum("jkl,kl->j", slope, self.correlations) + self.covariance[:, -1, -1]
        return self.is_anchor / np.sqrt(1 + variance / SCALE**2)

    def _of_groups(self, group: np.ndarray, has_anchor: np.ndarray) -> Asymptotes:
        """Asymptotes of each group: those of its anchors, which must agree."""
        found = []
        for name, values, empty in (
            ("guessing", self.guessing, 0.1),
            ("feasibility", self.feasibility, 0.9),
        ):
            of_groups = np.full(len(has_anchor), empty)
            for g in np.flatnonzero(has_anchor):
                own = values[self.is_anchor & (group == g)]
                if np.ptp(own) > _SAME:
                    raise InputError(
                        f"the anchors have a {name} of their own each ({own.min():.3f} to "
                        f"{own.max():.3f}), but marginal-items has one for all items of a group; "
                        "use estimator marginal-models"
                    )
                of_groups[g] = own[0]
            found.append(jnp.asarray(of_groups, jnp.zeros(()).dtype))
        return Asymptotes.from_natural(*found)


@dataclasses.dataclass(frozen=True, eq=False)
class AnchorRun:
    """A fit whose items are anchors, and the folder it was read from (empty without)."""

    fit: FitResult
    source: str = ""

    @classmethod
    def load(cls, folder: Any) -> "AnchorRun":
        """Read a run's folder.

        Raises:
            InputError: as of `FitResult.load`.
        """
        return cls(FitResult.load(folder), str(folder))


def make_anchors(
    data: ResponseMatrix, spec: ModelSpec, given: Any, group: str | None = None
) -> Anchors:
    """The items of new data that another fit knows.

    Args:
        data: the new responses.
        spec: family and dims of the new fit.
        given: a `FitResult`, an `AnchorRun`, or the folder of a run.
        group: of the new fit's benchmark effects; a warning where the other fit has some and the
            new one has not.

    Raises:
        InputError: no fit, one of another family or number of dims, or none of its items answered.
    """
    found = anchor_run(given)
    run = found.fit
    if run.status == "diverged":
        raise InputError("the run of the anchors diverged: its items are no anchors; fit it again")
    if run.spec != spec:
        raise InputError(
            f"the anchors are of a {run.spec.family} with {counted(run.spec.dims, 'dim')}, the new "
            f"fit is a {spec.family} with {counted(spec.dims, 'dim')}; use family "
            f"{run.spec.family} and dims {run.spec.dims}"
        )
    if run.group is not None and group is None:
        warnings.warn(
            f"the run of the anchors has effects of {run.group!r} and this fit has none: what its "
            f"models are better or worse at goes into their abilities; pass group {run.group} "
            "(--group) to have them here too",
            IrtjaxWarning,
            stacklevel=2,
        )
    at = pd.Index(run.data.item_ids).get_indexer(data.item_ids)
    is_known = (at >= 0) & (run.data.totals("items")[0][at] > 0)
    is_anchor = is_known & (data.totals("items")[0] > 0)
    slope, intercept, covariance = slope_and_intercept(run)
    mean = np.concatenate([slope, intercept[:, None]], axis=1)
    is_finite = np.isfinite(mean).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
    is_anchor &= is_finite[at]
    _check_any(data, run, is_known, is_anchor)
    asymptotes = {
        name: _at(np.asarray(getattr(run.parameters, name), np.float64)[at], is_anchor)
        for name in ("guessing", "feasibility", "guessing_se", "feasibility_se")
    }
    return Anchors(
        is_anchor,
        _at(mean[at], is_anchor),
        _at(covariance[at], is_anchor),
        **asymptotes,
        n_known=int(is_known.sum()),
        correlations=run.ability_correlations(),
        source=found.source,
    )


def anchor_run(given: Any) -> AnchorRun:
    """The run that a user gives anchors as.

    Raises:
        InputError: neither a fit nor a folder of one.
    """
    if isinstance(given, AnchorRun):
        return given
    if isinstance(given, FitResult):
        return AnchorRun(given)
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"anchors must be a FitResult or the folder of one, not {shown(given)}")
    return AnchorRun.load(given)


def _check_any(
    data: ResponseMatrix, run: FitResult, is_known: np.ndarray, is_anchor: np.ndarray
) -> None:
    if not is_known.any():
        raise InputError(
            f"none of the {counted(data.n_items, 'item')} is one of the run's "
            f"{run.data.n_items:,} by id (first: {data.item_ids[0]!r} and "
            f"{run.data.item_ids[0]!r}), so nothing ties the scales; use the same item ids"
        )
    if not is_anchor.any():
        raise InputError(
            f"no anchor was answered: the run knows {counted(int(is_known.sum()), 'item')} of the "
            "new data, and none of them has a response there"
        )


def warn_of_seen_models(data: ResponseMatrix, run: FitResult) -> None:
    """Warn of models whose answers made the anchors what they are.

    Args:
        data: the new responses.
        run: of the anchors.
    """
    if not np.isin(data.model_ids, run.data.model_ids).any():
        return
    at = pd.Index(run.data.item_ids).get_indexer(data.item_ids)
    cells = data.cells()
    cells = cells.taken(at[cells.item_index] >= 0)
    theirs = dataclasses.replace(cells, item_index=at[cells.item_index])
    seen = seen_answers(run, data.model_ids, theirs)
    known = data.model_ids[seen.is_fitted | seen.is_counted_twice]
    if len(known):
        warnings.warn(
            f"{counted(len(known), 'model')} with answers that the run of the anchors was fitted "
            f"to: {named_ids(known)}; the anchors know these answers, which count twice and put "
            "the abilities too far from the mean; leave these models out, or fold new answers "
            "into the run with irtjax update",
            IrtjaxWarning,
            stacklevel=3,
        )


def _at(values: np.ndarray, is_anchor: np.ndarray) -> np.ndarray:
    return np.where(is_anchor.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)
