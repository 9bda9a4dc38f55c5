"""One kernel for both sides (DESIGN 4): models random on Y is items random on Y' with the roles
swapped.

On Y' the models' posteriors are renewed like items': the coordinates of the random side are
`(theta_i, 1)` with the last one pinned, and the known side is `(slope_j, intercept_j)`. Three
computations must agree: `variational_pass`, the pass of `marginal-items` on the transposed matrix,
and the oracle's loops.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.data.blocks import make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.hyperparameters import packed_precision
from irtjax.fit.item_pass import ItemPosteriors, PassContext, renew_items
from irtjax.fit.item_step import ItemParameters
from irtjax.fit.kernel import Posterior
from irtjax.fit.populations import Populations
from irtjax.fit.variational_pass import variational_pass
from irtjax.model.response import Asymptotes
from irtjax.parallel import BLOCKED, items_mesh, place
from tests.fit import reference
from tests.fit.bridge import packed, unpacked
from tests.tolerances import close

N_ITEMS, N_PATTERNS, PER_BLOCK = 40, 120, 64
N_POPULATIONS, N_NODES = 2, 7
FAMILIES = ("2pl", "4pl-alike", "4pl")
KINDS = [(family, dims) for family in FAMILIES for dims in (1, 2)]


@dataclasses.dataclass
class Swapped(reference.Problem):
    """The oracle with models as its random side: `ability` is the items' (slope, intercept).

    Asymptotes belong to the known side here: one for each row of the matrix.
    """

    @property
    def design(self):
        return self.ability

    def design_covariance(self, i):
        size = len(self.is_free)
        return np.zeros((len(i), size, size))

    def cells(self, j, m, V):
        i, x, _, y, w = self.seen(j)
        variance = np.einsum("ia,ab,ib->i", x, V, x)
        c, d = self.guessing[i], self.feasibility[i]
        return w * reference.expected_cell(x @ m, variance, y, c, d, self.n_nodes)


@dataclasses.dataclass
class Setting:
    """Everything of a pass, models x items; `multiplicity` of each model (response pattern)."""

    response: np.ndarray
    weight: np.ndarray
    multiplicity: np.ndarray
    population: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    guessing: np.ndarray
    feasibility: np.ndarray
    place: np.ndarray  # populations x dims
    factor: np.ndarray
    mean: np.ndarray  # models x coordinates
    covariance: np.ndarray

    @property
    def has_asymptotes(self):
        return bool(np.any(self.guessing > 0))

    @property
    def is_free(self):
        return (*(True for _ in range(self.slope.shape[1])), False)

    @property
    def prior(self):
        """Means and covariances of `(theta, 1)`, populations first."""
        mean = np.column_stack([self.place, np.ones(N_POPULATIONS)])
        spread = self.factor @ self.factor.swapaxes(1, 2)
        return mean, np.pad(spread, ((0, 0), (0, 1), (0, 1)))


@functools.cache
def setting(family, dims):
    """A pass in the middle of a fit: nothing at its optimum, nothing at a round number.

    `4pl-alike` has the same asymptotes for all items: items random on Y' know no others.
    """
    rng = np.random.default_rng(dims)
    shape = (N_PATTERNS, N_ITEMS)
    slope = rng.normal(0.8, 0.7, (N_ITEMS, dims))
    intercept = rng.normal(0, 1, N_ITEMS)
    guessing, feasibility = np.zeros(N_ITEMS), np.ones(N_ITEMS)
    if family != "2pl":
        guessing, feasibility = np.full(N_ITEMS, 0.2), np.full(N_ITEMS, 0.93)
    if family == "4pl":
        guessing, feasibility = rng.uniform(0.1, 0.3, N_ITEMS), rng.uniform(0.8, 0.98, N_ITEMS)
    population = rng.integers(0, N_POPULATIONS, N_PATTERNS)
    place = np.vstack([np.zeros(dims), rng.normal(0, 0.7, dims)])
    root = np.tril(rng.normal(0, 0.3, (dims, dims)), -1) + np.diag(rng.uniform(0.6, 1.4, dims))
    factor = np.stack([np.eye(dims), root])
    theta = place[population] + rng.normal(size=(N_PATTERNS, dims))
    p = guessing + (feasibility - guessing) / (1 + np.exp(-(theta @ slope.T + intercept)))
    response = (rng.random(shape) < p).astype(float)
    response[rng.random(shape) < 0.2] = -1
    mean = np.column_stack([theta + rng.normal(0, 0.4, theta.shape), np.ones(N_PATTERNS)])
    spread = rng.normal(0, 0.2, (N_PATTERNS, dims, dims))
    spread = spread @ spread.swapaxes(1, 2) + 0.05 * np.eye(dims)
    return Setting(
        response,
        rng.integers(1, 4, shape).astype(float),
        rng.integers(1, 4, N_PATTERNS),
        population,
        slope,
        intercept,
        guessing,
        feasibility,
        place,
        factor,
        mean,
        np.pad(spread, ((0, 0), (0, 1), (0, 1))),
    )


def _run(function, blocks, per_item, *context):
    """`function` on the mesh: blocks and what belongs to their columns are spread over it."""
    mesh = items_mesh()
    with jax.set_mesh(mesh):
        blocks, per_item = place((blocks, per_item), mesh, BLOCKED)
        return jax.jit(function)(blocks, per_item, *context)


@dataclasses.dataclass
class Found:
    """What a pass gives, full matrices; models that share a pattern are in its sums."""

    mean: np.ndarray
    covariance: np.ndarray
    bound: float
    score: np.ndarray  # items x (slopes, intercept)
    information: np.ndarray
    count: np.ndarray  # populations
    deviation: np.ndarray  # sums of E[theta] - prior mean, by population
    squares: np.ndarray  # sums of E[(theta - prior mean)(theta - prior mean)']
    answers: np.ndarray | None  # items x four


def _blocks(given, rows):
    """Blocks of Y' with these rows of Y, by population."""
    data = ResponseMatrix.from_dense(
        given.response[rows].astype(np.float32), weight=given.weight[rows].astype(np.float32)
    )
    return make_blocks(
        data.transposed(),
        given.population[rows],
        items_per_block=PER_BLOCK,
        n_shards=items_mesh().size,
    )


def _asymptotes(guessing, feasibility):
    return Asymptotes.from_natural(jnp.asarray(guessing), jnp.asarray(feasibility))


@functools.cache
def models_random(family, dims):
    """`variational_pass` on Y: each pattern once, with its multiplicity."""
    given = setting(family, dims)
    blocks, layout = _blocks(given, np.arange(N_PATTERNS))
    # Padding is a copy of the last model that counts for none.
    order = layout.to_blocks(np.arange(N_PATTERNS), N_PATTERNS - 1)
    posteriors = Posterior(
        *(
            jnp.asarray(np.moveaxis(leaf[order], 1, -1))
            for leaf in (given.mean, packed(given.covariance))
        )
    )
    multiplicity = jnp.asarray(layout.to_blocks(given.multiplicity.astype(float)))
    items = ItemParameters(
        jnp.asarray(given.slope),
        jnp.asarray(given.intercept),
        _asymptotes(given.guessing, given.feasibility) if given.has_asymptotes else None,
    )
    populations = Populations(
        jnp.asarray(given.place), jnp.asarray(given.factor), jnp.zeros((N_POPULATIONS, 0))
    )
    result, renewed = _run(
        lambda blocks, models, *known: variational_pass(
            blocks, models[0], *known, models[1], N_NODES
        ),
        blocks,
        (multiplicity, posteriors),
        items,
        populations,
    )

    def from_blocks(leaf):
        return layout.from_blocks(np.moveaxis(np.asarray(leaf), -1, 1))

    prior, moments = np.asarray(given.place), result.moments
    count = np.asarray(moments.count)
    deviation = np.asarray(moments.total) - count[:, None] * prior
    crossed = np.asarray(moments.total)[:, :, None] * prior[:, None]
    squares = np.asarray(moments.squares) - crossed - crossed.swapaxes(1, 2)
    squares += count[:, None, None] * prior[:, :, None] * prior[:, None]
    return Found(
        from_blocks(renewed.mean),
        unpacked(from_blocks(renewed.covariance)),
        result.bound,
        np.asarray(result.derivatives.gradient).T,
        unpacked(np.asarray(result.derivatives.information).T),
        count,
        deviation,
        squares,
        result.answers,
    )


@functools.cache
def items_random(family, dims):
    """The pass of `marginal-items` on Y', every model of a pattern by itself.

    Effects of 0 make it sum what an intercept has of score and information.
    """
    given = setting(family, dims)
    rows = np.repeat(np.arange(N_PATTERNS), given.multiplicity)
    blocks, layout = _blocks(given, rows)
    order = rows[layout.to_blocks(np.arange(len(rows)), len(rows) - 1)]
    mean, covariance = (
        jnp.asarray(np.moveaxis(leaf[order], 1, -1)[:, None])
        for leaf in (given.mean, packed(given.covariance))
    )
    prior_mean, prior_covariance = given.prior
    precision, log_determinant = packed_precision(jnp.asarray(prior_covariance), given.is_free)
    asymptotes = None
    if given.has_asymptotes:
        asymptotes = _asymptotes(given.guessing[:N_POPULATIONS], given.feasibility[:N_POPULATIONS])
    context = PassContext(
        jnp.asarray(np.column_stack([given.slope, given.intercept])),
        jnp.zeros((N_ITEMS, N_POPULATIONS)),
        jnp.asarray(prior_mean.T[None]),
        precision.T[None],
        log_determinant[None],
        jnp.zeros((1, N_POPULATIONS)),
        asymptotes,
        given.is_free,
        N_NODES,
    )
    share = jnp.ones((mean.shape[0], 1, mean.shape[-1]))
    start = ItemPosteriors(mean, covariance, share)
    result, renewed = _run(renew_items, blocks, start, context)
    mean, covariance = (
        layout.from_blocks(np.moveaxis(np.asarray(leaf), -1, 1))[:, 0]
        for leaf in (renewed.mean, renewed.covariance)
    )
    first = np.append(0, np.cumsum(given.multiplicity)[:-1])
    models, effects, moments = result.models, result.effects, result.moments
    intercept = np.sum(np.asarray(effects.score), axis=0)
    information = np.empty((N_ITEMS, dims + 1, dims + 1), intercept.dtype)
    information[:, :dims, :dims] = unpacked(models.information)
    cross = np.sum(np.asarray(effects.cross), axis=0).T
    information[:, dims, :dims] = information[:, :dims, dims] = cross
    information[:, dims, dims] = np.sum(np.asarray(effects.information), axis=0)
    return Found(
        mean[first],
        unpacked(covariance[first]),
        result.bound,
        np.column_stack([models.score, intercept]),
        information,
        np.asarray(moments.count)[:, 0],
        np.asarray(moments.deviation)[:, 0, :dims],
        unpacked(moments.squares)[:, 0, :dims, :dims],
        None,
    )


@functools.cache
def oracle(family, dims):
    """The loops, float64, every model of a pattern by itself."""
    given = setting(family, dims)
    rows = np.repeat(np.arange(N_PATTERNS), given.multiplicity)
    prior_mean, prior_covariance = given.prior
    problem = Swapped(
        response=given.response[rows].T,
        weight=given.weight[rows].T,
        group=given.population[rows],
        ability=np.column_stack([given.slope, given.intercept]),
        effect=None,
        mu=prior_mean[:, None],
        sigma=prior_covariance[:, None],
        log_weight=np.zeros((N_POPULATIONS, 1)),
        guessing=given.guessing,
        feasibility=given.feasibility,
        mean=given.mean[rows][:, None],
        covariance=given.covariance[rows][:, None],
        share=np.ones((len(rows), 1)),
        is_free=given.is_free,
        n_nodes=N_NODES,
    )
    result = reference.renew(problem)
    first = np.append(0, np.cumsum(given.multiplicity)[:-1])
    answers = np.zeros((N_ITEMS, 4))
    for j in range(len(rows)):
        i, _, _, y, w = problem.seen(j)
        known = problem.cells(j, result.mean[j, 0], result.covariance[j, 0])[3:]
        answers[i] += np.stack([*known, w * y, w * (1 - y)], axis=1)
    return Found(
        result.mean[first, 0],
        result.covariance[first, 0],
        result.bound,
        result.score,
        result.information,
        result.count[:, 0],
        result.deviation[:, 0, :dims],
        result.squares[:, 0, :dims, :dims],
        answers,
    )


def _pairs():
    """The oracle with every family; Y' itself where the asymptotes are not the items' own."""
    pairs = [(oracle, family, dims) for family, dims in KINDS]
    return pairs + [(items_random, family, dims) for family, dims in KINDS if family != "4pl"]


def _name(value):
    return getattr(value, "__name__", str(value))


each_pair = pytest.mark.parametrize("other, family, dims", _pairs(), ids=_name)


@pytest.mark.oracle
@each_pair
def test_posteriors_of_the_models(other, family, dims):
    one, two = models_random(family, dims), other(family, dims)
    close(one.mean, two.mean, kind="solve")
    close(one.covariance, two.covariance, kind="solve")
    np.testing.assert_array_equal(one.mean[:, -1], 1)
    np.testing.assert_array_equal(one.covariance[:, -1], 0)


@pytest.mark.oracle
@each_pair
def test_the_bound(other, family, dims):
    close(models_random(family, dims).bound, other(family, dims).bound, kind="reduction")


@pytest.mark.oracle
@each_pair
def test_score_and_information_of_the_items(other, family, dims):
    one, two = models_random(family, dims), other(family, dims)
    # A score is a difference of sums over 240 models with weights up to 3.
    close(one.score, two.score, kind="solve", scale=100)
    close(one.information, two.information, kind="solve", scale=100)


@pytest.mark.oracle
@each_pair
def test_moments_of_the_populations(other, family, dims):
    one, two = models_random(family, dims), other(family, dims)
    close(one.count, two.count)
    close(one.deviation, two.deviation, kind="solve", scale=100)
    close(one.squares, two.squares, kind="solve", scale=100)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_of_each_item(family, dims):
    one, two = models_random(family, dims), oracle(family, dims)
    if family == "2pl":
        assert one.answers is None
    else:
        close(one.answers, two.answers, kind="solve", scale=100)
