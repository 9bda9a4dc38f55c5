"""Models with the same responses have the same ability, in every estimator, whatever their order.

Where all have, nothing tells them apart: what rounding leaves of a variance must not be blown up to
standard deviation 1.
"""

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.model.spec import ModelSpec
from tests.fit.conformance import MEMBERS, Member
from tests.fit.fitting import quiet_fit

# Every member of the conformance suite, and the ways of `marginal-items` and `marginal-models` that
# are not among them. Not the networks: each id has random rows of its own to start from, and which
# of its responses validate is drawn.
NETWORKS = ("psn", "deep-irt")
EVERY = {name: one for name, one in MEMBERS.items() if one.estimator not in NETWORKS} | {
    "items-empirical": Member(
        "marginal-items", ModelSpec("2pl"), (("item_distribution", "empirical"),)
    ),
    "models-adaptive": Member("marginal-models", ModelSpec("2pl"), (("quadrature", "adaptive"),)),
    "models-variational": Member(
        "marginal-models", ModelSpec("2pl"), (("quadrature", "variational"),)
    ),
}
# Standard deviations: rounding, and what steps leave that are small enough to end at.
EQUAL = 1e-4


@pytest.fixture(params=list(EVERY))
def member(request):
    return EVERY[request.param]


def refit(member, rows):
    """A fit of other responses of the member's shape."""
    data = ResponseMatrix.from_dense(rows, item_metadata=member.data.item_metadata)
    return member.fit(data)


def abilities(fit):
    return fit.abilities().filter(regex=r"dim\d_ability$").to_numpy()


def test_twins_have_the_same_abilities(member):
    rows = member.data.to_dense()
    twin = np.random.default_rng(0).permutation(np.arange(len(rows)) % (len(rows) // 2))
    ability = abilities(refit(member, rows[twin]))
    first = np.array([np.flatnonzero(twin == k)[0] for k in twin])
    np.testing.assert_allclose(ability, ability[first], atol=EQUAL)
    assert np.ptp(ability) > 1


def rows_of(kind, shape):
    if kind == "all right":
        return np.ones(shape, int)
    return np.tile(np.random.default_rng(1).integers(0, 2, shape[1]), (shape[0], 1))


@pytest.mark.parametrize("kind", ["all right", "the same"])
def test_nothing_tells_models_apart_that_all_answered_alike(member, kind):
    fit = refit(member, rows_of(kind, member.data.to_dense().shape))
    ability, models, items = abilities(fit), fit.abilities(), fit.item_parameters()
    assert np.ptp(ability, axis=0).max() < EQUAL
    # Abilities that are integrated out are relative to a population, not to the models.
    assert member.estimator == "marginal-models" or np.abs(ability).max() < EQUAL
    assert items["flags"].str.contains("weak_slope").all()
    assert "no_signal" in fit.report["dimensions"][0]["flags"]
    assert any("dim 1" in each or "dims 1" in each for each in fit.report["warnings"])
    for table in (items, models):
        known = table.select_dtypes("number").filter(regex="^(?!difficulty|.*clustered)")
        assert np.isfinite(known.to_numpy()).all()
        assert not table["flags"].str.contains("no_error").any()
    assert models.filter(regex="ability_se$").to_numpy().max() < 1.1
    # What was said of the one model is said of all.
    np.testing.assert_allclose(
        models.expected_score, np.nanmean(items.p_correct), atol=0.15, rtol=0
    )


@pytest.mark.parametrize("estimator", ["marginal-items", "joint-map"])
def test_dims_that_the_data_do_not_have_stay_0(estimator):
    # Two kinds of models: all there is to tell is one dim.
    rows = np.repeat(np.random.default_rng(2).integers(0, 2, (2, 12)), 6, axis=0)
    data = ResponseMatrix.from_dense(rows)
    ability = abilities(quiet_fit(data, ModelSpec("2pl", 2), estimator=estimator))
    np.testing.assert_allclose(ability, np.repeat(ability[::6], 6, axis=0), atol=EQUAL)
    np.testing.assert_allclose(np.sort(np.ptp(ability, axis=0)), [0, 2], atol=1e-3)


def test_above_512_models_too():
    row = np.random.default_rng(3).integers(0, 2, 12)
    fit = quiet_fit(ResponseMatrix.from_dense(np.tile(row, (520, 1))), estimator="marginal-items")
    assert np.ptp(abilities(fit)) < EQUAL
