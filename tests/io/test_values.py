"""What a response may be: CASES 4 (missing) and 12 (fractions)."""

import numpy as np
import pandas as pd
import pytest

from irtjax.errors import InputError
from irtjax.io import read_responses
from irtjax.io.values import FractionalPolicy

HEADER = "model_id,item_id,response\n"


@pytest.mark.parametrize("text", ["1", "1.0", "1.", "true", "True", "TRUE", "1e0", " 1 ", "+1"])
def test_right(save, text):
    assert read_responses(save(f"{HEADER}a,q,{text}\n")).to_dense()[0, 0] == 1


@pytest.mark.parametrize("text", ["0", "0.0", "false", "False", "0.000", "-0", "0e5"])
def test_wrong(save, text):
    matrix = read_responses(save(f"{HEADER}a,q,{text}\n"))
    assert matrix.to_dense()[0, 0] == 0
    assert not np.signbit(matrix.cells().response[0])


@pytest.mark.parametrize("text", ["", '""', "NaN", "nan", "null", "NA", "None", "<NA>", " "])
def test_case_04_missing_is_masked(save, text):
    matrix = read_responses(save(f"{HEADER}a,p,1\na,q,{text}\nb,q,0\n"))
    without = read_responses(save(f"{HEADER}a,p,1\nb,q,0\n", "s.csv"))
    np.testing.assert_array_equal(matrix.to_dense(), without.to_dense())


@pytest.mark.parametrize(
    "text", ["-1", "-9", "2", "yes", "missing", "?", "1_0", "inf", "99", "\uff11"]
)
def test_case_04_unknown_sentinel_is_refused(save, refused, text):
    message = refused(save(f"{HEADER}a,p,1\na,q,{text}\nb,q,{text}\nb,p,0\n"))
    assert repr(text) in message
    assert "'a'" in message
    assert "'q'" in message
    assert "line 3 of" in message
    assert "2 responses" in message
    assert "empty" in message


def test_case_04_in_numpy_files_minus_one_is_missing(tmp_path):
    np.save(tmp_path / "r.npy", np.int8([[1, -1], [0, 1]]))
    assert read_responses(tmp_path / "r.npy").n_responses == 3


@pytest.mark.parametrize("values", [[1, -1], [1.0, -9.0], [1, 2], ["1", "yes"]])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_case_04_unknown_values_of_typed_files_are_refused(tmp_path, refused, values, suffix):
    frame = pd.DataFrame({"model_id": "a", "item_id": ["p", "q"], "response": values})
    path = tmp_path / f"r.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    message = refused(path)
    assert f"response '{values[1]}" in message
    assert ("row 2 of" if suffix == "parquet" else "line 2 of") in message


def test_nothing_is_truncated_to_an_integer(save, refused):
    assert "fractions" in refused(save(f"{HEADER}a,q,0.9999\n"))


FRACTIONS = f"{HEADER}a,p,1\na,q,0.33\nb,q,.67\nb,p,0\n"


def test_case_12_fractions_are_refused_with_the_count(save, refused):
    message = refused(save(FRACTIONS))
    assert "2 of 4 responses are fractions" in message
    assert "0.33" in message
    assert "line 3 of" in message
    assert "--fractional threshold=0.5" in message
    assert "likelihood" in message


def test_case_12_threshold_and_likelihood(save):
    path = save(FRACTIONS)
    matrix = read_responses(path, fractional="threshold=0.5")
    assert matrix.to_dense().tolist() == [[1, 0], [0, 1]]
    assert matrix.to_dense().dtype == np.int8
    assert matrix.provenance.choices["fractional"] == {"policy": "threshold=0.5", "responses": 2}
    kept = read_responses(path, fractional="likelihood")
    np.testing.assert_allclose(kept.to_dense(), [[1, 0.33], [0, 0.67]], rtol=1e-6)


def test_threshold_itself_is_right_in_either_precision(tmp_path, save):
    text = read_responses(save(f"{HEADER}a,q,0.7\n"), fractional="threshold=0.7")
    np.save(tmp_path / "r.npy", np.float32([[0.7]]))
    single = read_responses(tmp_path / "r.npy", fractional="threshold=0.7")
    assert text.to_dense()[0, 0] == single.to_dense()[0, 0] == 1


def test_one_half_in_each_format(save, tmp_path, refused):
    np.save(tmp_path / "r.npy", np.float32([[0.5, np.nan, 1]]))
    wide = save("m,p,q\na,0.5,1\n", "w.csv")
    pyirt = save([{"subject_id": "a", "responses": {"p": 0.5}}], "p.jsonl")
    for path in (tmp_path / "r.npy", wide, pyirt):
        assert "1 of" in refused(path)
        assert read_responses(path, fractional="likelihood").to_dense()[0, 0] == 0.5


@pytest.mark.parametrize("text", ["threshold", "threshold=", "threshold=0", "threshold=1.1", "0.5"])
def test_bad_policies(text):
    with pytest.raises(InputError, match="--fractional"):
        FractionalPolicy.parse(text)


def test_a_count_with_its_weight_is_no_fraction(save, refused):
    head = "model_id,item_id,response,weight\n"
    matrix = read_responses(save(f"{head}a,q,0.6666667,3\n"))
    assert matrix.cells().weight[0] == 3
    assert "fractions" in refused(save(f"{head}a,q,0.5,3\n"))
    assert "fractions" in refused(save(f"{head}a,q,0.5,1\n"))
