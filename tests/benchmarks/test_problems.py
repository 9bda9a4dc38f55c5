"""The reference problems are the ones whose numbers REFERENCES.md prints."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.problems import problem_w1, reference_problem_w2, reference_problem_w3
from irtjax.errors import InputError
from irtjax.model.metrics import all_metrics


@pytest.mark.shared
def test_w1_is_the_published_split_with_the_published_predictions(shared_dir: Path):
    problem = problem_w1(shared_dir)
    assert (problem.train.n_models, problem.train.n_items) == (12, 41_871)
    assert (problem.train.n_responses, len(problem.test)) == (400_957, 100_240)
    assert problem.train.item_ids[[0, 294, 295]].tolist() == ["ARC-C/0", "ARC-C/294", "BBH/0"]
    with np.load(shared_dir / "data" / "psn_irt_test_pred.npz") as published:
        order = np.lexsort((published["row"], published["col"]))
        np.testing.assert_array_equal(published["row"][order], problem.test.model_index)
        np.testing.assert_array_equal(published["col"][order], problem.test.item_index)
        np.testing.assert_array_equal(published["truth"][order], problem.test.response)
        p_psn = published["p_psn"][order]
    assert problem.is_copied is not None
    honest = ~problem.is_copied
    assert honest.sum() == 94_608
    metrics = all_metrics(p_psn[honest], problem.test.response[honest])
    assert round(metrics["accuracy"], 4) == 0.7941
    assert round(metrics["log_loss"], 4) == 0.4642


def test_w1_without_the_shared_data_says_so(tmp_path: Path):
    with pytest.raises(InputError, match="is not there"):
        problem_w1(tmp_path)


def test_w2_true_parameters_score_the_reference_numbers():
    problem = reference_problem_w2()
    assert (problem.train.n_models, problem.train.n_items) == (100, 34_000)
    assert problem.train.n_responses + len(problem.test) == 3_400_000
    assert problem.truth is not None
    metrics = all_metrics(problem.truth.cell_probability(problem.test), problem.test.response)
    assert round(metrics["log_loss"], 4) == 0.4586
    assert round(metrics["accuracy"], 4) == 0.7786


@pytest.mark.parametrize("family", ["3pl", "4pl"])
def test_w3_responses_follow_the_true_parameters(family: str):
    problem = reference_problem_w3(family)
    assert problem.train.to_dense().shape == (2_000, 50)
    assert problem.truth is not None
    cells = problem.train.cells()
    probability = problem.truth.cell_probability(cells).astype(float)
    z = (cells.response - probability).sum() / np.sqrt((probability * (1 - probability)).sum())
    assert abs(z) < 4
    assert (problem.truth.feasibility < 1).all() == (family == "4pl")
    assert len(problem.test) == 0
