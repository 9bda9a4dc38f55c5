"""What the responses say about each item: the curves of all groups of items, met by their items."""

import dataclasses
from collections.abc import Callable, Iterator

import jax.numpy as jnp
import numpy as np

from irtjax.audit.composite import Composite, composite_abilities
from irtjax.audit.item_curves import Curves, item_curves
from irtjax.audit.item_mixture import (
    N_FITTED,
    ROWS,
    Counts,
    Evidence,
    Mixture,
    evidence_of,
    falling_shares,
    fitted_mixture,
)
from irtjax.data.answers import KEY, NO_CELL
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult

__all__ = [
    "ItemEvidence",
    "curves_of",
    "item_evidence",
    "judged_items",
    "response_counts",
    "seen_cells",
]


@dataclasses.dataclass(frozen=True)
class ItemEvidence:
    """The shares of the curves, and each item's evidence in the order of the data.

    Attributes:
        composite: abilities and groups.
        mixture: shares of the curves.
        items: evidence of each.
        falling: share of falling items in the benchmark of each item.
    """

    composite: Composite
    mixture: Mixture
    items: Evidence
    falling: np.ndarray


def item_evidence(fit: FitResult) -> ItemEvidence:
    """Estimate how often items have which curve, and look at every item."""
    composite = composite_abilities(fit)
    n_items, n_groups = fit.data.n_items, composite.ability.shape[1]
    every = -(-n_items // N_FITTED)

    def samples() -> Iterator[tuple[Iterator[Counts], Curves]]:
        for g in range(n_groups):
            chosen = np.flatnonzero(composite.group == g)
            chosen = chosen[chosen % every == 0]
            if len(chosen):
                yield response_counts(fit.data, chosen), curves_of(composite, g)

    mixture = fitted_mixture(samples())
    return judged_items(composite, mixture, lambda items: response_counts(fit.data, items))


def judged_items(
    composite: Composite, mixture: Mixture, counts_of: Callable[[np.ndarray], Iterator[Counts]]
) -> ItemEvidence:
    """The evidence of all items, group by group.

    Args:
        composite: abilities and the group of each item.
        mixture: shares of the curves.
        counts_of: right and wrong answers to the items of a group, a chunk at a time.
    """
    parts, order = [], []
    for g in np.unique(composite.group).tolist():
        chosen = np.flatnonzero(composite.group == g)
        parts.append(evidence_of(counts_of(chosen), curves_of(composite, g), mixture))
        order.append(chosen)
    back = np.argsort(np.concatenate(order))
    fields = [field.name for field in dataclasses.fields(Evidence)]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}
    items = Evidence(**{name: each[back] for name, each in joined.items()})
    falling = falling_shares(items, mixture, composite.benchmark)
    return ItemEvidence(composite, mixture, items, falling)


def curves_of(composite: Composite, group: int) -> Curves:
    """The curves at the abilities that hold for a group of items."""
    return item_curves(
        jnp.asarray(composite.ability[:, group], float),
        jnp.asarray(composite.error[:, group], float),
    )


def response_counts(data: ResponseMatrix, items: np.ndarray) -> Iterator[Counts]:
    """Right and wrong answers to some items (ascending), `ROWS` items at a time."""
    for start in range(0, len(items), ROWS):
        yield _counts(data, items[start : start + ROWS])


def seen_cells(data: ResponseMatrix, items: np.ndarray) -> np.ndarray:
    """Int16 models x items: `KEY` where there is a response, else `NO_CELL`."""
    parts = [each.right + each.wrong > 0 for each in response_counts(data, items)]
    return np.where(np.concatenate(parts).T, KEY, NO_CELL).astype(np.int16)


def _counts(data: ResponseMatrix, items: np.ndarray) -> Counts:
    if data.dense is not None and data.dense_weight is None:
        response = data.dense[:, items].T.astype(np.float32)
        is_seen = response >= 0
        return Counts(np.where(is_seen, response, 0), np.where(is_seen, 1 - response, 0))
    cells = data.cells()
    first = np.searchsorted(cells.item_index, items, "left")
    last = np.searchsorted(cells.item_index, items, "right")
    size = last - first
    row = np.repeat(np.arange(len(items)), size)
    cell = np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
    found = np.zeros((2, len(items), data.n_models), np.float32)
    weight, response = cells.weight[cell], cells.response[cell]
    found[0, row, cells.model_index[cell]] = weight * response
    found[1, row, cells.model_index[cell]] = weight * (1 - response)
    return Counts(*found)
