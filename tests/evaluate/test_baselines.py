"""Baselines against loops, a general optimiser, and the published table of W1."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.problems import problem_w1
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.data.splits import holdout
from irtjax.errors import InputError
from irtjax.evaluate.baselines import BASELINES, Rasch, predict_baselines, rasch_map
from irtjax.evaluate.heldout import heldout_table
from irtjax.model.spec import ModelSpec


def _data(seed=0, n_models=8, n_items=25, missing=0.3, fractions=False, weighted=False):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1, n_items) - rng.normal(0, 1, (n_models, 1))))
    matrix = (rng.random((n_models, n_items)) < chance).astype(float)
    if fractions:
        matrix = rng.binomial(4, chance) / 4
    matrix[rng.random(matrix.shape) < missing] = -1
    weight = rng.integers(1, 6, matrix.shape) if weighted else None
    return ResponseMatrix.from_dense(matrix, weight=weight)


def _as_sparse(data):
    return data.replace(dense=None, dense_weight=None, sparse=data.cells())


def _all_cells(data):
    model, item = np.divmod(np.arange(data.n_models * data.n_items), data.n_items)
    return Cells(model, item, np.zeros(len(model)), np.ones(len(model)))


def _objective(parameters, data, difficulty_sd=1.5, ability_sd=5.0):
    """The negative log-posterior of `rasch_map`'s docstring and its gradient, in float64."""
    ability, difficulty = np.split(parameters, [data.n_models])
    cells = data.cells()
    logit = ability[cells.model_index] - difficulty[cells.item_index]
    y, w = cells.response.astype(float), cells.weight.astype(float)
    value = np.sum(w * (y * np.logaddexp(0, -logit) + (1 - y) * np.logaddexp(0, logit)))
    value += np.sum(difficulty**2) / (2 * difficulty_sd**2) + np.sum(ability**2) / (
        2 * ability_sd**2
    )
    error = w * (1 / (1 + np.exp(-logit)) - y)
    gradient = np.concatenate(
        [
            np.bincount(cells.model_index, error, data.n_models) + ability / ability_sd**2,
            -np.bincount(cells.item_index, error, data.n_items) + difficulty / difficulty_sd**2,
        ]
    )
    return value, gradient


@pytest.mark.oracle
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "fractions, weighted", [(False, False), (True, False), (False, True), (True, True)]
)
def test_rasch_is_the_maximum_that_a_general_optimiser_finds(sparse, fractions, weighted):
    data = _data(1, fractions=fractions, weighted=weighted)
    best = minimize(
        _objective, np.zeros(33), (data,), "L-BFGS-B", jac=True, options={"gtol": 1e-9, "ftol": 0}
    ).x
    fit = rasch_map(_as_sparse(data) if sparse else data, tolerance=1e-6)
    assert fit.is_converged
    assert fit.ability.dtype == fit.difficulty.dtype == np.float32
    found = np.concatenate([fit.ability, fit.difficulty])
    np.testing.assert_allclose(found, best, atol=2e-5)


@pytest.mark.parametrize("missing_pattern", ["cells", "blocks"])
def test_default_tolerance_is_close_to_the_maximum_on_thin_data(missing_pattern):
    data = simulate(
        ModelSpec(),
        n_models=60,
        n_items=800,
        n_benchmarks=10,
        missing=0.88,
        missing_pattern=missing_pattern,
    ).data
    assert data.sparse is not None
    fit, exact = rasch_map(data), rasch_map(data, tolerance=1e-6, max_passes=5000)
    assert fit.is_converged
    assert exact.is_converged
    np.testing.assert_allclose(fit.ability, exact.ability, atol=2e-3)
    np.testing.assert_allclose(fit.difficulty, exact.difficulty, atol=2e-3)


def test_all_right_all_wrong_and_empty_stay_finite():
    matrix = np.array([[1, 1, 1, -1], [0, 0, 0, -1], [1, 0, 1, -1], [-1, -1, -1, -1]])
    fit = rasch_map(ResponseMatrix.from_dense(matrix))
    assert fit.is_converged
    assert np.isfinite(fit.ability).all()
    assert np.isfinite(fit.difficulty).all()
    assert fit.ability[0] > fit.ability[2] > fit.ability[1]
    assert fit.ability[3] == pytest.approx(0, abs=0.5)
    assert fit.difficulty[3] == pytest.approx(0, abs=0.5)


def test_too_few_passes_are_not_called_converged():
    assert not rasch_map(_data(), max_passes=1).is_converged


def test_blocks_of_cells_do_not_matter(monkeypatch):
    data = _data(3, weighted=True)
    for each in (data, _as_sparse(data)):
        whole = rasch_map(each)
        with monkeypatch.context() as patch:
            patch.setattr("irtjax.evaluate.baselines._CELLS_PER_BLOCK", 24)
            blocked = rasch_map(each)
        np.testing.assert_allclose(blocked.ability, whole.ability, atol=2e-6)
        np.testing.assert_allclose(blocked.difficulty, whole.difficulty, atol=2e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_agree_with_a_loop(weighted, sparse):
    data = _data(2, missing=0.7, fractions=True, weighted=weighted)
    group = np.random.default_rng(0).integers(0, 3, data.n_items)
    cells, asked = data.cells(), _all_cells(data)
    right = cells.weight.astype(float) * cells.response
    overall = (right.sum() + 0.5) / (cells.weight.sum() + 1)
    got = predict_baselines(_as_sparse(data) if sparse else data, asked, group)
    assert tuple(got) == BASELINES
    for k in range(len(asked)):
        of_model = cells.model_index == asked.model_index[k]
        of_both = of_model & (group[cells.item_index] == group[asked.item_index[k]])
        model_mean = (right[of_model].sum() + overall) / (cells.weight[of_model].sum() + 1)
        both_mean = (right[of_both].sum() + model_mean) / (cells.weight[of_both].sum() + 1)
        assert got["model_mean"][k] == pytest.approx(model_mean, rel=1e-12)
        assert got["model_benchmark_mean"][k] == pytest.approx(both_mean, rel=1e-12)


def test_unseen_benchmark_gets_the_model_mean_and_unseen_model_the_overall_mean():
    matrix = np.array([[1, 1, 0, -1], [1, 0, 0, 1], [-1, -1, -1, -1]])
    data = ResponseMatrix.from_dense(matrix)
    got = predict_baselines(data, _all_cells(data), np.array([0, 0, 0, 1]))
    by_cell = {name: value.reshape(3, 4) for name, value in got.items()}
    assert by_cell["model_benchmark_mean"][0, 3] == by_cell["model_mean"][0, 3]
    overall = (4 + 0.5) / (7 + 1)
    np.testing.assert_allclose(by_cell["model_mean"][2], overall)
    np.testing.assert_allclose(by_cell["model_benchmark_mean"][2], overall)


@pytest.mark.parametrize("answer", [0, 1])
def test_no_baseline_is_certain(answer):
    data = ResponseMatrix.from_dense(np.full((3, 4), answer))
    for probability in predict_baselines(data, _all_cells(data), None).values():
        assert np.all((probability > 0) & (probability < 1))


def test_a_high_logit_is_not_certain():
    cell = Cells(np.array([0]), np.array([0]), np.zeros(1), np.ones(1))
    fit = Rasch(np.array([20], np.float32), np.array([-5], np.float32), 1, True)
    assert 1 - fit.probability(cell)[0] == pytest.approx(np.exp(-25), rel=1e-4)


def test_without_groups_the_benchmark_mean_is_the_model_mean():
    data = _data(4)
    got = predict_baselines(data, _all_cells(data), None)
    np.testing.assert_array_equal(got["model_benchmark_mean"], got["model_mean"])


def test_simulated_rasch_data_are_predicted_as_well_as_by_the_truth():
    made = simulate(ModelSpec("1pl"), n_models=200, n_items=1500, seed=3)
    train, test = holdout(made.data, 0.1, seed=0)
    predictions = predict_baselines(train, test, None)
    predictions["truth"] = made.truth.cell_probability(test)
    table = heldout_table(predictions, test)
    # An item's difficulty rests on 180 responses: about 1/2/200 + 1/2/1500 nats a cell are lost.
    assert 0 < table["1pl"]["log_loss"] - table["truth"]["log_loss"] < 0.006


def test_refuses_cells_and_groups_of_other_data():
    data = _data()
    beyond = Cells(np.array([8]), np.array([0]), np.zeros(1), np.ones(1))
    with pytest.raises(InputError, match="model index 8, of 8 models"):
        predict_baselines(data, beyond, None)
    with pytest.raises(InputError, match="not one code for 25 items"):
        predict_baselines(data, _all_cells(data), np.zeros(24, int))


@pytest.mark.shared
def test_table_of_w1(shared_dir: Path):
    """REFERENCES.md, W1: model mean, model x benchmark mean and 1PL MAP, to the digits shown."""
    problem = problem_w1(shared_dir)
    group, _ = problem.train.groups("benchmark")
    table = heldout_table(predict_baselines(problem.train, problem.test, group), problem.test)
    expected = {
        "model_mean": (0.7469, 0.8198, 0.7332, 0.5510),
        "model_benchmark_mean": (0.7662, 0.8322, 0.7936, 0.5024),
        "1pl": (0.8041, 0.8561, 0.8601, 0.4393),
    }
    for name, values in expected.items():
        got = [round(table[name][metric], 4) for metric in ("accuracy", "f1", "auc", "log_loss")]
        assert got == list(values), name
        assert table[name]["n"] == 100_240
