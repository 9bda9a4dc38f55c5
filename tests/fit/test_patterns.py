"""Equal rows put together: every model finds its own row again, and the fit is the same."""

import numpy as np
import pytest

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.data.tables import lsat7
from irtjax.fit import patterns
from irtjax.fit.api import fit
from irtjax.fit.patterns import find_patterns
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit
from tests.tolerances import close


def random_rows(missing=0.2):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (300, 3)).astype(np.int8)
    rows[rng.random(rows.shape) < missing] = MISSING
    return rows, np.sort(rng.integers(0, 3, len(rows))).astype(np.int32)


@pytest.mark.parametrize("has_populations", [False, True])
def test_every_model_has_the_pattern_of_its_row(has_populations):
    rows, codes = random_rows()
    codes = codes if has_populations else None
    found = find_patterns(ResponseMatrix.from_dense(rows), codes)
    np.testing.assert_array_equal(found.data.to_dense()[found.index], rows)
    np.testing.assert_array_equal(found.count, np.bincount(found.index))
    assert found.count.sum() == len(rows)
    keys = found.data.to_dense()
    if has_populations:
        np.testing.assert_array_equal(found.codes[found.index], codes)
        keys = np.column_stack([keys, found.codes])
    assert len(np.unique(keys, axis=0)) == len(keys) < len(rows)


def test_patterns_stand_in_the_order_of_their_first_model():
    rows, _ = random_rows()
    index = find_patterns(ResponseMatrix.from_dense(rows)).index
    first = np.unique(index, return_index=True)[1]
    assert np.all(np.diff(first) > 0)


@pytest.mark.parametrize("kind", ["many items", "few models", "weights", "all different"])
def test_nothing_is_put_together_where_it_cannot_pay(kind):
    rows, weight = random_rows()[0], None
    if kind == "many items":
        rows = np.repeat(rows, 20, axis=1)
    elif kind == "few models":
        rows = rows[:20]
    elif kind == "weights":
        weight = np.full(rows.shape, 2.0)
    else:
        rows = np.random.default_rng(2).integers(0, 2, (80, 30)).astype(np.int8)
    data = ResponseMatrix.from_dense(rows, weight=weight)
    found = find_patterns(data)
    assert found.data is data
    np.testing.assert_array_equal(found.index, np.arange(len(rows)))
    np.testing.assert_array_equal(found.count, np.ones(len(rows)))


@pytest.mark.parametrize("family", ["2pl", "rasch"])
def test_the_fit_is_that_of_the_models_one_by_one(monkeypatch, family):
    together = fit(lsat7(), ModelSpec(family))
    monkeypatch.setattr(patterns, "_MOST_ITEMS", 0)
    apart = fit(lsat7(), ModelSpec(family))
    assert (together.report["n_patterns"], apart.report["n_patterns"]) == (32, 1000)
    for name in ("mean", "covariance", "ability", "ability_covariance", "expected_score"):
        one, other = (np.asarray(getattr(r.parameters, name)) for r in (together, apart))
        close(one, other, kind="fit", scale=0.3)
    close(together.report["log_likelihood"], apart.report["log_likelihood"], kind="reduction")


def test_a_model_without_responses_is_kept():
    rows = np.concatenate([lsat7().to_dense(), np.full((2, 5), MISSING, np.int8)])
    result = quiet_fit(ResponseMatrix.from_dense(rows))
    ability = result.parameters.ability[:, 0]
    assert len(ability) == 1002
    np.testing.assert_allclose(ability[-2:], 0, atol=1e-5)
    np.testing.assert_allclose(result.parameters.ability_covariance[-2:, 0, 0], 1, rtol=1e-4)
    close(result.parameters.mean, fit(lsat7()).parameters.mean, kind="fit")
