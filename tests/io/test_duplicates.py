"""Several responses of a model to an item."""

import numpy as np
import pytest

from irtjax.io import read_responses

TEXT = "model_id,item_id,response\na,p,1\nb,p,0\na,p,0\na,q,1\na,p,1\n"


def test_duplicates_are_refused_with_both_lines(save, refused):
    path = save(TEXT)
    message = refused(path)
    assert f"item 'p' has two responses of model 'a' (lines 2 and 4 of {path})" in message
    assert "--duplicates first|last|mean" in message


def test_duplicates_across_files_name_both(save, refused):
    one = save("model_id,item_id,response\na,p,1\n", "1.csv")
    two = save("model_id,item_id,response\nb,p,1\na,p,1\nb,p,1\n", "2.csv")
    message = refused([one, two])
    assert f"line 2 of {one} and line 3 of {two}" in message
    assert "2 pairs are repeated" in message


@pytest.mark.parametrize(
    "policy, response, weight", [("first", 1, 1), ("last", 1, 1), ("mean", 2 / 3, 3), ("any", 1, 1)]
)
def test_policies(save, policy, response, weight):
    matrix = read_responses(save(TEXT), duplicates=policy)
    cells = matrix.cells()
    assert cells.response[0] == pytest.approx(response)
    assert cells.weight[0] == weight
    assert cells.response[1:].tolist() == [0, 1]
    assert cells.weight[1:].tolist() == [1, 1]
    assert matrix.provenance.choices["duplicates"] == {"policy": policy, "pairs": 1, "rows": 3}


@pytest.mark.parametrize("policy, response", [("first", 0), ("last", 1), ("any", 1)])
def test_first_and_last_are_in_input_order(save, policy, response):
    text = "model_id,item_id,response\na,p,0\nb,p,0\na,p,1\n"
    assert read_responses(save(text), duplicates=policy).to_dense()[0, 0] == response


def test_mean_is_weighted(save):
    text = "model_id,item_id,response,weight\na,p,1,1\na,p,0,3\nb,p,1,2\n"
    cells = read_responses(save(text), duplicates="mean").cells()
    assert cells.response.tolist() == [0.25, 1]
    assert cells.weight.tolist() == [4, 2]


def test_trials_use_the_same_switch(save, refused):
    text = "model_id,item_id,trial,response\na,p,0,1\na,p,1,0\n"
    assert "--duplicates" in refused(save(text))
    matrix = read_responses(save(text), duplicates="mean")
    assert matrix.to_dense()[0, 0] == 0.5
    assert "trial" not in matrix.item_metadata


def test_a_row_without_response_repeats_nothing(save):
    text = "model_id,item_id,response\na,p,\na,p,1\na,p,NaN\n"
    for policy in ("error", "first", "last", "mean", "any"):
        cells = read_responses(save(text), duplicates=policy).cells()
        assert (cells.response.tolist(), cells.weight.tolist()) == ([1], [1])


def test_the_mean_of_fractions_follows_the_policy_first(save, refused):
    text = "model_id,item_id,response\na,p,0.4\na,p,0.6\n"
    assert "fractions" in refused(save(text), duplicates="mean")
    matrix = read_responses(save(text), duplicates="mean", fractional="threshold=0.5")
    assert matrix.to_dense()[0, 0] == 0.5


def test_many_duplicates_equal_a_plain_loop(save):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (3000, 3)) + rng.integers(0, 9, (3000, 3)) * [1, 1, 0]
    text = "\n".join(f"m{i},q{j},{y}" for i, j, y in rows)
    path = save("model_id,item_id,response\n" + text + "\n")
    trials: dict[tuple[str, str], list[int]] = {}
    for i, j, y in rows:
        trials.setdefault((f"m{i}", f"q{j}"), []).append(int(y))
    expected = {"first": lambda t: t[0], "last": lambda t: t[-1], "mean": np.mean, "any": max}
    for policy, of in expected.items():
        dense = (matrix := read_responses(path, duplicates=policy)).to_dense()
        for (model, item), each in trials.items():
            i, j = list(matrix.model_ids).index(model), list(matrix.item_ids).index(item)
            assert dense[i, j] == pytest.approx(of(each), rel=1e-6)
