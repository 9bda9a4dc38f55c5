"""`irtjax simulate`, and the way from there through a fit to predictions."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.truth import Truth
from irtjax.io import read_responses
from tests.cli.conftest import N_BENCHMARKS, N_ITEMS, N_MODELS


def test_simulate_fit_predict(irtjax, tmp_path):
    made = irtjax(
        *("simulate", "--models", N_MODELS, "--items", N_ITEMS, "--benchmarks", N_BENCHMARKS),
        *("--missing", 0.1, "--seed", 3),
        *("--out", "r.csv", "--truth", "t.npz"),
    )
    assert (made.code, made.err) == (0, "")
    assert irtjax("fit", "r.csv", "--out", "run", "--quiet").code == 0
    truth = Truth.load(tmp_path / "t.npz")
    ability = pd.read_csv(tmp_path / "run" / "models.csv")["dim1_ability"]
    assert np.corrcoef(ability, truth.theta[:, 0])[0, 1] > 0.98

    model, item = np.divmod(np.arange(N_MODELS * N_ITEMS), N_ITEMS)
    pairs = pd.DataFrame({"model_id": truth.model_ids[model], "item_id": truth.item_ids[item]})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    assert irtjax("predict", "run", "pairs.csv", "--out", "p.csv").code == 0
    found = pd.read_csv(tmp_path / "p.csv")["probability"].to_numpy().reshape(N_MODELS, N_ITEMS)
    true = np.concatenate([probability for _, probability in truth.blocks()], axis=1)
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.12


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet", "r.npz"])
def test_formats_agree(irtjax, tmp_path, name):
    settings = ["--models", 12, "--items", 40, "--benchmarks", 4, "--dims", 2, "--family", "4pl"]
    for each in (name, "again.csv"):
        blocks = ["--missing", 0.5, "--missing-pattern", "blocks"]
        assert irtjax("simulate", *settings, *blocks, "--out", each).code == 0
    one, two = read_responses(tmp_path / name), read_responses(tmp_path / "again.csv")
    np.testing.assert_array_equal(one.to_dense(), two.to_dense())
    assert one.item_metadata["benchmark"].tolist() == two.item_metadata["benchmark"].tolist()
    assert one.n_responses == 12 * 40 / 2


def test_existing_files_are_replaced_with_force_only(irtjax, tmp_path):
    (tmp_path / "r.csv").write_text("old")
    assert irtjax("simulate", "--out", "r.csv").code == 2
    assert (tmp_path / "r.csv").read_text() == "old"
    assert irtjax("simulate", "--out", "r.csv", "--items", 10, "--force").code == 0
    assert read_responses(tmp_path / "r.csv").n_items == 10
