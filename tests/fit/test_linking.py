"""`link`: two fits of different models brought to one scale, end to end."""

import dataclasses
import functools

import numpy as np
import pytest

from irtjax.errors import InputError
from irtjax.fit.bootstrap import parametric_bootstrap
from irtjax.fit.linking import link, on_scale_of
from irtjax.fit.scale_change import ScaleChange
from tests.fit.fitting import fitted, quiet_fit
from tests.fit.populations_apart import apart


@functools.cache
def own_fit():
    """The second population's fit by itself."""
    return quiet_fit(apart("marginal-models").new, estimator="marginal-models")


@pytest.mark.parametrize("method", ["haebara", "stocking-lord", "mean-sigma", "oblique"])
def test_the_second_population_is_found_on_the_firsts_scale(method):
    both = apart("marginal-models")
    found = link(own_fit(), both.run, method)
    # 20 anchors from 1,000 models each.
    assert found.change.shift[0] == pytest.approx(both.ability.mean(), abs=0.15)
    assert found.change.matrix[0, 0] == pytest.approx(both.ability.std(), abs=0.15)
    assert len(found.anchors) == both.n_anchors
    assert found.fit.report["linked"]["mean"] == pytest.approx(found.change.shift)
    assert found.n_drifted <= 2


def test_probabilities_stay_and_drifted_items_are_named():
    both, fit = apart("marginal-models"), own_fit()
    mean = np.array(both.run.parameters.mean)
    mean[both.n_anchors + 3, 0, -1] += 2  # the fourth anchor
    drifted = dataclasses.replace(
        both.run, parameters=dataclasses.replace(both.run.parameters, mean=mean)
    )
    found = link(fit, drifted)
    assert found.anchors["is_drifted"].to_numpy().nonzero()[0].tolist() == [3]
    row = found.anchors.iloc[3]
    assert row["drift"] > 3 * found.threshold
    assert row["rmsd"] > 0.1
    clean = link(fit, both.run)
    np.testing.assert_allclose(found.change.shift, clean.change.shift, atol=0.05)
    models, items = np.indices((50, fit.data.n_items)).reshape(2, -1)
    away = found.fit.predict_cells(models, items) - fit.predict_cells(models, items)
    assert np.abs(away).max() < 1e-6


def test_a_turned_fit_is_turned_back():
    fit = fitted("2pl-2d")
    change = ScaleChange(np.array([[0.8, -0.6], [0.9, 0.7]]), np.array([0.5, -1.0]))
    moved = on_scale_of(fit, fit, change, {})
    found = link(moved, fit)
    np.testing.assert_allclose(found.change.matrix @ change.matrix, np.eye(2), atol=1e-3)
    np.testing.assert_allclose(found.fit.parameters.ability, fit.parameters.ability, atol=1e-2)


def test_a_linked_fit_is_not_bootstrapped_off_its_scale():
    fit = fitted("2pl")
    with pytest.raises(InputError, match="on another fit's scale"):
        parametric_bootstrap(link(fit, fit).fit, n_samples=2)


def test_what_cannot_be_linked_is_refused_in_one_line():
    fit, other = fitted("2pl"), fitted("2pl-2d")
    apart_run = apart("marginal-models").run
    for arguments, message in (
        ((fit, other), "the fit is a 2pl with 1 dim, the reference a 2pl with 2 dims"),
        ((fit, apart_run), "0 items with answers in both fits"),
        ((fit, fit, "concurrent"), "method 'concurrent' is not known; use one of haebara"),
        ((other, other, "haebara"), "method haebara is for one dim, not 2; use oblique"),
        ((fit, "run"), "link takes FitResults, but the reference is 'run'"),
    ):
        with pytest.raises(InputError, match=message):
            link(*arguments)
