"""Other numbers of models and budgets re-use the programs that are compiled (case 16)."""

import numpy as np
import pytest

import irtjax as ij
from tests.fit.fitting import fitted, simulated
from tests.fit.test_compilations import compilations


def _answers(n_models, n_items):
    """Of so many models to the first items."""
    data = simulated("2pl", seed=1).data
    rows = np.where(data.to_dense() < 0, np.nan, data.to_dense())[:n_models]
    rows[:, n_items:] = np.nan
    return ij.ResponseMatrix.from_dense(rows, item_ids=data.item_ids)


@pytest.mark.compilations
@pytest.mark.parametrize("kind", ["2pl", "2pl-2d"])
def test_case_16_other_budgets_compile_nothing(kind):
    fit = fitted(kind)
    criteria = ("d-optimal", "a-optimal", "fisher", "leh", "clusters", "random")
    for criterion in criteria:
        ij.select_items(fit, 10, criterion=criterion)
    ij.select_items(fit, 10, method="exchange")
    with compilations() as seen:
        for budget in (3, 11, 70, 200):
            for criterion in criteria:
                ij.select_items(fit, budget, criterion=criterion)
        ij.select_items(fit, 7, method="exchange")
    assert len(seen) == 0


@pytest.mark.compilations
def test_case_16_other_numbers_of_models_compile_nothing():
    fit = fitted("2pl")

    def use(n_models, n_items):
        new = _answers(n_models, n_items)
        ij.adapt(fit, new, max_items=n_items)
        ij.score_models(fit, new)
        ij.predict_score(fit, new)

    use(3, 20)
    with compilations() as seen:
        for n_models, n_items in ((1, 30), (5, 17), (8, 25)):
            use(n_models, n_items)
    assert len(seen) == 0
