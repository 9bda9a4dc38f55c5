"""Empirical item distributions as an estimator: the bound, recovery, invariances, errors, files."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.api import fit
from irtjax.fit.driver import Look, advance
from irtjax.fit.grid_items import GridItems
from irtjax.fit.grid_parameters import grid_vector
from irtjax.fit.guarded import start_guarded
from irtjax.fit.item_grid import ItemGrid, update_weights, weights_log_prior
from irtjax.fit.items_route import ItemsRoute
from irtjax.fit.result import FitResult
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.model.metrics import all_metrics
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec
from irtjax.parallel import items_mesh
from tests.fit.fitting import placed_blocks, quiet_fit, simulated

EMPIRICAL = {"item_distribution": "empirical"}


@pytest.mark.oracle
def test_plain_steps_never_lower_the_bound():
    # Effects, two dims and both asymptotes: everything that moves.
    spec = ModelSpec("4pl", 2)
    blocks, _, mesh = placed_blocks(simulated("4pl-2d").data)
    estimator = GridItems(4, has_effects=True)
    with jax.set_mesh(mesh):
        state, bounds = estimator.init(blocks, spec, Priors(), jax.random.key(0)), []
        for _ in range(12):
            # The loop of the fits below, one step at a time: they share its compilation.
            advanced = advance(estimator, Look.every, blocks, state, 1)
            state = advanced.state
            bounds.append(float(advanced.info.objective[0]))
            start = start_guarded(state.guarded.plain, estimator.acceleration)
            state = dataclasses.replace(state, guarded=start)
    assert bounds[-1] > bounds[0] + 50
    rounding = {"float32": 1e-2, "float64": 1e-9}[state.guarded.plain.dtype.name]
    assert np.all(np.diff(bounds) > -rounding)


def test_the_vector_leads_back_to_the_parameters():
    blocks, _, mesh = placed_blocks(simulated("4pl-2d").data)
    estimator = GridItems(4, has_effects=True)
    with jax.set_mesh(mesh):
        start = estimator.init(blocks, ModelSpec("4pl", 2), Priors(), jax.random.key(0)).start
    lower = start.asymptotes.lower
    start = dataclasses.replace(start, asymptotes=Asymptotes(lower, jnp.full_like(lower, jnp.inf)))
    vector, back = grid_vector(start)
    again = back(vector)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), again, start)
    moved = back(vector + 0.1)
    np.testing.assert_allclose(np.exp(moved.log_weight).sum(axis=1), 1, rtol=1e-5)
    assert np.all(np.isposinf(moved.asymptotes.upper))


def test_weights_maximise_what_they_say():
    rng = np.random.default_rng(0)
    priors, mass = Priors(share_weight=7.0), rng.gamma(0.5, 10, (3, 20))
    mass[2] = 0
    log_weight = jnp.log(jnp.asarray(rng.dirichlet(np.ones(20), 3)))
    first = rng.dirichlet(np.ones(20))
    start = jnp.log(jnp.asarray(first))

    def objective(log_weight):
        prior = weights_log_prior(jnp.asarray(log_weight), start, priors)
        return float(np.sum(mass * log_weight) + prior)

    values = [objective(np.asarray(log_weight))]
    for _ in range(200):
        log_weight = update_weights(log_weight, jnp.asarray(mass), start, priors)
        values.append(objective(np.asarray(log_weight)))
    assert np.all(np.diff(values) > -1e-3)
    # A group without items has what the groups have in common, and its part of the start.
    weight = np.exp(np.asarray(log_weight, np.float64))
    np.testing.assert_allclose(weight.sum(axis=1), 1, rtol=1e-5)
    common = np.exp(np.log(weight).mean(axis=0))
    expected = 7 * common / common.sum() + 10 / 3 * first
    np.testing.assert_allclose(weight[2], expected / expected.sum(), atol=1e-3)
    for _ in range(20):
        other = weight * np.exp(rng.normal(0, 0.05, weight.shape))
        assert objective(np.log(other / other.sum(axis=1, keepdims=True))) < values[-1] + 1e-3


@functools.cache
def two_clusters():
    """16 models x 1,200 items: half hard and telling, half easy and saying nothing.

    A fifth of the cells is held out.

    No normal distribution of (slope, intercept) has two modes.
    """
    rng = np.random.default_rng(4)
    ability = rng.normal(size=16)
    ability = (ability - ability.mean()) / ability.std()
    is_hard = rng.random(1200) < 0.5
    slope = np.where(is_hard, 2.5, 0.0)
    intercept = np.where(is_hard, -2.0, 2.5)
    p = expit(ability[:, None] * slope + intercept)
    response = (rng.random(p.shape) < p).astype(np.int8)
    held = rng.random(p.shape) < 0.2
    data = ResponseMatrix.from_dense(np.where(held, np.int8(MISSING), response))
    return data, ability, p, response, held, is_hard


@functools.cache
def clusters_fit(distribution):
    return quiet_fit(two_clusters()[0], item_distribution=distribution, max_steps=150)


def _held_out_loss(result):
    _, _, _, response, held, _ = two_clusters()
    cells = np.nonzero(held)
    return all_metrics(result.predict_cells(*cells), response[held])["log_loss"]


@pytest.mark.slow
def test_two_clusters_of_items_where_the_normal_is_wrong():
    _, ability, p, response, held, is_hard = two_clusters()
    found = clusters_fit("empirical")
    truth = all_metrics(p[held], response[held])["log_loss"]
    loss, normal = _held_out_loss(found), _held_out_loss(clusters_fit("normal"))
    # The truth knows each item's cluster; what is above it is what 13 responses leave open.
    assert truth < loss < normal - 0.002
    estimated = np.asarray(found.parameters.ability)[:, 0]
    error = np.sqrt(np.asarray(found.parameters.ability_covariance)[:, 0, 0])
    # Four standard errors: 16 models, one of which may be two off.
    assert np.all(np.abs(estimated - ability) < 4 * error)
    slope = found.item_parameters()["dim1_slope"].to_numpy()
    assert slope[is_hard].mean() > 4 * abs(slope[~is_hard].mean())


def test_files_and_predictions_come_back(tmp_path):
    found = clusters_fit("empirical")
    assert found.report["estimator"] == "marginal-items"
    assert found.report["item_distribution"] == "empirical"
    assert found.report["grid_nodes"] == 231
    found.save(tmp_path / "run")
    again = FitResult.load(tmp_path / "run")
    cells = np.nonzero(two_clusters()[4])
    np.testing.assert_array_equal(again.predict_cells(*cells), found.predict_cells(*cells))
    assert again.item_parameters().equals(found.item_parameters())
    share = np.asarray(again.parameters.share)
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-4)


def test_the_order_of_models_and_items_does_not_matter():
    data = two_clusters()[0]
    rng = np.random.default_rng(1)
    models, items = rng.permutation(data.n_models), rng.permutation(data.n_items)
    turned = ResponseMatrix.from_dense(
        data.to_dense()[models][:, items],
        model_ids=data.model_ids[models].tolist(),
        item_ids=data.item_ids[items].tolist(),
    )
    before = clusters_fit("empirical")
    after = quiet_fit(turned, **EMPIRICAL, max_steps=150)
    np.testing.assert_allclose(
        after.abilities()["dim1_ability"], before.abilities()["dim1_ability"][models], atol=5e-3
    )
    np.testing.assert_allclose(
        after.abilities()["expected_score"], before.abilities()["expected_score"][models], atol=1e-3
    )


@pytest.mark.parametrize("kind", ["1pl", "4pl-2d"])
def test_every_family_with_effects(kind):
    made = simulated(kind)
    spec = ModelSpec("1pl") if kind == "1pl" else ModelSpec("4pl", 2)
    found = quiet_fit(made.data, spec, group="benchmark", **EMPIRICAL, nodes=4, max_steps=60)
    assert found.status in ("converged", "max_steps", "stalled")
    tables = (found.item_parameters(), found.abilities())
    for table in tables:
        numbers = table.select_dtypes("number").drop(
            columns=[c for c in table if "clustered" in c or c.startswith("difficulty")]
        )
        assert np.isfinite(numbers.to_numpy()).all()
    ability = np.asarray(found.parameters.ability, np.float64)
    np.testing.assert_allclose(ability.T @ ability / len(ability), np.eye(spec.dims), atol=1e-4)
    # Effects are residuals: nothing of (theta, 1) is left in them.
    design = np.column_stack([ability, np.ones(len(ability))])
    if kind == "1pl":
        design = design[:, -1:]
    assert np.abs(design.T @ np.asarray(found.parameters.effect)).max() < 1e-3
    if kind == "1pl":
        slope = tables[0]["dim1_slope"].to_numpy()
        np.testing.assert_allclose(slope, slope[0], rtol=1e-4)
    else:
        assert 0.02 < np.asarray(found.parameters.guessing).min()
        assert np.asarray(found.parameters.feasibility).max() < 1


@pytest.mark.parametrize(
    "spec, settings, message",
    [
        (ModelSpec("2pl", 4), {}, "up to 3, not 4; use item distribution mixture"),
        (ModelSpec("2pl", 3), {"nodes": 21}, "grid of 379,701 nodes with 3 dims"),
        (ModelSpec(), {"estimator": "marginal-models"}, "does not go with"),
    ],
)
def test_what_is_refused(spec, settings, message):
    with pytest.raises(InputError, match=message) as caught:
        fit(simulated("2pl").data, spec, **EMPIRICAL, **settings)
    assert "\n" not in str(caught.value)


def test_auto_chooses_marginal_items():
    settings = FitSettings(item_distribution="empirical")
    route, reason = choose_route(simulated("2pl").data, ModelSpec(), Priors(), settings)
    assert isinstance(route, ItemsRoute)
    assert isinstance(route.estimator, GridItems)
    assert reason.startswith("auto: an item distribution")


@pytest.mark.parametrize("narrowness, is_warned", [(0.5, False), (0.9, True)])
def test_a_grid_that_is_too_coarse_is_a_warning(narrowness, is_warned):
    data = simulated("2pl").data
    settings = FitSettings(item_distribution="empirical")
    route = ItemsRoute(data, ModelSpec(), Priors(), settings)
    blocks = route.lay_out(items_mesh())
    share = np.full((blocks.n_blocks, 21, blocks.items_per_block), (1 - narrowness) / 20)
    share[:, 7] = narrowness
    estimates = SimpleNamespace(items=SimpleNamespace(share=share))
    notes = route.notes(estimates)
    assert notes["grid_narrowness"] == pytest.approx(narrowness)
    said = notes.get("warnings", [])
    assert len(said) == is_warned
    assert all("90% of an item's posterior" in text and "normal" in text for text in said)


def test_nodes_are_a_product_of_slopes_and_intercepts():
    grid = ItemGrid(2, 4)
    assert grid.node.shape == (4 * 4 * 7, 3)
    assert grid.n_nodes == len(np.unique(grid.node, axis=0))
    assert np.exp(grid.log_weight).sum() == pytest.approx(1)
    common = ItemGrid(1, 4, has_common_slope=True)
    assert set(common.node[:, 0]) == {1.0}
    assert common.n_nodes == 7
