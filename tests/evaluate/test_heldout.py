"""The held-out table is the metrics of each predictor on the chosen cells."""

import numpy as np
import pytest

from irtjax.data.responses import Cells
from irtjax.errors import InputError
from irtjax.evaluate.heldout import heldout_table
from irtjax.model.metrics import all_metrics


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
