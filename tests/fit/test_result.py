"""Every family: fit, predict, save, load; identical predictions, original ids."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.result import FitResult
from irtjax.io import write_responses
from irtjax.model.response import Asymptotes, response_probability
from tests.fit import reference
from tests.fit.bridge import unpacked
from tests.fit.fitting import KINDS, N_BENCHMARKS, N_ITEMS, N_MODELS, assert_same_bits, fitted


@pytest.fixture(scope="module", params=list(KINDS))
def saved(request, tmp_path_factory):
    """A fit, its folder, and what `load` makes of it."""
    fit, folder = fitted(request.param), tmp_path_factory.mktemp("run") / "run"
    fit.save(folder)
    return fit, folder, FitResult.load(folder)


def _oracle(fit, model_index, item_index):
    """Posterior mean probability of cells, by 61 nodes an item and component."""
    fitted_, group = fit.parameters, fit.groups()[0]
    covariance = unpacked(fitted_.covariance)
    nodes, weights = reference.hermite(61)
    expected = []
    for i, j in zip(model_index, item_index, strict=True):
        g = group[j] if fit.group else 0
        x = np.append(fitted_.ability[i], 1)
        offset = 0 if fitted_.effect is None else fitted_.effect[i, g]
        c, d = fitted_.guessing[j], fitted_.feasibility[j]
        p = 0.0
        for share, m, V in zip(fitted_.share[j], fitted_.mean[j], covariance[j], strict=True):
            z = x @ m + offset + nodes * np.sqrt(x @ V @ x)
            p += share * weights @ (c + (d - c) / (1 + np.exp(-z)))
        expected.append(p)
    return np.array(expected)


def test_case_3_every_family_predicts_its_posterior_mean(saved):
    fit, _, _ = saved
    rng = np.random.default_rng(0)
    cells = rng.integers(0, N_MODELS, 300), rng.integers(0, N_ITEMS, 300)
    predicted = fit.predict_cells(*cells)
    assert predicted.dtype == np.float64
    np.testing.assert_allclose(predicted, _oracle(fit, *cells), atol=2e-5)


def test_case_2_predictions_lie_between_the_asymptotes(saved):
    fit, _, _ = saved
    everything = np.repeat(np.arange(N_MODELS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_MODELS)
    p = fit.predict_cells(*everything)
    table = fit.item_parameters()
    low, high = (np.tile(table[name], N_MODELS) for name in ("guessing", "feasibility"))
    assert np.all((p >= low - 1e-6) & (p <= high + 1e-6))
    assert np.all((p > 0) & (p < 1))


def test_case_9_predictions_carry_the_ids_that_came_in(saved):
    fit, _, _ = saved
    pairs = pd.DataFrame(
        {
            "item_id": ["benchmark-3/5", "benchmark-0/0", "benchmark-0/0"],
            "model_id": ["model-23", "model-00", "model-00"],
            "note": ["x", "y", "z"],
        },
        index=[7, 3, 3],
    )
    out = fit.predict(pairs)
    assert list(out) == ["model_id", "item_id", "probability"]
    assert out.model_id.tolist() == pairs.model_id.tolist()
    assert out.item_id.tolist() == pairs.item_id.tolist()
    assert out.probability[1] == out.probability[2]
    np.testing.assert_array_equal(out.probability, fit.predict_cells([23, 0, 0], [185, 0, 0]))


def test_unknown_ids_and_missing_columns_are_refused_by_name(saved):
    fit, _, _ = saved
    with pytest.raises(InputError, match=r"'model-99' .row 2 .* was not in the fit"):
        fit.predict(pd.DataFrame({"model_id": ["model-00", "model-99"], "item_id": ["a", "b"]}))
    with pytest.raises(InputError, match=r"'nobody/1' .row 1 .* was not in the fit"):
        fit.predict(pd.DataFrame({"model_id": ["model-00"], "item_id": ["nobody/1"]}))
    with pytest.raises(InputError, match="need a column 'item_id'"):
        fit.predict(pd.DataFrame({"model_id": ["model-00"]}))
    for given, shown in (([np.int64(3)], "model 3 .row 1"), ([np.nan], "model nan .row 1")):
        pairs = pd.DataFrame({"model_id": given, "item_id": ["benchmark-0/0"]})
        with pytest.raises(InputError, match=f"{shown} .* was not in the fit; 1 such row$"):
            fit.predict(pairs)
    with pytest.raises(InputError, match=r"must be a data frame with .* not list"):
        fit.predict([("model-00", "benchmark-0/0")])


@pytest.mark.parametrize(
    "models, items, message",
    [
        ([24], [0], "model index 24 is not one of 24 models, which are numbered from 0"),
        ([-1], [0], "model index -1 is not one of 24 models"),
        ([0], [9999], "item index 9999 is not one of"),
        ([0, 1, 2], [0, 1], "2 item indices for 3 cells"),
        ([1.5], [0], "model indices must be whole numbers from 0 on, not float64"),
        ([0], ["benchmark-0/0"], "item indices must be whole numbers from 0 on, not text"),
        (0, 0, "model indices must be one whole number a cell, not 0"),
    ],
)
def test_cells_beyond_the_data_are_refused(saved, models, items, message):
    fit, _, _ = saved
    with pytest.raises(InputError, match=message):
        fit.predict_cells(models, items)


def test_no_pairs_give_no_predictions(saved):
    fit, _, _ = saved
    out = fit.predict(pd.DataFrame({"model_id": [], "item_id": []}))
    assert len(out) == 0


def test_saved_and_loaded_is_the_same_fit(saved):
    fit, _folder, loaded = saved
    assert_same_bits(loaded.parameters, fit.parameters)
    assert loaded.spec == fit.spec
    assert loaded.group == fit.group
    assert loaded.status == fit.status
    assert loaded.groups()[1] == fit.groups()[1]
    np.testing.assert_array_equal(loaded.groups()[0], fit.groups()[0])
    pd.testing.assert_frame_equal(loaded.item_parameters(), fit.item_parameters())
    pd.testing.assert_frame_equal(loaded.abilities(), fit.abilities())
    np.testing.assert_array_equal(loaded.data.to_dense(), fit.data.to_dense())
    assert loaded.data.model_ids.tolist() == fit.data.model_ids.tolist()
    # JSON has lists where Python had tuples, and nothing else changed.
    assert loaded.report == json.loads(json.dumps(fit.report))
    assert loaded.heldout is None


def test_predictions_are_identical_after_load(saved):
    fit, _, loaded = saved
    everything = np.repeat(np.arange(N_MODELS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_MODELS)
    np.testing.assert_array_equal(loaded.predict_cells(*everything), fit.predict_cells(*everything))


def test_saved_twice_is_the_same_folder(saved, tmp_path):
    _fit, folder, loaded = saved
    loaded.save(tmp_path / "again")
    for name in ("items.csv", "models.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_files_hold_the_tables(saved):
    fit, folder, _ = saved
    items = pd.read_csv(folder / "items.csv", keep_default_na=False)
    assert items.item_id.tolist() == fit.data.item_ids.tolist()
    assert list(items) == list(fit.item_parameters())
    models = pd.read_csv(folder / "models.csv")
    assert list(models) == list(fit.abilities())
    np.testing.assert_allclose(models.dim1_ability, fit.abilities().dim1_ability, rtol=1e-5)
    report = json.loads((folder / "fit.json").read_text())
    assert report["status"] == fit.status
    assert report["n_responses"] == fit.data.n_responses


@pytest.mark.parametrize("gone", ["fit.json", "responses.npz", "checkpoint"])
def test_a_folder_with_something_missing_is_refused_by_name(tmp_path, gone):
    fitted("2pl").save(tmp_path)
    target = tmp_path / gone
    if target.is_dir():
        for path in sorted(target.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        target.rmdir()
    else:
        target.unlink()
    with pytest.raises(InputError, match=gone):
        FitResult.load(tmp_path)


def test_a_damaged_report_and_no_folder_are_refused(tmp_path):
    fitted("2pl").save(tmp_path / "run")
    (tmp_path / "run" / "fit.json").write_text('{"status": "conv')
    with pytest.raises(InputError, match="damaged"):
        FitResult.load(tmp_path / "run")
    with pytest.raises(InputError, match="is not a folder"):
        FitResult.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda report: [1], r"damaged: it holds \[1\], no report; fit again"),
        (lambda report: None, "damaged: it holds None"),
        (lambda report: {}, "has no 'family', but the estimates .* family '2pl'; put its own"),
        (lambda report: report | {"family": "7pl"}, "says family '7pl', but .* family '2pl'"),
        (lambda report: report | {"dims": 3}, "says dims 3, but the estimates .* dims 1"),
        (lambda report: report | {"integrated": "models"}, "says integrated 'models'"),
        (lambda report: report | {"status": 7}, "says status 7"),
        (lambda report: report | {"n_items": 1}, "says n_items 1"),
        (lambda report: report | {"priors": []}, "says priors .., but"),
    ],
)
def test_a_report_of_another_fit_is_refused(tmp_path, change, message):
    fitted("2pl").save(tmp_path)
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(InputError, match=message) as caught:
        FitResult.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_that_diverged_says_so_when_it_is_loaded(tmp_path):
    fit = fitted("2pl")
    dataclasses.replace(fit, report=fit.report | {"status": "diverged"}).save(tmp_path)
    with pytest.warns(IrtjaxWarning, match="diverged: its last good state .* fit again$"):
        assert FitResult.load(tmp_path).status == "diverged"


def test_responses_of_another_fit_are_refused(tmp_path):
    fit = fitted("2pl")
    fit.save(tmp_path)
    other = fit.data.replace(model_ids=fit.data.model_ids[::-1])
    write_responses(other, tmp_path / "responses.npz")
    with pytest.raises(InputError, match="is not the file that was saved with the estimates"):
        FitResult.load(tmp_path)


@pytest.mark.parametrize("path", [None, 3, ""])
def test_what_is_no_path_is_refused(saved, path):
    fit, _, _ = saved
    with pytest.raises(InputError, match="the folder to save to must be a path, not"):
        fit.save(path)
    with pytest.raises(InputError, match="the folder to load must be a path, not"):
        FitResult.load(path)


def test_expected_score_is_the_mean_prediction_over_all_items(saved):
    fit, _, _ = saved
    p = fit.predict_cells(
        np.repeat(np.arange(N_MODELS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_MODELS)
    )
    # 9 nodes there, 15 here.
    np.testing.assert_allclose(
        fit.abilities().expected_score, p.reshape(N_MODELS, N_ITEMS).mean(axis=1), atol=2e-4
    )


def test_the_curve_of_an_item_is_the_response_function(saved):
    # Case 2: what a user computes from items.csv is what training used.
    fit, _, _ = saved
    table, theta = fit.item_parameters(), np.linspace(-2, 2, 5)
    slope, intercept = table.dim1_slope[0], table.intercept[0]
    c, d = table.guessing[0], table.feasibility[0]
    asymptotes = None if not fit.spec.has_asymptotes else Asymptotes.from_natural(c, d)
    expected = c + (d - c) / (1 + np.exp(-(slope * theta + intercept)))
    logit = np.asarray(slope * theta + intercept, np.float32)
    np.testing.assert_allclose(response_probability(logit, asymptotes), expected, atol=1e-6)


def test_repr_says_what_it_is():
    fit = fitted("2pl-2d")
    assert repr(fit) == f"FitResult(2pl, dims=2, 24 models x 240 items, {fit.status})"
    assert len(fit.groups()[1]) == N_BENCHMARKS
