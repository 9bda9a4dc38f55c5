"""What every estimator must do, asked of all of them: one suite, parametrised over the members."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.driver import Look, Progress, Status, drive
from irtjax.fit.item_step import (
    ExpectedCounts,
    ItemModel,
    ItemParameters,
    expected_log_likelihood,
    item_derivatives,
    log_prior,
)
from irtjax.fit.result import FitResult
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Normal, Priors
from irtjax.model.response import Asymptotes, cell_derivatives, log_likelihood
from irtjax.model.spec import ModelSpec
from irtjax.parallel import items_mesh
from tests.fit.conformance import CORE, MEMBERS, everything, fitted_member
from tests.fit.fitting import assert_same_bits
from tests.fit.test_compilations import compilations
from tests.tolerances import close

# Another order of sums changes when the loop stops: what is left to go then, as a probability.
SETTLED = 2e-3
# The components of a mixture hardly differ along some directions: with 24 models it stalls on a
# flat bound, .017 apart in a probability at the same bound (its objective is compared as well). So
# do the node weights of an empirical distribution: eight orders of 240 models ended .0005 to .005
# from the float64 optimum and within 6e-6 of its likelihood.
LOOSE = {"items-mixture": 10 * SETTLED, "models-empirical": 10 * SETTLED}


@pytest.fixture(params=list(MEMBERS))
def every(request):
    """Each member's fit by name."""
    return request.param


@pytest.fixture(params=CORE)
def core(request):
    """One member of each way of computing."""
    return request.param


def _rebuilt(data, dense, models=slice(None), items=slice(None), weight=None):
    """The same ids with other responses, rows and columns in an order."""
    return ResponseMatrix.from_dense(
        dense[models][:, items],
        model_ids=data.model_ids[models].tolist(),
        item_ids=data.item_ids[items].tolist(),
        weight=weight,
        item_metadata=data.item_metadata.iloc[items].reset_index(drop=True),
    )


def test_it_converges_to_finite_estimates_and_probabilities_between_the_asymptotes(every):
    fit = fitted_member(every)
    assert fit.status in ("converged", "stalled")
    items, models = fit.item_parameters(), fit.abilities()
    numbers = [items.filter(regex="slope|intercept|guessing|feasibility|discrimination")]
    numbers += [models.filter(regex=r"ability(_se)?$|expected_score")]
    for table in numbers:
        assert np.isfinite(table.to_numpy()).all()
    assert items.item_id.tolist() == fit.data.item_ids.tolist()
    assert models.model_id.tolist() == fit.data.model_ids.tolist()
    p = everything(fit)
    low, high = items.guessing.to_numpy(), items.feasibility.to_numpy()
    assert np.all((p >= low - 1e-6) & (p <= high + 1e-6))
    assert np.all((p > 0) & (p < 1))
    assert fit.spec.has_guessing == bool(np.any(low > 0))
    assert fit.spec.has_feasibility == bool(np.any(high < 1))


def test_it_says_what_it_did(every):
    fit, member = fitted_member(every), MEMBERS[every]
    report = json.loads(json.dumps(fit.report))
    assert report["estimator"] == member.estimator
    side = {"marginal-items": "items", "marginal-models": "models"}
    objective = {"marginal-items": "elbo", "marginal-models": "marginal", "joint-map": "joint"}
    assert report["integrated"] == fit.integrated == side.get(member.estimator, "none")
    assert report["log_likelihood_is"] == objective.get(member.estimator, "responses")
    assert report["n_steps"] == len(report["trace"]["objective"])
    assert report["n_responses"] == fit.data.n_responses


def test_saved_and_loaded_it_predicts_the_same(every, tmp_path):
    fit = fitted_member(every)
    fit.save(tmp_path / "run")
    loaded = FitResult.load(tmp_path / "run")
    assert_same_bits(loaded.parameters, fit.parameters)
    np.testing.assert_array_equal(everything(loaded), everything(fit))
    pd.testing.assert_frame_equal(loaded.item_parameters(), fit.item_parameters())
    pd.testing.assert_frame_equal(loaded.abilities(), fit.abilities())


def test_the_expected_score_is_the_mean_prediction(every):
    fit = fitted_member(every)
    # A score over nodes knows the shape of a posterior that a prediction takes for a normal one.
    atol = 0.03 if fit.integrated == "models" else 2e-4
    np.testing.assert_allclose(
        fit.abilities().expected_score, everything(fit).mean(axis=1), atol=atol
    )


def test_case_18_the_hard_items_have_the_larger_difficulty(every):
    fit = fitted_member(every)
    items = fit.item_parameters()
    rises = ~items["flags"].str.contains("negative_slope|weak_slope")
    kept = items[rises & items.difficulty.notna()]
    ranks = kept[["difficulty", "p_correct", "intercept"]].rank()
    assert ranks.corr().loc["p_correct", "intercept"] > 0.7
    if fit.spec.dims == 1 and "group" not in dict(MEMBERS[every].settings):
        assert ranks.corr().loc["p_correct", "difficulty"] < -0.7


def test_the_order_of_models_and_items_does_not_matter(core):
    member, rng = MEMBERS[core], np.random.default_rng(1)
    data = member.data
    models, items = rng.permutation(data.n_models), rng.permutation(data.n_items)
    moved = member.fit(_rebuilt(data, data.to_dense(), models, items))
    before = fitted_member(core)
    atol = LOOSE.get(core, SETTLED)
    if member.estimator == "psn":
        # Another order is another validation part and other minibatches, as another seed is.
        gap = everything(moved) - everything(before)[models][:, items]
        spread = everything(member.fit(seed=1)) - everything(before)
        assert np.sqrt(np.mean(gap**2)) < 1.3 * np.sqrt(np.mean(spread**2)) < 0.15
        assert moved.abilities().model_id.tolist() == data.model_ids[models].tolist()
        return
    np.testing.assert_allclose(everything(moved), everything(before)[models][:, items], atol=atol)
    at_the_end, moved_end = (
        fit.report["trace"]["objective"][-1] for fit in (fitted_member(core), moved)
    )
    assert moved_end == pytest.approx(at_the_end, rel=2e-4)
    assert moved.abilities().model_id.tolist() == data.model_ids[models].tolist()
    ability = [f"dim{k + 1}_ability" for k in range(member.spec.dims)]
    np.testing.assert_allclose(
        moved.abilities()[ability], before.abilities()[ability].iloc[models], atol=5 * atol
    )


def test_case_4_missing_is_a_deleted_row_and_sparse_is_dense(core):
    member = MEMBERS[core]
    data, before = member.data, everything(fitted_member(core))
    dense = data.to_dense()
    seen = np.argwhere(dense >= 0)
    long = ResponseMatrix.from_cells(
        seen[:, 0],
        seen[:, 1],
        dense[seen[:, 0], seen[:, 1]],
        model_ids=data.model_ids.tolist(),
        item_ids=data.item_ids.tolist(),
        item_metadata=data.item_metadata,
    )
    sparse = data.replace(dense=None, dense_weight=None, sparse=data.cells())
    for other in (long, sparse):
        assert other.n_responses == data.n_responses
        np.testing.assert_allclose(everything(member.fit(other)), before, atol=SETTLED)


@pytest.mark.parametrize("name", ["items-2pl-2d", "models-2pl", "joint-2pl-2d"])
def test_the_size_of_blocks_does_not_matter(name, monkeypatch):
    before = everything(fitted_member(name))
    monkeypatch.setattr("irtjax.data.blocks._CELLS_PER_BLOCK", 1)
    cut = MEMBERS[name].fit()
    np.testing.assert_allclose(everything(cut), before, atol=SETTLED)


def _driven(name, **look):
    """The route, blocks, and state and progress at the end of the loop."""
    member = MEMBERS[name]
    settings = FitSettings(estimator=member.estimator, **dict(member.settings))
    route, _ = choose_route(member.data, member.spec, Priors(), settings)
    blocks = route.lay_out(items_mesh())
    with jax.set_mesh(items_mesh()):
        state = route.init(blocks, jax.random.key(0))
        state, progress = drive(route.estimator, blocks, state, look=Look(**look))
    return route, blocks, state, progress


def _poisoned(state):
    """The state with a NaN in the first ability, slope, or whatever the loop moves first."""
    named, tree = jax.tree_util.tree_flatten_with_path(state)
    wanted = (".guarded.points", ".outer.ability")
    leaves = [
        leaf.ravel().at[0].set(jnp.nan).reshape(leaf.shape)
        if jax.tree_util.keystr(path) in wanted
        else leaf
        for path, leaf in named
    ]
    return jax.tree_util.tree_unflatten(tree, leaves)


@pytest.mark.parametrize("name", ["items-2pl-2d", "models-2pl", "joint-2pl"])
def test_cases_13_and_14_capped_converged_and_diverged_are_three_statuses(name):
    capped = MEMBERS[name].fit(max_steps=1)
    assert capped.status == "max_steps"
    assert capped.report["n_steps"] == 1
    assert "max-steps" in capped.report["reason"]
    assert np.isfinite(everything(capped)).all()
    route, blocks, state, progress = _driven(name)
    assert progress.status is Status.converged
    with jax.set_mesh(items_mesh()):
        # From where it ended: converged again at the first occasion, and nothing has moved.
        _, again = drive(route.estimator, blocks, state, look=Look())
        assert again.status is Status.converged
        assert again.n_steps <= 2 * Look().every
        assert max(again.trace.change) < 2e-3
        bad = _poisoned(state)
        kept, after = drive(
            route.estimator, blocks, bad, look=Look(), progress=Progress(progress.trace)
        )
    assert after.status is Status.diverged
    assert after.trace == progress.trace
    assert "Not finite: " in after.reason
    assert "last good step" in after.reason
    assert_same_bits(kept, bad)


@pytest.mark.parametrize("name", ["items-2pl-2d", "models-2pl", "joint-2pl", "joint-2pl-2d"])
def test_cases_5_and_8_extreme_and_empty_models_and_items_are_kept(name):
    member = MEMBERS[name]
    dense = member.data.to_dense().copy()
    dense[0], dense[1] = np.where(dense[:2] < 0, -1, [[1], [0]])
    dense[:, 0], dense[:, 1] = np.where(dense[:, :2] < 0, -1, [1, 0]).T
    # Where they meet, one of the two would not be extreme.
    dense[0, 1], dense[1, 0] = -1, -1
    dense[3], dense[:, 5] = -1, -1
    fit = member.fit(_rebuilt(member.data, dense))
    models, items = fit.abilities(), fit.item_parameters()
    assert len(models), len(items) == dense.shape
    numbers = models.filter(regex=r"ability(_se)?$|expected_score")
    assert np.isfinite(numbers.to_numpy()).all()
    assert np.isfinite(items.filter(regex="slope|intercept").to_numpy()).all()
    assert models["flags"][3] == "no_responses"
    assert models.dim1_ability[3] == pytest.approx(0, abs=0.3)
    assert items["flags"].str.contains("all_right")[0]
    assert items["flags"].str.contains("all_wrong")[1]
    assert items["flags"].str.contains("no_responses")[5]
    # With few items a model with one mistake among more answers may stand higher.
    score = models.expected_score.drop(3)
    assert "all_right" in models["flags"][0]
    assert "all_wrong" in models["flags"][1]
    if member.estimator != "marginal-models":
        assert (score.idxmax(), score.idxmin()) == (0, 1)
    assert score[0] > score.quantile(0.85)
    assert score[1] < score.quantile(0.15)
    assert items.intercept[0] > items.intercept.drop([0, 5]).quantile(0.75)
    assert items.intercept[1] < items.intercept.drop([1, 5]).quantile(0.25)
    error = models.dim1_ability_se
    assert error[:2].min() > error.drop([0, 1, 3]).median()
    assert error[3] >= error.drop(3).max() - 1e-3
    assert items.intercept_se[:2].min() > items.intercept_se.drop([0, 1, 5]).median()


def test_build_8_a_cell_of_k_out_of_n_is_n_answers():
    # The same parameters: log-likelihood and derivatives are those of n cells with 0 or 1.
    k, n = np.array([3.0, 0.0, 5.0]), np.array([4.0, 2.0, 5.0])
    logit = jnp.asarray([0.3, -1.2, 2.0])
    asymptotes = Asymptotes.from_natural(jnp.full(3, 0.2), jnp.full(3, 0.9))
    for given in (None, asymptotes):
        at_once = n * log_likelihood(logit, jnp.asarray(k / n), given)
        right, wrong = (log_likelihood(logit, jnp.full(3, y), given) for y in (1.0, 0.0))
        close(at_once, k * right + (n - k) * wrong, scale=10)
        whole, one, none = (
            cell_derivatives(logit, jnp.asarray(y), given) for y in (k / n, np.ones(3), np.zeros(3))
        )
        for name in ("first", "negative_second"):
            apart = k * getattr(one, name) + (n - k) * getattr(none, name)
            close(n * getattr(whole, name), apart, scale=10)


def test_build_8_counts_at_a_node_are_answers_at_copies_of_the_node():
    model = ItemModel(ModelSpec("3pl"), Priors())
    items = ItemParameters(
        jnp.asarray([[1.2]]),
        jnp.asarray([0.4]),
        Asymptotes.from_natural(jnp.asarray([0.2]), jnp.asarray([1.0])),
    )
    node = jnp.asarray([[-1.0], [0.5]])
    counts = ExpectedCounts(node, jnp.asarray([[3.0, 1.0]]), jnp.asarray([[1.0, 2.0]]))
    right = jnp.asarray([[1.0, 1, 1, 0, 1, 0, 0]])
    copies = ExpectedCounts(node[jnp.asarray([0, 0, 0, 0, 1, 1, 1])], right, 1 - right)
    one, other = (expected_log_likelihood(model, items, c) for c in (counts, copies))
    close(one, other, kind="reduction", scale=10)
    assert float((one - log_prior(model, items))[0]) < 0
    whole, apart = (item_derivatives(model, items, c) for c in (counts, copies))
    close(whole.gradient, apart.gradient, kind="reduction", scale=10)
    close(whole.information, apart.information, kind="reduction", scale=10)


@pytest.mark.parametrize("name", ["models-2pl", "joint-2pl"])
def test_build_8_a_weight_of_2_is_two_copies_of_the_items(name):
    # Each copy brings its prior: half of one each, by a standard deviation of sqrt(2) times.
    member = MEMBERS[name]
    data = member.data
    dense = data.to_dense()[:, : data.n_items // 2]
    twice = ResponseMatrix.from_dense(dense, weight=np.full(dense.shape, 2.0))
    copies = ResponseMatrix.from_dense(np.concatenate([dense, dense], axis=1))
    single = member.fit(twice, priors=Priors(slope=Normal(1, 1), intercept=Normal(0, 2)))
    wide = Priors(slope=Normal(1, 2**0.5), intercept=Normal(0, 2 * 2**0.5))
    double = member.fit(copies, priors=wide)
    assert single.data.n_responses * 2 == double.data.n_responses
    half = dense.shape[1]
    np.testing.assert_allclose(everything(single), everything(double)[:, :half], atol=2 * SETTLED)
    np.testing.assert_allclose(everything(single), everything(double)[:, half:], atol=2 * SETTLED)
    np.testing.assert_allclose(
        single.abilities().dim1_ability_se, double.abilities().dim1_ability_se, rtol=0.05
    )


@pytest.mark.parametrize("name", ["items-2pl-2d", "models-2pl", "joint-2pl"])
def test_case_12_fractions_are_fitted_by_their_likelihood(name):
    member, rng = MEMBERS[name], np.random.default_rng(0)
    dense = member.data.to_dense().astype(float)
    dense[dense < 0] = np.nan
    soft = np.clip(0.8 * dense + 0.2 * rng.random(dense.shape), 0, 1)
    fit = member.fit(_rebuilt(member.data, soft))
    assert fit.status in ("converged", "stalled")
    seen = ~np.isnan(soft)
    # Nearer to the fractions than the item means are.
    items = np.nanmean(soft, axis=0)
    away = np.abs(everything(fit) - soft)[seen].mean()
    assert away < np.abs(items - soft)[seen].mean()


def test_case_15_counts_are_safe_for_140_533_models_and_21_items():
    rng = np.random.default_rng(0)
    n_models, n_items, n_patterns = 140_533, 21, 300
    theta = rng.normal(size=(n_patterns, 1))
    patterns = (rng.random((n_patterns, n_items)) < 1 / (1 + np.exp(-theta))).astype(np.int8)
    patterns = np.unique(patterns, axis=0)
    which = rng.integers(0, len(patterns), n_models)
    which[: len(patterns)] = np.arange(len(patterns))
    data = ResponseMatrix.from_dense(patterns[which])
    fit = MEMBERS["models-2pl"].fit(data)
    assert fit.report["estimator"] == "marginal-models"
    assert fit.report["n_responses"] == n_models * n_items
    assert fit.report["n_patterns"] == len(patterns)
    items, models = fit.item_parameters(), fit.abilities()
    assert (items.n_responses == n_models).all()
    np.testing.assert_allclose(items.p_correct, patterns[which].mean(axis=0), rtol=1e-12)
    assert len(models) == n_models
    # The last cell of the flat index is of the last model and item.
    assert fit.predict_cells([n_models - 1], [n_items - 1])[0] == pytest.approx(
        everything_of(fit, which, len(patterns))[-1], abs=1e-6
    )
    alike = models.groupby(which).dim1_ability.nunique()
    assert (alike == 1).all()
    assert np.corrcoef(models.dim1_ability, models.p_correct)[0, 1] > 0.9


def everything_of(fit, which, n_patterns):
    """Last item's predictions for the first model of each model's pattern."""
    first = np.array([np.flatnonzero(which == pattern)[0] for pattern in range(n_patterns)])
    last = np.full(n_patterns, fit.data.n_items - 1)
    return fit.predict_cells(first, last)[which]


@pytest.fixture(scope="module")
def in_float64(tmp_path_factory):
    """Predictions of the core members in a process with 64-bit floats."""
    path = tmp_path_factory.mktemp("x64") / "predictions.npz"
    program = (
        "import sys, numpy as np\n"
        "from tests.fit.conformance import CORE, everything, fitted_member\n"
        "np.savez(sys.argv[1], **{name: everything(fitted_member(name)) for name in CORE})\n"
    )
    environment = os.environ | {"JAX_ENABLE_X64": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(path)


@pytest.mark.skipif(jax.config.jax_enable_x64, reason="compares float32 with float64")
def test_float32_is_float64_to_what_the_loop_leaves(core, in_float64):
    atol = LOOSE.get(core, SETTLED)
    if MEMBERS[core].estimator == "psn":
        # Hundreds of minibatches drive rounding apart, and the epoch to stop at with it; a step
        # is compared in tests/nets.
        gap = everything(fitted_member(core)) - in_float64[core]
        assert np.sqrt(np.mean(gap**2)) < 0.1
        return
    np.testing.assert_allclose(everything(fitted_member(core)), in_float64[core], atol=atol)


@pytest.mark.compilations
@pytest.mark.parametrize("name", ["models-2pl", "joint-2pl"])
def test_case_16_a_second_fit_of_the_same_shape_compiles_nothing(name):
    member = MEMBERS[name]
    first = fitted_member(name)
    everything(first)
    dense = member.data.to_dense()
    other = np.where(dense < 0, dense, np.random.default_rng(1).permutation(1 - dense % 2, axis=1))
    with compilations() as seen:
        second = member.fit(_rebuilt(member.data, other))
        everything(second)
    assert second.report["n_steps"] > 0
    assert len(seen) == 0
