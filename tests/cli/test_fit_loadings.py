"""`irtjax fit --loadings`: confirmatory models from the command line."""

import json

import numpy as np
import pandas as pd

from irtjax.data.simulate import simulate
from irtjax.io import read_responses, write_responses
from irtjax.model.spec import ModelSpec
from tests.cli.conftest import N_BENCHMARKS, N_ITEMS


def _slopes(run):
    return pd.read_csv(run / "items.csv").filter(regex=r"^dim\d+_slope$").to_numpy()


def test_a_bifactor_model_by_benchmark(irtjax, responses, tmp_path):
    done = irtjax("fit", responses, "--loadings", "benchmark", "--general", "--out", "run")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "run" / "fit.json").read_text())
    assert report["estimator"] == "marginal-items"
    assert report["dims"] == 1 + N_BENCHMARKS
    assert report["dim_names"][0] == "general"
    items = pd.read_csv(tmp_path / "run" / "items.csv")
    own = items["benchmark"].to_numpy()[:, None] == np.array(report["dim_names"][1:])
    slopes = _slopes(tmp_path / "run")
    assert slopes.shape == (N_ITEMS, 1 + N_BENCHMARKS)
    assert np.all(slopes[:, 0] != 0)
    np.testing.assert_array_equal(slopes[:, 1:] != 0, own)


def test_correlated_dims_from_a_file(irtjax, tmp_path):
    made = simulate(ModelSpec("2pl", 2), n_models=300, n_items=12, n_benchmarks=2, seed=3)
    write_responses(made.data, tmp_path / "tall.csv")
    is_first = np.arange(12) % 2
    table = {"item_id": made.data.item_ids, "odd": is_first, "even": 1 - is_first}
    pd.DataFrame(table).to_csv(tmp_path / "mask.csv", index=False)
    arguments = ("fit", "tall.csv", "--loadings", "mask.csv", "--correlated", "--nodes", "11")
    done = irtjax(*arguments, "--out", "run")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "run" / "fit.json").read_text())
    assert report["estimator"] == "marginal-models"
    assert report["dim_names"] == ["odd", "even"]
    assert report["settings"]["is_correlated"]
    assert report["n_parameters"] == 12 + 12 + 1
    np.testing.assert_array_equal(
        _slopes(tmp_path / "run") != 0, np.stack([is_first, 1 - is_first], 1)
    )


def test_what_is_refused_leaves_nothing(irtjax, responses, tmp_path):
    pd.DataFrame({"item_id": ["a"], "x": [1]}).to_csv(tmp_path / "short.csv", index=False)
    ids = [*read_responses(responses).item_ids, "a", "b"]
    is_odd = np.arange(len(ids)) % 2
    more = pd.DataFrame({"item_id": ids, "odd": is_odd, "even": 1 - is_odd})
    more.to_csv(tmp_path / "more.csv", index=False)
    for arguments, message in (
        (("--general",), "--general and --correlated belong to --loadings"),
        (("--loadings", "nowhere.csv"), "neither an item column"),
        (("--loadings", "short.csv"), f"no row for {N_ITEMS} items"),
        (("--loadings", "more.csv"), "in more.csv have rows for 2 items ('a', 'b') that the data"),
        (("--loadings", "benchmark", "--general", "--correlated"), "uncorrelated with the others"),
        (("--loadings", "benchmark", "--group", "benchmark"), "does not go with loadings"),
        (("--loadings", "benchmark", "--dims", "2"), "loadings have 4 dims, the spec 2"),
    ):
        done = irtjax("fit", responses, *arguments, "--out", "run")
        assert done.code == 2
        assert len(done.error_lines) == 1, done.err
        assert message in done.err
        assert not (tmp_path / "run").exists()
