"""The pass over a grid against loops over items, models and nodes; its M-step by differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.data.blocks import make_blocks
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.frame import FrameChange
from irtjax.fit.grid_pass import (
    ModelSpread,
    grid_counts,
    grid_posteriors,
    grid_sums,
    grid_tables,
    items_per_block,
    node_logits,
)
from irtjax.fit.item_grid import ItemGrid
from irtjax.fit.models_step import step_models
from irtjax.model.quadrature import gauss_hermite
from irtjax.model.response import Asymptotes
from irtjax.parallel import items_mesh
from tests.fit.bridge import unpacked
from tests.tolerances import close

N_MODELS, N_ITEMS, N_GROUPS, DIMS = 6, 50, 3, 2
GRID = ItemGrid(DIMS, 3)


class Problem:
    """Random parameters and responses: fractions, weights and missing cells among them."""

    def __init__(self, seed=3):
        rng = np.random.default_rng(seed)
        self.response = rng.choice([0, 1, 0.25], (N_MODELS, N_ITEMS), p=[0.4, 0.5, 0.1])
        self.response[rng.random(self.response.shape) < 0.2] = MISSING
        self.weight = rng.integers(1, 4, self.response.shape).astype(float)
        self.group = rng.integers(0, N_GROUPS, N_ITEMS)
        self.ability = rng.normal(size=(N_MODELS, DIMS))
        self.effect = rng.normal(0, 0.5, (N_MODELS, N_GROUPS))
        root = rng.normal(0, 0.3, (N_MODELS, DIMS, DIMS))
        self.covariance = root @ root.swapaxes(1, 2) + 0.02 * np.eye(DIMS)
        self.spread = rng.uniform(0.01, 0.2, (N_MODELS, N_GROUPS))
        self.matrix = np.eye(DIMS + 1) + rng.normal(0, 0.2, (DIMS + 1, DIMS + 1))
        self.shift = rng.normal(0, 0.3, (N_GROUPS, DIMS + 1))
        weight = rng.dirichlet(np.ones(GRID.n_nodes), N_GROUPS)
        self.log_weight = np.log(weight + 1e-4)
        self.guessing = rng.uniform(0.05, 0.3, N_GROUPS)
        self.feasibility = rng.uniform(0.85, 0.99, N_GROUPS)

    def node(self, group):
        """Nodes of a group, by the definition of the frame."""
        return GRID.node @ self.matrix.T + self.shift[group]

    def logarithms(self, group, ability, effect):
        """Expected `log P` and `log(1 - P)`, models x nodes."""
        place = self.node(group)
        found = np.zeros((2, N_MODELS, GRID.n_nodes))
        for i in range(N_MODELS):
            for q in range(GRID.n_nodes):
                slope = place[q, :-1]
                mean = slope @ ability[i] + place[q, -1] + effect[i, group]
                variance = slope @ self.covariance[i] @ slope + self.spread[i, group]
                for x, w in zip(*gauss_hermite(5), strict=True):
                    s = expit(mean + np.sqrt(variance) * x)
                    low, high = self.guessing[group], self.feasibility[group]
                    p = low + (high - low) * s
                    found[:, i, q] += w * np.log(p), w * np.log(1 - p)
        return found

    def counts(self):
        """Log-likelihood, expected answers and masses, posteriors; a loop over the items."""
        tables = [self.logarithms(g, self.ability, self.effect) for g in range(N_GROUPS)]
        total, posteriors = 0.0, np.zeros((N_ITEMS, GRID.n_nodes))
        answers = np.zeros((2, N_GROUPS, N_MODELS, GRID.n_nodes))
        for j in range(N_ITEMS):
            g = self.group[j]
            seen = self.response[:, j] != MISSING
            right = np.where(seen, self.weight[:, j] * self.response[:, j], 0)
            wrong = np.where(seen, self.weight[:, j] * (1 - self.response[:, j]), 0)
            joint = self.log_weight[g] + right @ tables[g][0] + wrong @ tables[g][1]
            total += np.log(np.sum(np.exp(joint - joint.max()))) + joint.max()
            posteriors[j] = np.exp(joint - joint.max())
            posteriors[j] /= posteriors[j].sum()
            answers[0, g] += np.outer(right, posteriors[j])
            answers[1, g] += np.outer(wrong, posteriors[j])
        return total, answers, posteriors

    def parameters(self):
        """What the pass takes: nodes, logits, tables, asymptotes."""
        frame = FrameChange(jnp.asarray(self.matrix), jnp.asarray(self.shift))
        node = frame.apply_to_nodes(jnp.asarray(GRID.node))
        spread = ModelSpread(jnp.asarray(self.covariance), jnp.asarray(self.spread))
        logit = node_logits(jnp.asarray(self.ability), jnp.asarray(self.effect), spread, node)
        asymptotes = Asymptotes.from_natural(
            jnp.asarray(self.guessing), jnp.asarray(self.feasibility)
        )
        tables = grid_tables(logit, jnp.asarray(self.log_weight), asymptotes)
        return node, logit, tables, asymptotes

    def blocks(self, size, models=slice(None), items=slice(None)):
        """Blocks of the matrix with models and items in some order, and the layout."""
        data = ResponseMatrix.from_dense(
            self.response[models][:, items].astype(np.float32),
            weight=self.weight[models][:, items].astype(np.float32),
        )
        return make_blocks(data, self.group[items], items_per_block=size)


def _counted(problem, size, **order):
    blocks, layout = problem.blocks(size, **order)
    with jax.set_mesh(items_mesh(jax.devices()[:1])):
        return jax.jit(grid_counts)(blocks, problem.parameters()[2]), blocks, layout


@pytest.fixture(scope="module")
def problem():
    return Problem()


@pytest.mark.oracle
def test_log_likelihood_answers_and_masses(problem):
    found, _, _ = _counted(problem, 16)
    total, answers, posteriors = problem.counts()
    close(found.log_likelihood, total, kind="reduction")
    close(found.right, answers[0], kind="reduction", scale=10)
    close(found.wrong, answers[1], kind="reduction", scale=10)
    mass = np.stack([posteriors[problem.group == g].sum(0) for g in range(N_GROUPS)])
    close(found.mass, mass, kind="reduction", scale=10)


@pytest.mark.oracle
def test_posteriors_keep_the_moments_and_the_intercept(problem):
    blocks, layout = problem.blocks(16)
    with jax.set_mesh(items_mesh(jax.devices()[:1])):
        items = jax.jit(lambda b, t: grid_posteriors(b, t, GRID))(blocks, problem.parameters()[2])
    mean, covariance, share = (
        layout.from_blocks(np.moveaxis(np.asarray(leaf), -1, 1))
        for leaf in (items.mean, items.covariance, items.share)
    )
    posteriors = problem.counts()[2]
    expected = posteriors @ GRID.node
    close(np.einsum("jl,jlk->jk", share, mean), expected, kind="reduction", scale=10)
    second = np.einsum("jl,jlk,jlm->jkm", share, mean, mean)
    second += np.einsum("jl,jlkm->jkm", share, unpacked(covariance))
    close(
        second,
        np.einsum("jq,qk,qm->jkm", posteriors, GRID.node, GRID.node),
        kind="reduction",
        scale=100,
    )
    levels = np.unique(GRID.node[:, -1])
    for level, value in enumerate(levels):
        at = GRID.node[:, -1] == value
        close(share[:, level], posteriors[:, at].sum(axis=1), kind="reduction", scale=10)


def _expected_log_likelihood(problem, answers, ability, effect):
    tables = np.stack([problem.logarithms(g, ability, effect) for g in range(N_GROUPS)], axis=1)
    return np.sum(answers * tables)


def _slope(problem, answers, ability=0, effect=0, h=1e-5):
    """Central difference of the expected log-likelihood along a direction."""
    ahead, behind = (
        _expected_log_likelihood(
            problem, answers, problem.ability + at * ability, problem.effect + at * effect
        )
        for at in (h, -h)
    )
    return (ahead - behind) / (2 * h)


@pytest.mark.oracle
def test_scores_are_derivatives_of_the_expected_log_likelihood(problem):
    found, _, _ = _counted(problem, 16)
    node, logit, _, asymptotes = problem.parameters()
    sums = jax.jit(grid_sums, static_argnums=4)(found, logit, node, asymptotes, True)
    answers = problem.counts()[1]
    for i, k in ((0, 0), (3, 1)):
        along = np.zeros_like(problem.ability)
        along[i, k] = 1
        expected = _slope(problem, answers, ability=along)
        assert float(sums.models.score[i, k]) == pytest.approx(expected, rel=1e-4, abs=1e-3)
    along = np.zeros_like(problem.effect)
    along[2, 1] = 1
    expected = _slope(problem, answers, effect=along)
    assert float(sums.effects.score[1, 2]) == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_newton_steps_on_the_counts_raise_the_expected_log_likelihood(problem):
    found, _, _ = _counted(problem, 16)
    node, logit, _, asymptotes = problem.parameters()
    sums = grid_sums(found, logit, node, asymptotes, True)
    ability, effect = step_models(
        jnp.asarray(problem.ability), jnp.asarray(problem.effect), jnp.asarray(0.25), sums
    )
    answers = problem.counts()[1]

    def penalised(ability, effect):
        value = _expected_log_likelihood(problem, answers, ability, effect)
        return value - 0.5 * np.sum(ability**2) - 0.5 * np.sum(effect**2) / 0.25

    after = penalised(np.asarray(ability), np.asarray(effect))
    assert after > penalised(problem.ability, problem.effect) + 1


def test_blocks_and_order_do_not_matter(problem):
    rng = np.random.default_rng(0)
    models, items = rng.permutation(N_MODELS), rng.permutation(N_ITEMS)
    expected, _, _ = _counted(problem, 16)
    in_one, _, _ = _counted(problem, 64)
    jax.tree.map(lambda a, b: close(a, b, kind="reduction", scale=10), in_one, expected)
    permuted, _, _ = _counted(problem, 16, items=items)
    jax.tree.map(lambda a, b: close(a, b, kind="reduction", scale=10), permuted, expected)
    other = Problem()
    for name in ("ability", "effect", "covariance", "spread", "response", "weight"):
        setattr(other, name, getattr(problem, name)[models])
    turned, _, _ = _counted(other, 16)
    close(turned.log_likelihood, expected.log_likelihood, kind="reduction")
    close(turned.right, np.asarray(expected.right)[:, models], kind="reduction", scale=10)


def test_a_model_without_responses_is_as_if_it_were_not_there(problem):
    empty = Problem()
    empty.response[2] = MISSING
    found, _, _ = _counted(empty, 16)
    assert not np.any(np.asarray(found.right)[:, 2])
    assert not np.any(np.asarray(found.wrong)[:, 2])
    total, answers, _ = empty.counts()
    close(found.log_likelihood, total, kind="reduction")
    close(found.right, answers[0], kind="reduction", scale=10)


def test_blocks_fit_the_cache_and_the_data():
    assert items_per_block(1125, 41_871, 1) == 128
    assert items_per_block(1125, 240, 4) == 64
    assert items_per_block(20_000, 10**6, 1) == 64
    assert items_per_block(10, 10**6, 1) == 1024
