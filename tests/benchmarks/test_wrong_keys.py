"""The benchmark of wrong keys: its AUC, the simple scores, and what it reports."""

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from benchmarks import wrong_keys as study
from benchmarks.wrong_keys import auc, run, simple_scores, table


def test_auc_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    score, is_wrong = rng.integers(0, 9, 300).astype(float), rng.random(300) < 0.1
    assert auc(score, is_wrong) == pytest.approx(roc_auc_score(is_wrong, score))


def test_simple_scores():
    response = np.array([[1, 0], [1, 1], [0, 1]])
    code = np.array([[0, 1], [0, 0], [2, 0]])
    scores = simple_scores(response, code, np.array([1.0, 0.0, -1.0]))
    np.testing.assert_allclose(scores["accuracy"], [-2 / 3, -2 / 3])
    total = np.array([0.5, 1.0, 0.5])
    expected = [-np.corrcoef(total, response[:, j])[0, 1] for j in range(2)]
    np.testing.assert_allclose(scores["item_total"], expected)
    weight = np.exp([1.0, 0.0, -1.0])
    votes = [weight[2] - weight[0] - weight[1], weight[0] - weight[1] - weight[2]]
    np.testing.assert_allclose(scores["vote_exp"], votes)


@pytest.mark.slow
def test_results_and_table(monkeypatch):
    monkeypatch.setattr(study, "N_MODELS", (40,))
    monkeypatch.setattr(study, "N_ITEMS", 900)
    measured = run(1)
    assert set(measured["40"]["auc"]) >= {"responses", "answers", "item_total", "accuracy"}
    console = Console(record=True, width=200)
    console.print(table(measured))
    assert "answers" in console.export_text()
