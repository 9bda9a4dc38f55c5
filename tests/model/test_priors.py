"""Priors by name: what `parse_prior` takes, what it refuses, and the defaults by family."""

import dataclasses
import math

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
        ("slope=normal(0, 0)", "an sd above 0"),
        ("slope=lognormal(0, -1)", "an sd above 0"),
        ("intercept=normal(nan, 1)", "a finite mean"),
        ("guessing=beta(0.5, 3)", "a, b >= 1"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(text, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_prior(Priors(), text)
    assert "\n" not in str(raised.value)


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
