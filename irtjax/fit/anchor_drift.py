"""Which anchors drifted: fixed items whose new responses contradict their parameters.

A score test of each anchor's slope and intercept, in one pass over its responses: with `s_i` the
score of model i's response, averaged over the posterior of its ability,

    `S = sum s_i`,  `T = S' ((I + sum s_i s_i') / 2 + I V I)^-1 S`,

I the expected information of the responses, V the posterior covariance that the other run has. By I
alone a single unlikely answer far out on an item of little information would pass for drift; with
the squared scores T is at most twice the number of responses. T is over its median's excess, as
in `irtjax.fit.drift`, so that what all anchors differ by is no drift of some.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import chi2

from irtjax.checks import counted, named_ids
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.anchors import Anchors
from irtjax.fit.drift import Drift, threshold_of
from irtjax.fit.result import FittedParameters
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import Asymptotes, cell_derivatives
from irtjax.model.spec import ModelSpec

__all__ = ["anchor_drift", "described_drift"]

# Of clean fits at most this share may name an anchor.
_FALSE_WARNINGS = 0.02
# Every call has this shape, so that one compilation serves any number of cells.
_CELLS_PER_CALL = 65_536
_N_NODES = 7


@dataclasses.dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over each anchor's responses: scores, information, squared scores."""

    score: Float[np.ndarray, "anchors coordinates"]
    information: Float[np.ndarray, "anchors coordinates coordinates"]
    squared: Float[np.ndarray, "anchors coordinates coordinates"]


def anchor_drift(
    data: ResponseMatrix,
    spec: ModelSpec,
    parameters: FittedParameters,
    anchors: Anchors,
    group: str | None,
) -> Drift:
    """Test each anchor's parameters by the responses of the new fit.

    Args:
        data: the new responses.
        spec: family and dims.
        parameters: the new fit's, anchors included.
        anchors: the items that were fixed.
        group: item column of the fit's effects, None without.

    Returns:
        The statistic of each anchor, in the order of the items. A common slope is not tested.
    """
    first = spec.dims if spec.has_common_slope else 0
    sums = _sums(data, parameters, anchors, group)
    score, covariance = (
        sums.score[:, first:],
        anchors.covariance[anchors.is_anchor][:, first:, first:],
    )
    information = sums.information[:, first:, first:]
    size = score.shape[1]
    noise = (information + sums.squared[:, first:, first:]) / 2
    noise = noise + information @ covariance @ information + 1e-9 * np.eye(size)
    squared = np.einsum("ja,ja->j", score, np.linalg.solve(noise, score[..., None])[..., 0])
    inflation = max(1.0, float(np.median(squared) / chi2.ppf(0.5, size)))
    rare = float(chi2.isf(_FALSE_WARNINGS / len(squared), size))
    least = threshold_of(spec.dims, is_common=spec.has_common_slope)
    return Drift(squared / inflation, inflation, max(rare, least))


def described_drift(drift: Drift, item_ids: np.ndarray) -> tuple[dict[str, Any], list[str]]:
    """What a report says of it, and a warning where an anchor drifted.

    Args:
        drift: of the anchors.
        item_ids: of the anchors.
    """
    ids = item_ids[drift.is_drifted]
    worst_first = ids[np.argsort(-drift.statistic[drift.is_drifted], kind="stable")]
    told = {
        "n_drifted": len(ids),
        "drifted": [str(each) for each in ids],
        "drift_threshold": drift.threshold,
        "drift_inflation": drift.inflation,
    }
    if not len(ids):
        return told, []
    return told, [
        f"{len(ids):,} of {counted(len(item_ids), 'anchor')} drifted: {named_ids(worst_first)}; "
        "the new responses contradict the parameters that they are held at (flagged "
        "drifted_anchor), and the new models' abilities rest on them; give these items new ids in "
        "the new data, so that they are estimated anew, or fit without anchors and use irtjax "
        "link, which leaves drifted items out"
    ]


def _sums(
    data: ResponseMatrix, parameters: FittedParameters, anchors: Anchors, group: str | None
) -> _Sums:
    cells = data.cells()
    cells = cells.taken(anchors.is_anchor[cells.item_index])
    place = np.cumsum(anchors.is_anchor) - 1  # of an item among the anchors
    n, size = anchors.n_anchors, anchors.mean.shape[1]
    total = _Sums(np.zeros((n, size)), np.zeros((n, size, size)), np.zeros((n, size, size)))
    codes = None if group is None else data.groups(group)[0]
    for start in range(0, len(cells), _CELLS_PER_CALL):
        part = cells.taken(slice(start, start + _CELLS_PER_CALL))
        score, information = _of_cells(part, parameters, anchors, codes)
        squared = score[:, :, None] * score[:, None, :]
        item, where = np.unique(place[part.item_index], return_index=True)  # sorted by item
        for sums, each in (
            (total.score, part.weight[:, None] * score),
            (total.information, part.weight[:, None, None] * information),
            (total.squared, part.weight[:, None, None] * squared),
        ):
            sums[item] += np.add.reduceat(each, where, axis=0)
    return total


def _of_cells(
    cells: Cells, parameters: FittedParameters, anchors: Anchors, codes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Score and information of each response in the slope and intercept of its item, float64.

    Given the logit, an ability is normal around a line in it: `theta = mean + along z`, z the
    standardised logit.
    """
    model, item = cells.model_index, cells.item_index
    mean = np.asarray(parameters.ability, np.float64)[model]
    spread = np.asarray(parameters.ability_covariance, np.float64)[model]
    slope, intercept = anchors.mean[item, :-1], anchors.mean[item, -1]
    logit = np.einsum("ck,ck->c", slope, mean) + intercept
    if parameters.effect is not None and codes is not None:
        logit = logit + np.asarray(parameters.effect, np.float64)[model, codes[item]]
    along = np.einsum("ckl,cl->ck", spread, slope)
    variance = np.maximum(np.einsum("ck,ck->c", slope, along), 0)
    along /= np.sqrt(np.maximum(variance, 1e-12))[:, None]
    n = len(cells)
    given = (logit, variance, cells.response, anchors.guessing[item], anchors.feasibility[item])
    padded: Any = [np.pad(each, (0, _CELLS_PER_CALL - n), mode="edge") for each in given]
    has_asymptotes = bool(np.any(anchors.guessing > 0) or np.any(anchors.feasibility < 1))
    dtype = jnp.zeros(()).dtype
    moments = _moments(*(jnp.asarray(each, dtype) for each in padded), has_asymptotes)
    s0, s1, i0, i1, i2 = (np.asarray(each, np.float64)[:n] for each in moments)
    mean, along = (
        np.pad(each, ((0, 0), (0, 1)), constant_values=one) for each, one in ((mean, 1), (along, 0))
    )
    rest = np.pad(spread, ((0, 0), (0, 1), (0, 1))) - along[:, :, None] * along[:, None, :]
    cross = mean[:, :, None] * along[:, None, :]
    information = i0[:, None, None] * (mean[:, :, None] * mean[:, None, :] + rest)
    information += i1[:, None, None] * (cross + cross.swapaxes(1, 2))
    information += i2[:, None, None] * along[:, :, None] * along[:, None, :]
    return s0[:, None] * mean + s1[:, None] * along, information


@functools.partial(jax.jit, static_argnums=5)
def _moments(
    logit: Float[Array, " cells"],
    variance: Float[Array, " cells"],
    response: Float[Array, " cells"],
    guessing: Float[Array, " cells"],
    feasibility: Float[Array, " cells"],
    has_asymptotes: bool,
) -> tuple[Float[Array, " cells"], ...]:
    """Means of the score times 1 and z, and of the information times 1, z and z^2."""
    asymptotes = Asymptotes.from_natural(guessing, feasibility) if has_asymptotes else None
    sd = jnp.sqrt(jnp.maximum(variance, 1e-12))

    def at(node: Array) -> tuple[Array, ...]:
        z = (node - logit) / sd
        right, wrong = (
            cell_derivatives(node, jnp.full_like(node, y), asymptotes).first for y in (1.0, 0.0)
        )
        score = response * right + (1 - response) * wrong
        information = -right * wrong  # P r^2 + (1 - P) w^2, where P r + (1 - P) w = 0
        return score, score * z, information, information * z, information * z**2

    return normal_expectation(at, logit, variance, _N_NODES)
