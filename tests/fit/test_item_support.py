"""More dims or components than the items can support: one line from every estimator."""

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.evaluate.crossval import cross_validate
from irtjax.fit.api import fit
from irtjax.fit.item_support import check_items
from irtjax.fit.settings import FitSettings
from irtjax.model.spec import ModelSpec

N_MODELS, N_ITEMS = 20, 15


@pytest.fixture(scope="module")
def data():
    return ResponseMatrix.from_dense(np.random.default_rng(0).integers(0, 2, (N_MODELS, N_ITEMS)))


@pytest.mark.parametrize("estimator", ["auto", "marginal-items", "marginal-models", "joint-map"])
@pytest.mark.parametrize("dims", [N_ITEMS, N_ITEMS + 1, N_MODELS - 1])
def test_as_many_dims_as_items_are_refused(data, estimator, dims):
    with pytest.raises(InputError, match=f"{dims} dims need more than {dims} items .* are 15"):
        fit(data, ModelSpec("2pl", dims), estimator=estimator)


def test_items_without_responses_support_nothing():
    dense = np.random.default_rng(0).integers(0, 2, (N_MODELS, N_ITEMS))
    dense[:, 3:] = -1
    with pytest.raises(InputError, match=r"3 dims need more than 3 items .* there are 3"):
        fit(ResponseMatrix.from_dense(dense), ModelSpec("2pl", 3))


@pytest.mark.parametrize("dims, most", [(1, 5), (2, 3)])
def test_a_component_needs_items_for_its_covariance(data, dims, most):
    spec = ModelSpec("2pl", dims)
    with pytest.raises(InputError, match=f"{most + 1} components .* there are 15; use at most"):
        fit(data, spec, item_distribution="mixture", components=most + 1)
    check_items(N_ITEMS, spec, FitSettings(item_distribution="mixture", components=most))
    # Components say nothing where there is no mixture.
    check_items(N_ITEMS, spec, FitSettings(components=100))


def test_one_item_has_one_dim():
    check_items(1, ModelSpec("2pl"), FitSettings())
    with pytest.raises(InputError, match="there are 2"):
        check_items(2, ModelSpec("2pl", 2), FitSettings())


@pytest.mark.parametrize(
    "dims, over, left", [(19, "cells", 15), (10, "items", "10 left in a fold")]
)
def test_cross_validation_says_so_before_it_fits(data, dims, over, left):
    with pytest.raises(InputError, match=f"{dims} dims need more .* there are {left}"):
        cross_validate(data, [1, dims], folds=3, over=over)
