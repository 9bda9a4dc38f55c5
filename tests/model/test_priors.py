"""Priors by name: what `parse_prior` takes, what it refuses, and the defaults by family."""

import dataclasses
import math

import numpy as np
import pytest

from irtjax.errors import InputError
from irtjax.model.priors import LogNormal, Normal, Priors, parse_prior
from irtjax.model.spec import ModelSpec


@pytest.mark.parametrize(
    "text, name, value",
    [
        ("slope=lognormal(0.2, .3)", "slope", LogNormal(0.2, 0.3)),
        ("slope = normal(1, 0.5)", "slope", Normal(1, 0.5)),
        ("slope=off", "slope", Normal()),
        ("intercept=normal(0,3)", "intercept", Normal(0, 3)),
        ("intercept=off", "intercept", Normal()),
        ("guessing=beta(5, 17)", "guessing", (5.0, 17.0)),
        ("guessing=off", "guessing", (1.0, 1.0)),
        ("infeasibility=beta(2, 18)", "infeasibility", (2.0, 18.0)),
        ("infeasibility=off", "infeasibility", (1.0, 1.0)),
    ],
)
def test_a_prior_is_changed_by_name(text, name, value):
    changed = parse_prior(Priors(), text)
    assert getattr(changed, name) == value
    others = [field.name for field in dataclasses.fields(Priors) if field.name != name]
    assert all(getattr(changed, other) == getattr(Priors(), other) for other in others)


@pytest.mark.parametrize(
    "text, message",
    [
        ("difficulty=normal(0, 1)", "'difficulty' has no prior; use one of slope, intercept"),
        ("slope=gamma(1, 2)", r"not understood; write slope=normal\(A, B\) or slope=lognormal"),
        ("intercept=lognormal(0, 1)", r"not understood; write intercept=normal\(A, B\)"),
        ("guessing=normal(0, 1)", r"not understood; write guessing=beta\(A, B\), or guessing=off"),
        ("slope=normal(1)", "not understood"),
        ("slope", "not understood"),
        ("", "has no prior"),
        ("slope=normal(one, 2)", "needs two numbers"),
        ("slope=normal(0, 1", "not understood"),
        ("slope=normal 0, 1)", "not understood"),
        ("slope=normal:0, 1", "not understood"),
        ("slope=normal(0, 1, 2)", "not understood"),
        ("slope=normal(0, 1))", "not understood"),
        ("slope=normal(0, 0)", r"sd of a normal prior must be a number from 0.001 .* not 0.0; "),
        ("slope=normal(0, 1e-300)", "not 1e-300; NAME=off"),
        ("slope=normal(0, 1e-30)", "prior 'slope=normal.0, 1e-30.': the sd"),
        ("slope=normal(0, 1e200)", "not 1e.200"),
        ("slope=normal(1e300, 1)", "the mean of a normal prior must be a number from -100 to 100"),
        ("slope=lognormal(0, -1)", "not -1.0"),
        ("slope=lognormal(0, inf)", "not inf; NAME=off"),
        ("slope=lognormal(50, 1)", "the mean of a lognormal prior must be .* from -10 to 10"),
        ("intercept=normal(nan, 1)", "not nan"),
        ("guessing=beta(0.5, 3)", "a must be a number from 1 to 10000, not 0.5"),
        ("guessing=beta(nan, 17)", "a must be a number from 1 to 10000, not nan"),
        ("guessing=beta(5, inf)", "b must be a number from 1 to 10000, not inf"),
        ("infeasibility=beta(1e300, 1e300)", "a must be .* not 1e.300"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(text, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_prior(Priors(), text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"guessing": (1, 2, 3)}, "guessing is two numbers .a, b. of Beta.a, b., not .1, 2, 3."),
        ({"guessing": 3}, "guessing is two numbers"),
        ({"infeasibility": "beta(2, 18)"}, "infeasibility is two numbers .* not 'beta"),
        ({"guessing": ("5", 17)}, "a must be a number from 1 to 10000, not '5'"),
        ({"slope": "normal(0, 1)"}, "slope must be Normal.mean, sd. or LogNormal"),
        ({"slope": (0, 1)}, "slope must be Normal"),
        ({"intercept": LogNormal()}, r"intercept must be Normal\(mean, sd\), not LogNormal"),
        ({"mean_weight": "1"}, "mean_weight must be a number from 0 to 1e.06, not '1'"),
        ({"covariance_weight": 1e300}, "covariance_weight must be"),
        ({"effect_variance": float("nan")}, "effect_variance must be a number from 1e-06"),
        ({"trace_penalty": True}, "trace_penalty must be a number"),
    ],
)
def test_what_is_no_prior_is_refused_in_one_line(given, message):
    with pytest.raises(InputError, match=message) as raised:
        Priors(**given)
    assert "\n" not in str(raised.value)


def test_numbers_of_priors_are_plain_floats():
    priors = Priors(guessing=[np.float32(5), np.int64(17)], slope=Normal(np.float64(1), 2))
    assert (priors.guessing, priors.slope) == ((5.0, 17.0), Normal(1.0, 2.0))
    assert all(type(each) is float for each in (*priors.guessing, priors.slope.mean))
    hash(priors)  # an argument that compiled programs are kept by


@pytest.mark.parametrize("prior", [Normal(0, 10), LogNormal(0.5, 2), Normal()])
def test_a_prior_is_written_as_it_is_read(prior):
    assert parse_prior(Priors(), f"slope={prior}").slope == prior


def test_defaults_by_family():
    priors = Priors()
    assert priors.of_slopes(ModelSpec("2pl")) == Normal(0, 10)
    assert priors.of_slopes(ModelSpec("1pl")) == Normal(0, 10)
    assert priors.of_slopes(ModelSpec("3pl")) == LogNormal(0, 0.5)
    assert priors.of_slopes(ModelSpec("4pl")) == LogNormal(0, 0.5)
    # A slope of several dims may be negative.
    assert priors.of_slopes(ModelSpec("3pl", 2)) == Normal(0, 10)
    assert (priors.guessing, priors.infeasibility) == ((5, 17), (2, 18))


def test_off_is_maximum_likelihood():
    off = Priors.off()
    assert off.of_slopes(ModelSpec("3pl")).sd == math.inf
    assert off.intercept.sd == math.inf
    assert off.guessing == off.infeasibility == (1, 1)
