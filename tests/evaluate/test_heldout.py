"""The held-out table is the metrics of each predictor on the chosen cells."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

from irtjax.data.cells import Cells
from irtjax.data.simulate import simulate
from irtjax.data.splits import holdout
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.evaluate.baselines import predict_baselines
from irtjax.evaluate.heldout import evaluate_heldout, heldout_table, with_heldout
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.metrics import all_metrics
from irtjax.model.spec import ModelSpec


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    return Cells(
        rng.integers(0, 5, 40), np.arange(40), rng.integers(0, 2, 40) * 1.0, rng.gamma(2, 1, 40)
    )


@pytest.mark.parametrize("masked", [False, True])
def test_each_row_is_the_metrics_of_that_predictor(cells, masked):
    rng = np.random.default_rng(1)
    predictions = {"one": rng.random(40), "two": rng.random(40)}
    mask = cells.model_index > 1 if masked else None
    chosen = mask if masked else np.ones(40, bool)
    table = heldout_table(predictions, cells, mask)
    assert list(table) == ["one", "two"]
    for name, probability in predictions.items():
        assert table[name] == all_metrics(
            probability[chosen], cells.response[chosen], cells.weight[chosen]
        )
        assert table[name]["n"] == chosen.sum()


def test_refuses_what_does_not_match(cells):
    with pytest.raises(InputError, match="'short' has shape"):
        heldout_table({"short": np.full(39, 0.5)}, cells)
    with pytest.raises(InputError, match="40 booleans"):
        heldout_table({"p": np.full(40, 0.5)}, cells, np.ones(40, int))


@pytest.fixture(scope="module")
def fitted():
    made = simulate(ModelSpec(), n_models=30, n_items=200, n_benchmarks=4, seed=1)
    train, cells = holdout(made.data, 0.1, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)  # how the fit ended is not judged here
        return fit(train), cells


def test_a_fit_and_its_baselines_have_the_metrics_of_their_predictions(fitted):
    result, cells = fitted
    heldout = evaluate_heldout(result, cells, chosen="holdout 0.1")
    assert (heldout["cells"], heldout["n"]) == ("holdout 0.1", 600)
    probability = result.predict_cells(cells.model_index, cells.item_index)
    assert heldout["model"] == all_metrics(probability, cells.response, cells.weight)
    group, _ = result.data.groups("benchmark")
    baselines = predict_baselines(result.data, cells, group)
    assert list(heldout["baselines"]) == list(baselines)
    for name, predicted in baselines.items():
        assert heldout["baselines"][name] == all_metrics(predicted, cells.response)


def test_which_column_is_the_benchmark(fitted):
    result, cells = fitted

    def mean_of_benchmark(metadata, column=None):
        data = result.data.replace(item_metadata=pd.DataFrame(metadata))
        changed = dataclasses.replace(result, data=data)
        heldout = evaluate_heldout(changed, cells, chosen="", group_column=column)
        return heldout["baselines"]["model_benchmark_mean"]

    benchmark = result.data.item_metadata["benchmark"]
    area = pd.Series(["x", "y"] * 100)
    by_benchmark = mean_of_benchmark({"benchmark": benchmark})
    by_area = mean_of_benchmark({"area": area}, "area")
    without = mean_of_benchmark({"area": area})
    assert by_benchmark != by_area != without
    assert mean_of_benchmark({"benchmark": benchmark, "area": area}, "area") == by_area
    assert mean_of_benchmark({"benchmark": benchmark.where(benchmark.index > 0)}) == without
    with pytest.raises(InputError, match="'nothing'"):
        mean_of_benchmark({"area": area}, "nothing")


def test_a_saved_fit_keeps_its_heldout_part(fitted, tmp_path):
    result, cells = fitted
    with_heldout(result, cells, chosen="holdout 0.1").save(tmp_path / "run")
    loaded = FitResult.load(tmp_path / "run")
    for name in ("model_index", "item_index", "response", "weight"):
        np.testing.assert_array_equal(getattr(loaded.heldout, name), getattr(cells, name))
    assert loaded.report["heldout"] == evaluate_heldout(loaded, cells, chosen="holdout 0.1")
    assert "heldout" not in result.report


def test_one_class_of_answers_has_no_auc(fitted, tmp_path):
    result, cells = fitted
    right = cells.response == 1
    only = cells.taken(right)
    with_heldout(result, only, chosen="right ones").save(tmp_path / "run")
    assert FitResult.load(tmp_path / "run").report["heldout"]["model"]["auc"] is None


def test_what_is_no_fit_or_no_cells_is_refused(fitted):
    result, held_out = fitted[:2]
    with pytest.raises(InputError, match="must be Cells, as holdout gives them, not ResponseMatri"):
        evaluate_heldout(result, result.data, chosen="x")
    with pytest.raises(InputError, match="evaluate_heldout takes a FitResult, not ResponseMatrix"):
        evaluate_heldout(result.data, held_out, chosen="x")
    beyond = dataclasses.replace(held_out, item_index=held_out.item_index + 9999)
    with pytest.raises(InputError, match=r"item index .* is not one of"):
        evaluate_heldout(result, beyond, chosen="x")
