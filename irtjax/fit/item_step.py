"""Newton steps of items that are estimated, from expected counts at nodes of the abilities.

With the models integrated out, all that the data say about item j is how often it is expected to be
answered right and wrong at each node: `r_jq` and `w_jq`. Its log-likelihood is
`sum_q r_jq log P_jq + w_jq log(1 - P_jq)` (Bock & Aitkin 1981), and the steps are Fisher scoring,
whose information is always positive definite.

Coordinates of an item: slopes (their logarithm under a lognormal prior), intercept, and where the
family has them the asymptotes on the scale of `Asymptotes`.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.fit.packed import (
    pair_index,
    positive_definite_inverse,
    positive_definite_solve,
    products,
    unpack,
    unpack_index,
)
from irtjax.model.priors import LogNormal, Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = [
    "ExpectedCounts",
    "ItemDerivatives",
    "ItemModel",
    "ItemParameters",
    "NodeCurves",
    "climb_items",
    "expected_log_likelihood",
    "has_moving_slope",
    "item_derivatives",
    "log_prior",
    "node_curves",
    "node_probabilities",
    "on_log_scale",
    "pack_items",
    "prior_derivatives",
    "ridged",
    "step_items",
    "unpack_items",
]

# A step may move a coordinate by this much: see the kernel's cap.
_LONGEST_STEP = 2.0
# What rounding may take from an item's log-likelihood, in units of its last digit.
_ROUNDING = 8.0
# Past this many logits a cell's derivatives are 0 in float32.
_FARTHEST_LOGIT = 60.0


@pytree_dataclass
class ItemParameters:
    """Every item's slopes and intercept in logits, and its asymptotes where the family has any."""

    slope: Float[Array, "items dims"]
    intercept: Float[Array, " items"]
    asymptotes: Asymptotes | None


@pytree_dataclass
class ExpectedCounts:
    """Nodes of the abilities, and expected numbers of right and wrong answers at each."""

    node: Float[Array, "nodes dims"]
    right: Float[Array, "items nodes"]
    wrong: Float[Array, "items nodes"]


@pytree_dataclass
class ItemDerivatives:
    """Gradient and Fisher information of every item in its coordinates (information packed)."""

    gradient: Float[Array, "coordinates items"]
    information: Float[Array, "pairs items"]


@pytree_dataclass
class NodeCurves:
    """Probabilities at the nodes, and derivatives of `log P` and `log(1 - P)` by kind.

    Kinds are the logit, then the scales of guessing and feasibility where they are estimated;
    `s` is the sigmoid without asymptotes.
    """

    s: Float[Array, "items nodes"]
    p: Float[Array, "items nodes"]
    not_p: Float[Array, "items nodes"]
    right: tuple[Float[Array, "items nodes"], ...]
    wrong: tuple[Float[Array, "items nodes"], ...]


@dataclasses.dataclass(frozen=True)
class ItemModel:
    """Which coordinates an item has, and their priors (static)."""

    spec: ModelSpec
    priors: Priors

    @property
    def n_coordinates(self) -> int:
        """Slopes, intercept and the asymptotes that are estimated."""
        return self.spec.dims + 1 + self.spec.has_guessing + self.spec.has_feasibility

    @property
    def has_log_slopes(self) -> bool:
        """Whether slopes move on the scale of their logarithm (lognormal prior)."""
        return isinstance(self.priors.of_slopes(self.spec), LogNormal)


@pytree_dataclass
class _Levels:
    """What probabilities are made of: `P = c + known s` and `1 - P = missed + known (1 - s)`."""

    s: Float[Array, "items nodes"]
    not_s: Float[Array, "items nodes"]
    p: Float[Array, "items nodes"]
    not_p: Float[Array, "items nodes"]


def _levels(items: ItemParameters, node: Float[Array, "nodes dims"]) -> _Levels:
    """One exponential a cell: of all that compiles, exponentials and logarithms take longest."""
    logit = items.slope @ node.T + items.intercept[:, None]
    odds = jnp.exp(-jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT))
    s = 1 / (1 + odds)
    not_s = odds * s
    if items.asymptotes is None:
        return _Levels(s, not_s, s, not_s)
    columns = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
    c, not_c = jax.nn.sigmoid(columns.lower), jax.nn.sigmoid(-columns.lower)
    t, not_t = jax.nn.sigmoid(columns.upper), jax.nn.sigmoid(-columns.upper)
    return _Levels(s, not_s, c + not_c * t * s, not_c * not_t + not_c * t * not_s)


def node_probabilities(
    items: ItemParameters, node: Float[Array, "nodes dims"]
) -> tuple[Float[Array, "items nodes"], Float[Array, "items nodes"]]:
    """P and 1 - P of every item at every node, both above 0: logits are capped."""
    levels = _levels(items, node)
    return levels.p, levels.not_p


def node_curves(
    model: ItemModel, items: ItemParameters, node: Float[Array, "nodes dims"]
) -> NodeCurves:
    """Probabilities of every item at every node, and what each kind of answer says there.

    `dP/du = c (1 - c) (1 - t s)` and `dP/dv = (1 - c) t (1 - t) s` with `c = sigmoid(u)`,
    `t = sigmoid(v)` and `s = sigmoid(z)`; `1 - P = (1 - c)(1 - t s)` cancels without a division.
    """
    levels = _levels(items, node)
    s, p, not_p = levels.s, levels.p, levels.not_p
    if items.asymptotes is None:
        return NodeCurves(s, p, not_p, (not_p,), (-p,))
    columns = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
    c, known = jax.nn.sigmoid(columns.lower), jax.nn.sigmoid(-columns.lower)
    t, not_t = jax.nn.sigmoid(columns.upper), jax.nn.sigmoid(-columns.upper)
    known = known * t
    rise = known * s * levels.not_s
    right, wrong = [rise / p], [-rise / not_p]
    if model.spec.has_guessing:
        right.append(c * not_p / p)
        wrong.append(-c * jnp.ones_like(p))
    if model.spec.has_feasibility:
        right.append(known * not_t * s / p)
        wrong.append(-known * not_t * s / not_p)
    return NodeCurves(s, p, not_p, tuple(right), tuple(wrong))


def expected_log_likelihood(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> Float[Array, " items"]:
    """Each item's expected log-likelihood and log-prior: what the steps raise."""
    cells = _cell_values(counts, node_curves(model, items, counts.node))
    return jnp.sum(cells, axis=1) + log_prior(model, items)


def _cell_values(counts: ExpectedCounts, curves: NodeCurves) -> Float[Array, "items nodes"]:
    return counts.right * jnp.log(curves.p) + counts.wrong * jnp.log(curves.not_p)


def climb_items(
    model: ItemModel,
    items: ItemParameters,
    counts: ExpectedCounts,
    n_steps: int,
    is_loading: Float[Array, "items dims"] | None = None,
) -> ItemParameters:
    """Fisher-scoring steps on fixed counts; where an item's step would fall it is taken back.

    Steep items overshoot: without this, two items of TIMSS 2011 that depend on each other went to
    and fro for ever. With a common slope all items go together.
    """

    n = model.n_coordinates

    def once(_: int, carry: tuple) -> tuple:
        proposed, best, length = carry
        here = _evaluated(model, unpack_items(model, items, proposed), counts)
        value, gain = here[n], here[n] - best[n]
        gain = gain + _ROUNDING * jnp.finfo(value.dtype).eps * jnp.abs(value)
        if model.spec.has_common_slope:
            gain = jnp.broadcast_to(jnp.sum(gain), gain.shape)
        is_better = gain >= 0
        best = jnp.where(is_better, here, best)
        length = jnp.where(is_better, jnp.minimum(2 * length, 1), length / 4)
        from_here = unpack_items(model, items, best[:n])
        derivatives = ItemDerivatives(best[n + 1 : 2 * n + 1], best[2 * n + 1 :])
        step = _item_steps(model, from_here, derivatives, is_loading) * length
        return _moved(model, best[:n], step), best, length

    # One evaluation a round, of value and derivatives at once: of what is proposed last, only the
    # value would be needed, but a second kind of round takes as long again to compile. And one
    # matrix of all that is kept or replaced: a choice a leaf is a program a leaf.
    # One value a device where the items are: a plain zero would not be.
    zero = 0 * items.intercept
    n_rows = 2 * n + 1 + n * (n + 1) // 2
    best = jnp.broadcast_to(zero, (n_rows, len(zero))).at[n].set(-jnp.inf)
    start = (pack_items(model, items), best, zero + 0.5)
    best = jax.lax.fori_loop(0, n_steps + 1, once, start)[1]
    return unpack_items(model, items, best[:n])


def _evaluated(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> Float[Array, "rows items"]:
    """Coordinates, value, gradient and packed information, one below the other."""
    value, found = _value_and_derivatives(model, items, counts)
    value = value + log_prior(model, items)
    parts = [pack_items(model, items), value[None], found.gradient, found.information]
    return jnp.concatenate(parts)


def pack_items(model: ItemModel, items: ItemParameters) -> Float[Array, "coordinates items"]:
    """Slopes, intercept and the asymptotes that are estimated, as one matrix."""
    rows = [*items.slope.T, items.intercept]
    if items.asymptotes is not None:
        rows += [items.asymptotes.lower] if model.spec.has_guessing else []
        rows += [items.asymptotes.upper] if model.spec.has_feasibility else []
    return jnp.stack(rows)


def unpack_items(
    model: ItemModel, like: ItemParameters, rows: Float[Array, "coordinates items"]
) -> ItemParameters:
    """The items of a matrix; asymptotes that are not estimated are those of `like`."""
    dims, asymptotes = model.spec.dims, like.asymptotes
    if asymptotes is not None:
        more = iter(rows[dims + 1 :])
        lower = next(more) if model.spec.has_guessing else asymptotes.lower
        upper = next(more) if model.spec.has_feasibility else asymptotes.upper
        asymptotes = Asymptotes(lower, upper)
    return ItemParameters(rows[:dims].T, rows[dims], asymptotes)


def item_derivatives(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> ItemDerivatives:
    """Gradient and Fisher information of each item's expected log-likelihood."""
    return _value_and_derivatives(model, items, counts)[1]


def _value_and_derivatives(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> tuple[Float[Array, " items"], ItemDerivatives]:
    """All sums over the nodes as one matrix product: of every weight with every product of nodes.

    A wrong answer's score is `-dP / (1 - P)`, a right one's `dP / P`, so that
    `(dP/da)(dP/db) / (P (1 - P))` is minus their product.
    """
    curves = node_curves(model, items, counts.node)
    n_cells = counts.right + counts.wrong
    answered = zip(curves.right, curves.wrong, strict=True)
    cells = [_cell_values(counts, curves)]
    cells += [counts.right * r + counts.wrong * w for r, w in answered]
    pairs = zip(*pair_index(len(curves.right)), strict=True)
    cells += [-n_cells * curves.right[k] * curves.wrong[m] for k, m in pairs]
    design = jnp.concatenate([counts.node, jnp.ones_like(counts.node[:, :1])], axis=1)
    sums = jnp.stack(cells) @ products(design)
    which, of_nodes = _where_summed(model.spec.dims, len(curves.right))
    rows, n = sums[which, :, of_nodes], model.n_coordinates
    return rows[0], on_log_scale(model, items, ItemDerivatives(rows[1 : n + 1], rows[n + 1 :]))


def _where_summed(dims: int, n_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Which sum is the value and each row of gradient and information: weight, product of nodes.

    Weights are the value's, the kinds' scores, then their packed products. Coordinate k is of kind
    0 up to the intercept and multiplies node k (1 for the intercept); asymptotes multiply 1.
    """
    of_kinds, of_node = unpack_index(n_kinds), unpack_index(dims + 1)
    kind = [0] * dims + list(range(n_kinds))
    node = [*range(dims), *[dims] * n_kinds]
    found = [(0, of_node[dims, dims])]
    found += [(1 + k, of_node[q, dims]) for k, q in zip(kind, node, strict=True)]
    for a, b in zip(*pair_index(len(kind)), strict=True):
        found.append((1 + n_kinds + of_kinds[kind[a], kind[b]], of_node[node[a], node[b]]))
    which, of_nodes = np.array(found, np.int32).T
    return which, of_nodes


def on_log_scale(
    model: ItemModel, items: ItemParameters, derivatives: ItemDerivatives
) -> ItemDerivatives:
    """Chain rule for slopes that move on the scale of their logarithm."""
    if not model.has_log_slopes:
        return derivatives
    n_more = model.n_coordinates - model.spec.dims
    scale = jnp.concatenate([items.slope.T, jnp.ones((n_more, len(items.slope)))], axis=0)
    scale = scale.astype(items.slope.dtype)
    rows, columns = pair_index(model.n_coordinates)
    return ItemDerivatives(
        derivatives.gradient * scale, derivatives.information * scale[rows] * scale[columns]
    )


def prior_derivatives(model: ItemModel, items: ItemParameters) -> ItemDerivatives:
    """Gradient and (positive semi-definite) information of the priors, in the coordinates."""
    slope_prior, intercept_prior = model.priors.of_slopes(model.spec), model.priors.of_intercepts()
    dims, full = model.spec.dims, jnp.ones_like(items.intercept)
    place = jnp.log(jnp.abs(items.slope)) if model.has_log_slopes else items.slope
    gradient = list((slope_prior.mean - place.T) / slope_prior.sd**2)
    gradient.append((intercept_prior.mean - items.intercept) / intercept_prior.sd**2)
    information = {(k, k): full / slope_prior.sd**2 for k in range(dims)}
    information[dims, dims] = full / intercept_prior.sd**2
    if items.asymptotes is not None:
        more, of_them = _beta_derivatives(model, items.asymptotes)
        gradient += more
        information |= {(dims + 1 + k, dims + 1 + m): of_them[k, m] for k, m in of_them}
    pairs = zip(*pair_index(len(gradient)), strict=True)
    rows = [information.get((int(k), int(m)), jnp.zeros_like(full)) for k, m in pairs]
    return ItemDerivatives(jnp.stack(gradient), jnp.stack(rows))


def _beta_derivatives(
    model: ItemModel, asymptotes: Asymptotes
) -> tuple[list[Array], dict[tuple[int, int], Array]]:
    """Beta priors of guessing and of `m = 1 - feasibility`, with `dm/du = -c m`, `dm/dv = -t m`.

    Gradients of the asymptotes that are estimated, and their information by pair (lower triangle).
    """
    spec = model.spec
    c, not_c = jax.nn.sigmoid(asymptotes.lower), jax.nn.sigmoid(-asymptotes.lower)
    gradient = [jnp.zeros_like(c) for _ in range(spec.has_guessing + spec.has_feasibility)]
    information = {}
    if spec.has_guessing:
        a, b = model.priors.guessing
        gradient[0] = (a - 1) * not_c - (b - 1) * c
        information[0, 0] = (a + b - 2) * c * not_c
    if spec.has_feasibility:
        a, b = model.priors.infeasibility
        t = jax.nn.sigmoid(asymptotes.upper)
        odds = (1 - asymptotes.feasibility) / asymptotes.feasibility
        slope = [c, t] if spec.has_guessing else [t]
        for k, by_k in enumerate(slope):
            gradient[k] = gradient[k] + by_k * ((b - 1) * odds - (a - 1))
            for m, by_m in enumerate(slope[: k + 1]):
                added = (a + b - 2) * odds * by_k * by_m
                information[k, m] = information.get((k, m), 0) + added
    return gradient, information


def log_prior(model: ItemModel, items: ItemParameters) -> Float[Array, " items"]:
    """Log-density of each item's priors, up to constants."""
    slope_prior, intercept_prior = model.priors.of_slopes(model.spec), model.priors.of_intercepts()
    place = jnp.log(jnp.abs(items.slope)) if model.has_log_slopes else items.slope
    total = -0.5 * jnp.sum(((place - slope_prior.mean) / slope_prior.sd) ** 2, axis=1)
    if model.spec.has_common_slope:
        total = total / len(items.intercept)  # one parameter, one prior
    total -= 0.5 * ((items.intercept - intercept_prior.mean) / intercept_prior.sd) ** 2
    if items.asymptotes is not None:
        log_c, log_not_c, log_d, log_not_d = items.asymptotes.logarithms()
        if model.spec.has_guessing:
            a, b = model.priors.guessing
            total += (a - 1) * log_c + (b - 1) * log_not_c
        if model.spec.has_feasibility:
            a, b = model.priors.infeasibility
            total += (a - 1) * log_not_d + (b - 1) * log_d
    return total


def step_items(
    model: ItemModel,
    items: ItemParameters,
    derivatives: ItemDerivatives,
    is_loading: Float[Array, "items dims"] | None = None,
) -> ItemParameters:
    """One capped Fisher-scoring step of every item, priors included.

    Args:
        model: coordinates and priors.
        items: where to step from.
        derivatives: of the expected log-likelihood there.
        is_loading: 1 where an item may have a slope; the others stay at 0. With a column a
            coordinate, 1 where it may move at all.
    """
    step = _item_steps(model, items, derivatives, is_loading)
    return unpack_items(model, items, _moved(model, pack_items(model, items), step))


def _item_steps(
    model: ItemModel,
    items: ItemParameters,
    derivatives: ItemDerivatives,
    is_loading: Float[Array, "items dims"] | None,
) -> Float[Array, "coordinates items"]:
    prior = prior_derivatives(model, items)
    if model.spec.has_common_slope:
        # The slope is one parameter of all items and so has one prior.
        prior = _once(prior, len(items.intercept))
    n = model.n_coordinates
    gradient = derivatives.gradient + prior.gradient
    information = derivatives.information + prior.information
    if has_moving_slope(model, is_loading):
        step = _common_slope_step(gradient, information, n)
    else:
        gradient, information = _pinned(gradient, information, is_loading, n)
        step = positive_definite_solve(ridged(information, n), n, gradient)
    # Each coordinate by itself: the whole length would give items different common slopes.
    return jnp.clip(step, -_LONGEST_STEP, _LONGEST_STEP)


def has_moving_slope(model: ItemModel, is_loading: Any) -> bool:
    """Whether all items share a slope that is estimated: no mask of all coordinates holds it."""
    is_held = is_loading is not None and is_loading.shape[1] == model.n_coordinates
    return model.spec.has_common_slope and not is_held


def _once(prior: ItemDerivatives, n_items: int) -> ItemDerivatives:
    """The prior of the first coordinate spread over the items that share it."""
    return ItemDerivatives(
        prior.gradient.at[0].divide(n_items), prior.information.at[0].divide(n_items)
    )


def ridged(information: Float[Array, "pairs items"], n: int) -> Float[Array, "pairs items"]:
    """A little on the diagonal: an item without responses or priors must not divide by 0."""
    rows, columns = pair_index(n)
    diagonal = (rows == columns)[:, None]
    largest = functools.reduce(jnp.maximum, information[rows == columns])
    tiny = 1e-6 * jnp.maximum(largest, 0) + 1e-8
    return information + jnp.where(diagonal, tiny, jnp.zeros_like(information))


def _pinned(
    gradient: Float[Array, "coordinates items"],
    information: Float[Array, "pairs items"],
    is_loading: Float[Array, "items dims"] | None,
    n: int,
) -> tuple[Array, Array]:
    if is_loading is None:
        return gradient, information
    free = jnp.ones_like(gradient).at[: is_loading.shape[1]].set(is_loading.T)
    rows, columns = pair_index(n)
    unit = jnp.asarray(rows == columns, information.dtype)[:, None]
    both = free[rows] * free[columns]
    return gradient * free, information * both + unit * (1 - both)


def _common_slope_step(
    gradient: Float[Array, "coordinates items"], information: Float[Array, "pairs items"], n: int
) -> Float[Array, "coordinates items"]:
    """Newton step where the first coordinate is one for all items: the others are profiled out."""
    full = unpack(ridged(information, n), n)
    rest_rows, rest_columns = pair_index(n - 1)
    rest = full[1:, 1:][rest_rows, rest_columns]
    inverse, _, _ = positive_definite_inverse(rest, n - 1)
    inverse = inverse[unpack_index(n - 1)]
    coupling = jnp.einsum("abj,bj->aj", inverse, full[1:, 0])
    score = jnp.sum(gradient[0] - jnp.sum(coupling * gradient[1:], axis=0))
    curvature = jnp.sum(full[0, 0] - jnp.sum(coupling * full[1:, 0], axis=0))
    common = score / curvature
    others = jnp.einsum("abj,bj->aj", inverse, gradient[1:] - full[1:, 0] * common)
    return jnp.concatenate([jnp.broadcast_to(common, (1, gradient.shape[1])), others], axis=0)


def _moved(
    model: ItemModel,
    rows: Float[Array, "coordinates items"],
    step: Float[Array, "coordinates items"],
) -> Float[Array, "coordinates items"]:
    """Items (packed) after a step; slopes on the scale of their logarithm are multiplied."""
    if not model.has_log_slopes:
        return rows + step
    is_slope = (np.arange(len(rows)) < model.spec.dims)[:, None]
    return jnp.where(is_slope, rows * jnp.exp(step), rows + step)
