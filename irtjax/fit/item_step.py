"""Newton steps of items that are estimated, from expected counts at nodes of the abilities.

With the models integrated out, all that the data say about item j is how often it is expected to be
answered right and wrong at each node: `r_jq` and `w_jq`. Its log-likelihood is
`sum_q r_jq log P_jq + w_jq log(1 - P_jq)` (Bock & Aitkin 1981), and the steps are Fisher scoring,
whose information is always positive definite.

Coordinates of an item: slopes (their logarithm under a lognormal prior), intercept, and where the
family has them the asymptotes on the scale of `Asymptotes`.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.fit.packed import pair_index, positive_definite_inverse, products, unpack, unpack_index
from irtjax.model.priors import LogNormal, Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes, log_probabilities, response_probabilities
from irtjax.model.spec import ModelSpec

__all__ = [
    "ExpectedCounts",
    "ItemDerivatives",
    "ItemModel",
    "ItemParameters",
    "cell_scores",
    "climb_items",
    "expected_log_likelihood",
    "item_derivatives",
    "log_prior",
    "node_logarithms",
    "on_log_scale",
    "prior_derivatives",
    "ridged",
    "step_items",
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


def node_logarithms(
    items: ItemParameters, node: Float[Array, "nodes dims"]
) -> tuple[Float[Array, "items nodes"], Float[Array, "items nodes"]]:
    """`log P` and `log(1 - P)` of every item at every node."""
    logit = items.slope @ node.T + items.intercept[:, None]
    return log_probabilities(logit, jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes))


def cell_scores(
    model: ItemModel, items: ItemParameters, node: Float[Array, "nodes dims"]
) -> tuple[list[Float[Array, "items nodes"]], list[Float[Array, "items nodes"]]]:
    """Derivatives of `log P` and of `log(1 - P)`: in the logit, guessing's and feasibility's scale.

    `dP/du = c (1 - c) (1 - t s)` and `dP/dv = (1 - c) t (1 - t) s` with `c = sigmoid(u)`,
    `t = sigmoid(v)` and `s = sigmoid(z)`; `1 - P = (1 - c)(1 - t s)` cancels without a division.
    """
    logit = items.slope @ node.T + items.intercept[:, None]
    logit = jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT)
    s, not_s = jax.nn.sigmoid(logit), jax.nn.sigmoid(-logit)
    if items.asymptotes is None:
        return [not_s], [-s]
    columns = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
    p, not_p = response_probabilities(logit, columns)
    c, not_c = jax.nn.sigmoid(columns.lower), jax.nn.sigmoid(-columns.lower)
    t, not_t = jax.nn.sigmoid(columns.upper), jax.nn.sigmoid(-columns.upper)
    rise = not_c * t * s * not_s
    right, wrong = [rise / p], [-rise / not_p]
    if model.spec.has_guessing:
        right.append(c * not_p / p)
        wrong.append(-c * jnp.ones_like(p))
    if model.spec.has_feasibility:
        right.append(not_c * t * not_t * s / p)
        wrong.append(-not_c * t * not_t * s / not_p)
    return right, wrong


def expected_log_likelihood(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> Float[Array, " items"]:
    """Each item's expected log-likelihood and log-prior: what the steps raise."""
    if items.asymptotes is None:
        # One logarithm instead of two: log P - log(1 - P) is the logit.
        logit = items.slope @ counts.node.T + items.intercept[:, None]
        n_answers = counts.right + counts.wrong
        cells = counts.right * logit - n_answers * jax.nn.softplus(logit)
    else:
        log_p, log_not_p = node_logarithms(items, counts.node)
        cells = counts.right * log_p + counts.wrong * log_not_p
    return jnp.sum(cells, axis=1) + log_prior(model, items)


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

    def once(_: int, carry: tuple) -> tuple:
        proposed, best, best_value, derivatives, length = carry
        value = expected_log_likelihood(model, proposed, counts)
        gain = value - best_value + _ROUNDING * jnp.finfo(value.dtype).eps * jnp.abs(value)
        if model.spec.has_common_slope:
            gain = jnp.broadcast_to(jnp.sum(gain), gain.shape)
        is_better = gain >= 0

        def better(new: Array, old: Array) -> Array:
            return jnp.where(
                is_better[:, None] if new.shape[1:] == (dims,) else is_better, new, old
            )

        here = item_derivatives(model, proposed, counts)
        best = jax.tree.map(better, proposed, best)
        derivatives = jax.tree.map(lambda a, b: jnp.where(is_better, a, b), here, derivatives)
        best_value = jnp.where(is_better, value, best_value)
        length = jnp.where(is_better, jnp.minimum(2 * length, 1), length / 4)
        proposed = step_items(model, best, derivatives, is_loading, length)
        return proposed, best, best_value, derivatives, length

    # One evaluation a round, of value and derivatives at once: of what is proposed last, only the
    # value would be needed, but a second kind of round takes as long again to compile.
    dims, n = model.spec.dims, model.n_coordinates
    # One value a device where the items are: a plain zero would not be.
    zero = 0 * items.intercept
    nothing = ItemDerivatives(
        jnp.broadcast_to(zero, (n, len(zero))),
        jnp.broadcast_to(zero, (n * (n + 1) // 2, len(zero))),
    )
    start = (items, items, zero - jnp.inf, nothing, zero + 0.5)
    return jax.lax.fori_loop(0, n_steps + 1, once, start)[1]


def item_derivatives(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> ItemDerivatives:
    """Gradient and Fisher information of each item's expected log-likelihood."""
    n_cells = counts.right + counts.wrong
    right, wrong = cell_scores(model, items, counts.node)
    design = jnp.concatenate([counts.node, jnp.ones_like(counts.node[:, :1])], axis=1)
    scores = [counts.right * r + counts.wrong * w for r, w in zip(right, wrong, strict=True)]
    gradient = [scores[0] @ design, *(jnp.sum(s, axis=1, keepdims=True) for s in scores[1:])]
    # (dP/da)(dP/db) / (P (1 - P)): the score of a wrong answer is -dP / (1 - P), of a right dP / P.
    weight = [[-n_cells * r * w for w in wrong] for r in right]
    size = design.shape[1]
    information = jnp.zeros((model.n_coordinates, model.n_coordinates, len(items.intercept)))
    information = information.astype(n_cells.dtype)
    rows, columns = pair_index(size)
    information = information.at[rows, columns].set((weight[0][0] @ products(design)).T)
    for k in range(1, len(right)):
        crossed = weight[0][k] @ design
        information = information.at[size + k - 1, :size].set(crossed.T)
        for m in range(1, k + 1):
            value = jnp.sum(weight[m][k], axis=1)
            information = information.at[size + k - 1, size + m - 1].set(value)
    rows, columns = pair_index(model.n_coordinates)
    found = ItemDerivatives(jnp.concatenate(gradient, axis=1).T, information[rows, columns])
    return on_log_scale(model, items, found)


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
    dims, n = model.spec.dims, model.n_coordinates
    slope_prior, intercept_prior = model.priors.of_slopes(model.spec), model.priors.of_intercepts()
    dtype = items.slope.dtype
    place = jnp.log(jnp.abs(items.slope)) if model.has_log_slopes else items.slope
    gradient = jnp.zeros((n, len(items.intercept)), dtype)
    information = jnp.zeros((n, n, len(items.intercept)), dtype)
    gradient = gradient.at[:dims].set((slope_prior.mean - place.T) / slope_prior.sd**2)
    gradient = gradient.at[dims].set(
        (intercept_prior.mean - items.intercept) / intercept_prior.sd**2
    )
    for k in range(dims):
        information = information.at[k, k].set(1 / slope_prior.sd**2)
    information = information.at[dims, dims].set(1 / intercept_prior.sd**2)
    if items.asymptotes is not None:
        gradient, information = _beta_derivatives(model, items.asymptotes, gradient, information)
    rows, columns = pair_index(n)
    return ItemDerivatives(gradient, information[rows, columns])


def _beta_derivatives(
    model: ItemModel, asymptotes: Asymptotes, gradient: Array, information: Array
) -> tuple[Array, Array]:
    """Beta priors of guessing and of `m = 1 - feasibility`, with `dm/du = -c m`, `dm/dv = -t m`."""
    c, not_c = jax.nn.sigmoid(asymptotes.lower), jax.nn.sigmoid(-asymptotes.lower)
    lower = model.spec.dims + 1
    if model.spec.has_guessing:
        a, b = model.priors.guessing
        gradient = gradient.at[lower].add((a - 1) * not_c - (b - 1) * c)
        information = information.at[lower, lower].add((a + b - 2) * c * not_c)
    if model.spec.has_feasibility:
        a, b = model.priors.infeasibility
        t = jax.nn.sigmoid(asymptotes.upper)
        odds = (1 - asymptotes.feasibility) / asymptotes.feasibility
        slope = [(lower, c), (lower + 1, t)] if model.spec.has_guessing else [(lower, t)]
        for k, by_k in slope:
            gradient = gradient.at[k].add(by_k * ((b - 1) * odds - (a - 1)))
            for m, by_m in slope:
                information = information.at[k, m].add((a + b - 2) * odds * by_k * by_m)
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
    length: Float[Array, " items"] | None = None,
) -> ItemParameters:
    """One capped Fisher-scoring step of every item, priors included.

    Args:
        model: coordinates and priors.
        items: where to step from.
        derivatives: of the expected log-likelihood there.
        is_loading: 1 where an item may have a slope; the others stay at 0.
        length: share of its step that each item takes, all of it without.
    """
    prior = prior_derivatives(model, items)
    if model.spec.has_common_slope:
        # The slope is one parameter of all items and so has one prior.
        prior = _once(prior, len(items.intercept))
    n = model.n_coordinates
    gradient = derivatives.gradient + prior.gradient
    information = derivatives.information + prior.information
    if model.spec.has_common_slope:
        step = _common_slope_step(gradient, information, n)
    else:
        gradient, information = _pinned(gradient, information, is_loading, n)
        inverse, _, _ = positive_definite_inverse(ridged(information, n), n)
        step = jnp.sum(unpack(inverse, n) * gradient[None], axis=1)
    # Each coordinate by itself: the whole length would give items different common slopes.
    step = jnp.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    return _moved(model, items, step if length is None else step * length)


def _once(prior: ItemDerivatives, n_items: int) -> ItemDerivatives:
    """The prior of the first coordinate spread over the items that share it."""
    return ItemDerivatives(
        prior.gradient.at[0].divide(n_items), prior.information.at[0].divide(n_items)
    )


def ridged(information: Float[Array, "pairs items"], n: int) -> Float[Array, "pairs items"]:
    """A little on the diagonal: an item without responses or priors must not divide by 0."""
    rows, columns = pair_index(n)
    diagonal = (rows == columns)[:, None]
    tiny = 1e-6 * jnp.max(jnp.where(diagonal, information, 0), axis=0) + 1e-8
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
    model: ItemModel, items: ItemParameters, step: Float[Array, "coordinates items"]
) -> ItemParameters:
    dims = model.spec.dims
    if model.has_log_slopes:
        slope = items.slope * jnp.exp(step[:dims].T)
    else:
        slope = items.slope + step[:dims].T
    asymptotes = items.asymptotes
    if asymptotes is not None:
        more = iter(step[dims + 1 :])
        lower = asymptotes.lower + next(more) if model.spec.has_guessing else asymptotes.lower
        upper = asymptotes.upper + next(more) if model.spec.has_feasibility else asymptotes.upper
        asymptotes = Asymptotes(lower, upper)
    return ItemParameters(slope, items.intercept + step[dims], asymptotes)
