"""Items that tell the same twice: correlated residuals (Q3), and identical columns.

Source: Yen (1984), Applied Psychological Measurement 8, 125-145. Q3 of two items is the
correlation of what the fit leaves of their responses.
"""

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept

__all__ = ["Twins", "closest_items", "dense_rows", "identical_items"]

_TILE = 1024  # items a side: one shape, one compilation, and 4 MB of correlations
_SMALLEST_SPREAD = 1e-6
# Items with fewer right (or wrong) responses are left out: two items that one model alone misses
# correlate by 1, and pairs of such items are what chance has most of.
_FEWEST = 4
# Of fewer models, what their abilities' estimates take out of the residuals is not small beside
# what is left, and some pair of a few hundred items always agrees in all.
_FEWEST_MODELS = 20
# Items that agree in all correlate by 1, give or take the rounding of float32: they are ties.
_DECIMALS = 5
# Few items are drawn more than once, until this many are: else nothing is rarer than one of them.
_N_DRAWN, _MOST_SAMPLES = 10_000, 10


@dataclasses.dataclass(frozen=True)
class Twins:
    """The other item that each item is closest to.

    Attributes:
        q3: items, the highest correlation of residuals within the item's group; NaN without any.
        partner: items, which item that is; -1 without any.
        chance: the highest ones of the items in responses drawn from the fit, in no order.
        n_samples: how often all items were drawn.
    """

    q3: np.ndarray
    partner: np.ndarray
    chance: np.ndarray
    n_samples: int


def closest_items(fit: FitResult, group: np.ndarray, rng: np.random.Generator) -> Twins:
    """The highest Q3 of each item within its group, and the same for responses drawn by chance.

    Residuals are freed of what is linear in the abilities. Items with fewer than 20 responses, or
    fewer than four right or four wrong ones, have a Q3 of 0. A missing response counts as one that
    was expected, in the data and in those drawn.

    Args:
        fit: any number of dims, with or without effects.
        group: of each item: only items of one group are compared.
        rng: of the drawn responses.
    """
    data = fit.data
    q3, partner = np.full(data.n_items, np.nan), np.full(data.n_items, -1)
    chance: list[np.ndarray] = []
    n_samples = int(np.clip(_N_DRAWN // data.n_items, 1, _MOST_SAMPLES))
    for g in range(int(group.max()) + 1):
        items = np.flatnonzero(group == g)
        if len(items) < 2:
            continue
        observed, *drawn = _residuals(fit, items, rng, n_samples)
        q3[items], which = _highest(observed)
        partner[items] = items[which]
        chance.extend(_highest(each)[0] for each in drawn)
    return Twins(q3, partner, np.concatenate(chance) if chance else np.zeros(0), n_samples)


def _residuals(
    fit: FitResult, items: np.ndarray, rng: np.random.Generator, n_samples: int
) -> Iterator[np.ndarray]:
    """Standardised residuals of the responses, then of drawn ones, float32 items x models."""
    response = dense_rows(fit.data, items)
    slope, intercept, _ = slope_and_intercept(fit)
    fitted = fit.parameters
    ability = np.asarray(fitted.ability, np.float64)
    logit = slope[items] @ ability.T + intercept[items, None]
    if fitted.effect is not None:
        logit += np.asarray(fitted.effect, np.float64)[:, fit.groups()[0][items]].T
    low, high = (np.asarray(each, np.float64)[items, None] for each in _asymptotes(fit))
    p = low + (high - low) * expit(logit)
    is_seen = response >= 0
    design = np.column_stack([np.ones(len(ability)), ability])
    basis = np.linalg.qr(design)[0]
    yield _standardised(response, p, is_seen, basis)
    for _ in range(n_samples):
        yield _standardised(rng.random(p.shape) < p, p, is_seen, basis)


def _asymptotes(fit: FitResult) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(fit.parameters.guessing), np.asarray(fit.parameters.feasibility)


def _standardised(
    response: np.ndarray, p: np.ndarray, is_seen: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Residuals as rows of length 1, orthogonal to the basis; 0 where too little is left."""
    right, total = np.sum(response, axis=1, where=is_seen), np.sum(is_seen, axis=1)
    is_judged = (np.minimum(right, total - right) >= _FEWEST) & (total >= _FEWEST_MODELS)
    expected = _shared_by_equals(response, p, is_seen)
    residual = np.where(is_seen & is_judged[:, None], response - expected, 0)
    residual -= (residual @ basis) @ basis.T
    length = np.linalg.norm(residual, axis=1, keepdims=True)
    shown = np.where(length > _SMALLEST_SPREAD, residual / np.maximum(length, _SMALLEST_SPREAD), 0)
    return shown.astype(np.float32)


def _shared_by_equals(response: np.ndarray, p: np.ndarray, is_seen: np.ndarray) -> np.ndarray:
    """Probabilities, the mean of them for items with the same responses.

    A fit gives such items the same estimates, which makes their residuals equal: drawn items that
    agree by chance must be as equal, or chance would never be seen to reach a Q3 of 1.
    """
    packed = np.packbits(np.concatenate([(response == 1) & is_seen, is_seen], axis=1), axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    which, size = np.unique(rows, return_inverse=True, return_counts=True)[1:]
    items = np.flatnonzero(size[which] > 1)
    if not len(items):
        return p
    items = items[np.argsort(which[items], kind="stable")]
    starts = np.flatnonzero(np.diff(which[items], prepend=-1))
    total = np.add.reduceat(p[items], starts, axis=0)
    count = np.diff(np.append(starts, len(items)))
    shared = p.copy()
    shared[items] = np.repeat(total / count[:, None], count, axis=0)
    return shared


def dense_rows(data: ResponseMatrix, items: np.ndarray) -> np.ndarray:
    """Responses of some items, float64 items x models, -1 where missing."""
    if data.dense is not None:
        return data.dense[:, items].T.astype(np.float64)
    cells = data.cells()
    place = np.full(data.n_items, -1)
    place[items] = np.arange(len(items))
    chosen = place[cells.item_index] >= 0
    found = np.full((len(items), data.n_models), -1.0)
    found[place[cells.item_index[chosen]], cells.model_index[chosen]] = cells.response[chosen]
    return found


def _highest(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The highest correlation of each row with another one, and with which, tile by tile."""
    n = len(rows)
    n_tiles = -(-n // _TILE)
    padded = np.zeros((n_tiles * _TILE, rows.shape[1]), np.float32)
    padded[:n] = rows
    tiles = [jnp.asarray(each) for each in np.split(padded, n_tiles)]
    best, which = np.full(len(padded), -np.inf), np.zeros(len(padded), np.int64)

    def note(k: int, found: tuple[np.ndarray, np.ndarray], other: int) -> None:
        rows = slice(k * _TILE, (k + 1) * _TILE)
        value, place = np.asarray(found[0]), np.asarray(found[1]) + other * _TILE
        is_better = value > best[rows]
        best[rows] = np.where(is_better, value, best[rows])
        which[rows] = np.where(is_better, place, which[rows])

    for k in range(n_tiles):
        for l in range(k, n_tiles):
            n_right = min(n - l * _TILE, _TILE)
            by_row, by_column = _tile(tiles[k], tiles[l], k == l, n_right)
            note(k, by_row, l)
            if l > k:
                note(l, by_column, k)
    return np.round(best[:n], _DECIMALS), which[:n]


@jax.jit
def _tile(
    left: Float[Array, "items models"],
    right: Float[Array, "items models"],
    is_diagonal: bool,
    n_right: int,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Highest correlations, and where, by row and by column; padding and self left out."""
    correlation = jnp.matmul(left, right.T, precision=jax.lax.Precision.HIGHEST)
    place = jnp.arange(left.shape[0])
    is_out = (is_diagonal & (place[:, None] == place)) | (place >= n_right)
    correlation = jnp.where(is_out, -jnp.inf, correlation)
    return (
        (jnp.max(correlation, axis=1), jnp.argmax(correlation, axis=1)),
        (jnp.max(correlation, axis=0), jnp.argmax(correlation, axis=0)),
    )


def identical_items(data: ResponseMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items that the same models answered, with the same responses, by hashing the columns.

    Returns:
        A number for each item, the same for items with the same column; how many items have it;
        how many items the same models answered. Items without responses are alone.
    """
    cells = data.cells()
    rng = np.random.default_rng(0)
    # Two independent 64-bit sums each: a collision among a million items has chance 1e-26.
    at_model = rng.integers(0, 2**64, (2, data.n_models), np.uint64)
    value = np.unique(cells.response, return_inverse=True)[1]
    at_value = rng.integers(0, 2**64, (2, int(value.max(initial=0)) + 1), np.uint64) | np.uint64(1)
    models = at_model[:, cells.model_index]
    starts = np.searchsorted(cells.item_index, np.arange(data.n_items))
    is_answered = np.diff(np.append(starts, len(cells))) > 0

    def numbered(parts: np.ndarray) -> np.ndarray:
        total = np.zeros((2, data.n_items), np.uint64)
        if is_answered.any():
            total[:, is_answered] = np.add.reduceat(parts, starts[is_answered], axis=1)
        total[0, ~is_answered] = np.arange(np.sum(~is_answered))
        return np.unique(total, axis=1, return_inverse=True)[1].ravel()

    same = numbered(models * at_value[:, value])
    by = numbered(models)
    return same, np.bincount(same)[same], np.bincount(by)[by]
