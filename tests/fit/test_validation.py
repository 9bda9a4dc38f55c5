"""What a fit refuses, in one line that says why, and what it only warns of."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.validation import data_warnings
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import simulated

GOOD = ResponseMatrix.from_dense(np.random.default_rng(0).integers(0, 2, (5, 20)))


def _cells(models, items, n_models, n_items):
    return ResponseMatrix.from_cells(
        models,
        items,
        np.arange(len(models)) % 2,
        model_ids=[f"m{k}" for k in range(n_models)],
        item_ids=[f"i{k}" for k in range(n_items)],
    )


@pytest.mark.parametrize(
    "data, spec, message",
    [
        (ResponseMatrix.from_dense([[1, 0, 1]]), None, "1 model in the data"),
        (ResponseMatrix.from_dense(np.zeros((0, 3))), None, "0 models in the data"),
        (ResponseMatrix.from_dense(np.zeros((3, 0))), None, "no response in the data"),
        (ResponseMatrix.from_dense(np.full((3, 4), -1)), None, "every cell is missing"),
        (GOOD, ModelSpec("2pl", 5), "5 dims need more than 5 models with responses; there are 5"),
        (_cells([0, 0, 1], [0, 1, 0], 4, 2), ModelSpec("2pl", 2), "there are 2; use fewer dims"),
        (GOOD, ModelSpec("1pl", 2), "1pl with 2 dims is not identified"),
        (GOOD, ModelSpec("rasch", 2), "rasch with 2 dims is not identified"),
        (
            ResponseMatrix.from_dense(GOOD.dense, weight=np.full((5, 20), 1e30)),
            None,
            "the weights add up to 1e.32; .* divide them",
        ),
    ],
)
def test_data_that_cannot_be_fitted(data, spec, message):
    with pytest.raises(InputError, match=message) as caught:
        fit(data, spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"estimator": "mirt"}, "estimator 'mirt' is not known; use one of auto"),
        ({"item_distribution": "beta"}, "use one of normal, empirical, mixture"),
        ({"components": 0}, "at least 1 component, not 0"),
        ({"max_steps": 0}, "max_steps must be at least 1, not 0"),
        ({"group": "benchmark"}, "no item metadata column 'benchmark'"),
    ],
)
def test_settings_that_are_not_known(settings, message):
    with pytest.raises(InputError, match=message):
        fit(GOOD, **settings)


def test_an_item_without_a_group_is_named():
    data = GOOD.replace(item_metadata=pd.DataFrame({"benchmark": ["a"] * 19 + [None]}))
    with pytest.raises(InputError, match="item 'item-19' has no value in column 'benchmark'"):
        fit(data, group="benchmark")


def test_a_cap_is_a_warning_that_names_its_status():
    with pytest.warns(IrtjaxWarning, match="max_steps: .*raise --max-steps"):
        result = fit(simulated("2pl").data, max_steps=1)
    assert result.status == "max_steps"
    assert result.report["n_steps"] == 1
    assert len(result.report["trace"]["objective"]) == 1


def test_nothing_is_said_about_good_data():
    assert data_warnings(GOOD) == []


def test_data_in_two_parts_are_told():
    # Models 0, 1 answered items 0, 1; models 2, 3 items 2, 3; item 4 nobody.
    data = _cells([0, 1, 0, 1, 2, 3, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3], 4, 5)
    said = data_warnings(data)
    assert any("1 item without responses (first: 'i4')" in text for text in said)
    assert any("fall into 2 parts that share no model or item" in text for text in said)
    linked = _cells([0, 1, 0, 1, 2, 3, 2, 3, 0], [0, 0, 1, 1, 2, 2, 3, 3, 2], 4, 5)
    assert not any("parts" in text for text in data_warnings(linked))


def test_a_small_part_beside_dense_data_is_told():
    matrix = np.full((20, 15), -1)
    matrix[:18, :14] = np.random.default_rng(0).integers(0, 2, (18, 14))
    matrix[18:, 14] = 1
    data = ResponseMatrix.from_dense(matrix)
    assert data.density > 0.5
    assert any("fall into 2 parts" in text for text in data_warnings(data))
