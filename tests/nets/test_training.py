"""Towers, their loss and their steps, against NumPy and against each other."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.data.simulate import simulate
from irtjax.fit.item_step import ItemParameters, log_prior
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets import training
from irtjax.nets.route import PsnRoute
from irtjax.nets.settings import Network
from irtjax.nets.towers import item_parameters
from irtjax.parallel import items_mesh

NETWORK = Network(embedding=8, hidden=6, batch_size=16, learning_rate=0.003, weight_decay=0.0)


@pytest.fixture(scope="module", params=["1pl", "2pl", "4pl"])
def problem(request):
    """Towers, first state and cells of a small problem."""
    spec = ModelSpec(request.param)
    data = simulate(ModelSpec("2pl"), n_models=9, n_items=20, missing=0.1).data
    settings = FitSettings(estimator="psn", network=NETWORK)
    route = PsnRoute(data, spec, Priors(), settings)
    mesh = items_mesh()
    blocks = route.lay_out(mesh)
    with jax.set_mesh(mesh):
        state = route.init(blocks, jax.random.key(0))
    return spec, route.estimator.towers(blocks, spec, route.priors), state, blocks


def _drawn(blocks, mean, sd):
    """An epoch over all cells, in a frame."""
    frame = (jnp.asarray([mean], jnp.zeros(()).dtype), jnp.asarray([sd], jnp.zeros(()).dtype))
    return training.Drawn(blocks.cells.weight, blocks.share[1], frame)


def _tower(weights, row):
    """The forward pass in NumPy, float64."""
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), dict(weights))
    state = np.maximum(np.asarray(row, np.float64) + np.asarray(weights["bias"]), 0)
    for k in range(len(weights["hidden"])):
        layer = weights["hidden"][k]
        state = np.maximum(state @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"]), 0)
    out = weights["out"]
    return state @ np.asarray(out["kernel"]) + np.asarray(out["bias"])


@pytest.mark.oracle
def test_both_towers_give_what_numpy_gives(problem):
    spec, towers, state, blocks = problem
    ability, items = training.outputs(towers, state.weights, blocks)
    pure = jax.tree.map(np.asarray, state.weights)
    np.testing.assert_allclose(ability, _tower(pure.model_tower, pure.model_table), atol=1e-6)
    out = _tower(pure.item_tower, pure.item_table[:-1])
    n_slopes = 0 if spec.family == "1pl" else 1
    if n_slopes:
        np.testing.assert_allclose(items.slope[:, 0], 1 + out[:, 0], atol=1e-6)
    np.testing.assert_allclose(items.intercept, out[:, n_slopes], atol=1e-6)
    if spec.family == "4pl":
        c, d = items.asymptotes.guessing, items.asymptotes.feasibility
        np.testing.assert_allclose(c, 1 / (1 + np.exp(2.2 - out[:, 2])), atol=1e-6)
        assert np.all(np.asarray(d) > np.asarray(c))


def test_asymptotes_start_where_the_setting_says():
    out = jnp.zeros((2, 4))
    apart, near = (item_parameters(ModelSpec("4pl"), out, s) for s in ("apart", "near_zero"))
    np.testing.assert_allclose(apart.asymptotes.guessing, 0.1, atol=1e-3)
    np.testing.assert_allclose(apart.asymptotes.feasibility, 0.95, atol=0.01)
    np.testing.assert_allclose(near.asymptotes.guessing, 0.5)
    np.testing.assert_allclose(near.asymptotes.feasibility, 0.75)


@pytest.mark.oracle
def test_the_loss_is_the_likelihood_and_each_items_share_of_its_prior(problem):
    spec, towers, state, blocks = problem
    n_cells = len(blocks.cells.model) - 1
    batch = blocks.cells.taken(jnp.arange(n_cells + 1))
    row = state.weights.item_table[batch.item]
    drawn = _drawn(blocks, 0.3, 1.4)
    loss, missed = training._loss(towers, state.weights, row, blocks, batch, drawn)
    ability, items = training.outputs(towers, state.weights, blocks)
    theta, slope = np.asarray(ability)[:, 0], np.asarray(items.slope)[:, 0]
    c, d = 0.0, 1.0
    if spec.family == "4pl":
        c, d = (np.asarray(getattr(items.asymptotes, n)) for n in ("guessing", "feasibility"))
    p = c + (d - c) / (1 + np.exp(-(np.outer(theta, slope) + np.asarray(items.intercept))))
    at = (np.asarray(blocks.cells.model)[:-1], np.asarray(blocks.cells.item)[:-1])
    y = np.asarray(blocks.cells.response)[:-1]
    expected = -np.mean(y * np.log(p[at]) + (1 - y) * np.log(1 - p[at]))
    assert float(missed) == pytest.approx(expected, rel=1e-5)

    moved = ItemParameters(
        items.slope * 1.4, items.intercept + 0.3 * items.slope[:, 0], items.asymptotes
    )
    if spec.has_common_slope:
        return  # its slope is fixed, and so is the slope's prior
    prior = np.asarray(log_prior(towers.item_model, moved))
    seen = np.asarray(blocks.share[1]) > 0
    assert float(loss) == pytest.approx(expected - prior[seen].sum() / n_cells, rel=1e-4)


@pytest.mark.oracle
def test_a_step_on_touched_rows_is_the_first_dense_step(problem):
    _, towers, state, blocks = problem
    dense = dataclasses.replace(towers, network=dataclasses.replace(NETWORK, updates="dense"))
    places = jnp.arange(16)
    found = []
    for each, step in ((towers, training._touched_step), (dense, training._dense_step)):
        adam = training._adam(each, 4)
        moments = training.first_moments(each, state.weights, 4)
        weights, _, missed = jax.jit(step, static_argnums=(0, 1))(
            each, adam, state.weights, moments, blocks, places, _drawn(blocks, 0, 1)
        )
        found.append((weights, missed))
    (touched, missed), (every, also) = found
    assert float(missed) == pytest.approx(float(also), rel=1e-5)
    for a, b in zip(jax.tree.leaves(touched), jax.tree.leaves(every), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)
    moved = np.any(np.asarray(touched.item_table) != np.asarray(state.weights.item_table), axis=1)
    assert set(np.flatnonzero(moved)) <= set(np.asarray(blocks.cells.item)[:16])


def test_rows_that_a_batch_does_not_touch_stay(problem):
    _, towers, state, blocks = problem
    _, moments, missed = training.epoch(
        towers,
        state.weights,
        state.moments,
        blocks,
        jax.random.key(2),
        state.ability,
        jnp.array(True),
    )
    n_steps = -(-(len(blocks.cells.model) - 1) // 16)
    answered = np.bincount(np.asarray(blocks.cells.item)[:-1], minlength=20) > 0
    counts = np.asarray(moments.rows[2])[:20, 0]
    assert np.all(counts[answered] >= 1)
    assert np.all(counts <= n_steps)
    assert np.isfinite(float(missed))
