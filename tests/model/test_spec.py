"""Which families are larger ones with fixed parameters, and what is refused."""

import dataclasses

import numpy as np
import pytest

from irtjax.errors import InputError
from irtjax.model.priors import Priors
from irtjax.model.spec import FAMILIES, ModelSpec


@pytest.mark.parametrize(
    "family, common_slope, guessing, feasibility",
    [
        ("1pl", True, False, False),
        ("2pl", False, False, False),
        ("3pl", False, True, False),
        ("4pl", False, True, True),
    ],
)
def test_what_a_family_estimates(family, common_slope, guessing, feasibility):
    spec = ModelSpec(family, dims=2)
    assert spec.has_common_slope is common_slope
    assert spec.has_guessing is guessing
    assert spec.has_feasibility is feasibility
    assert spec.has_asymptotes is (guessing or feasibility)


def test_upper_case_is_the_same_family():
    assert ModelSpec("3PL") == ModelSpec("3pl")
    assert {ModelSpec(family).family for family in FAMILIES} == set(FAMILIES)


@pytest.mark.parametrize("family", ["5pl", "", None, 2])
def test_an_unknown_family_is_refused_by_name(family):
    with pytest.raises(InputError, match="use one of rasch, 1pl, 2pl, 3pl, 4pl"):
        ModelSpec(family)


@pytest.mark.parametrize("dims", [0, -1, 1.5, "2", True, None])
def test_dims_are_a_positive_whole_number(dims):
    with pytest.raises(InputError, match="dims must be a whole number of at least 1"):
        ModelSpec("2pl", dims)


def test_dims_of_numpy_are_plain_numbers():
    assert ModelSpec("2pl", np.int64(2)) == ModelSpec("2pl", 2)
    assert type(ModelSpec("2pl", np.int64(2)).dims) is int
    with pytest.raises(InputError, match="at least 1, not 0"):
        ModelSpec("2pl", np.int64(0))


def test_a_spec_is_a_constant():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelSpec().dims = 3
    assert hash(ModelSpec("2pl", 2)) == hash(ModelSpec("2PL", 2))


@pytest.mark.parametrize(
    "setting",
    [
        {"mean_weight": -1.0},
        {"covariance_weight": -0.1},
        {"covariance_floor": float("nan")},
        {"trace_penalty": -1e-9},
        {"share_weight": -1.0},
        {"effect_variance": 0.0},
        {"effect_variance": -0.25},
        {"guessing": (0.5, 17.0)},
        {"infeasibility": (2.0, 0.0)},
    ],
)
def test_a_prior_outside_its_range_is_refused_by_name(setting):
    with pytest.raises(InputError, match=f"prior {next(iter(setting))}"):
        Priors(**setting)
