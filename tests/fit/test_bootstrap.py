"""Parametric bootstrap: what is drawn, in which frame refits are compared, and what it finds."""

import dataclasses
import functools
import warnings

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.tables import lsat7
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit import bootstrap as module
from irtjax.fit.bootstrap import parametric_bootstrap
from irtjax.fit.bootstrap_settings import fit_arguments, priors_of
from irtjax.fit.report import plain_settings
from irtjax.fit.result import FitResult
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import fitted, quiet_fit


@functools.cache
def lsat7_fit():
    return quiet_fit(lsat7(), ModelSpec("2pl"))


@functools.cache
def lsat7_bootstrap():
    return parametric_bootstrap(lsat7_fit(), n_samples=60)


def test_errors_of_lsat7_are_the_analytic_ones():
    found = lsat7_bootstrap()
    assert found.statuses == {"converged": 60}
    # A ratio is known to .09; of the five items the median to about .05. With 400 samples they are
    # .95, 1.13, 1.30, 1.00, 1.04: the slope of item 3 has a long right tail.
    ratios = found.ratios()
    assert set(ratios.index) == {
        "difficulty",
        "discrimination",
        "intercept",
        "dim1_slope",
        "dim1_ability",
    }
    for name in ("intercept", "difficulty", "dim1_ability"):
        assert ratios[name] == pytest.approx(1, abs=0.15), name
    items = found.items.drop(index=2)
    for name in ("intercept", "dim1_slope"):
        both = items[[f"{name}_se", f"{name}_se_analytic"]].to_numpy()
        assert np.sqrt(np.mean(both[:, 0] ** 2) / np.mean(both[:, 1] ** 2)) == pytest.approx(
            1, abs=0.15
        )


def test_intervals_are_about_the_estimates():
    found = lsat7_bootstrap()
    for table, name in (
        (found.items, "intercept"),
        (found.items, "dim1_slope"),
        (found.abilities, "dim1_ability"),
    ):
        assert (table[f"{name}_low"] < table[name]).all()
        assert (table[name] < table[f"{name}_high"]).all()
        width = (table[f"{name}_high"] - table[f"{name}_low"]) / (2 * 1.96 * table[f"{name}_se"])
        assert width.median() == pytest.approx(1, abs=0.2)
    # No item of a 2PL has asymptotes to err in.
    assert (found.items[["guessing_se", "feasibility_se"]] == 0).all(axis=None)


def test_the_seed_decides_and_the_ids_are_those_of_the_data():
    one, same, other = (
        parametric_bootstrap(lsat7_fit(), n_samples=3, seed=seed) for seed in (5, 5, 6)
    )
    pd.testing.assert_frame_equal(one.items, same.items)
    pd.testing.assert_frame_equal(one.abilities, same.abilities)
    assert not np.allclose(one.items.intercept_se, other.items.intercept_se)
    assert one.items.item_id.tolist() == lsat7().item_ids.tolist()
    assert one.abilities.model_id.tolist() == lsat7().model_ids.tolist()


@pytest.mark.parametrize("kind", ["2pl", "2pl-2d"])
def test_integrated_items_err_as_their_posteriors_say(kind):
    found = parametric_bootstrap(fitted(kind), n_samples=12)
    dims = fitted(kind).spec.dims
    names = ["intercept", *(f"dim{k + 1}_slope" for k in range(dims))]
    for name in names:
        mean_square = np.mean(found.items[[f"{name}_se", f"{name}_se_analytic"]] ** 2, axis=0)
        assert np.sqrt(mean_square.iloc[0] / mean_square.iloc[1]) == pytest.approx(1, abs=0.2), name
    for k in range(dims):
        assert found.ratios()[f"dim{k + 1}_ability"] == pytest.approx(1, abs=0.35)


def test_samples_have_the_cells_of_the_data_and_their_layout(monkeypatch):
    given = []

    def keep(data, spec, **arguments):
        given.append((data, arguments))
        return fitted("2pl")

    monkeypatch.setattr(module, "refit", keep)
    parametric_bootstrap(fitted("2pl"), n_samples=2)
    data = fitted("2pl").data
    (first, arguments), (second, _) = given
    assert arguments["estimator"] == "marginal-items"
    for sample in (first, second):
        assert sample.dense.dtype == data.dense.dtype
        np.testing.assert_array_equal(sample.dense >= 0, data.dense >= 0)
        pd.testing.assert_frame_equal(sample.item_metadata, data.item_metadata)
    assert np.any(first.dense != second.dense)


def test_refits_are_turned_to_the_frame_of_the_fit():
    result = fitted("2pl-2d")
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = turn @ np.diag([1, -1])
    mean = np.array(result.parameters.mean, np.float64)
    mean[..., :-1] = mean[..., :-1] @ turn
    moved = dataclasses.replace(
        result.parameters, mean=mean, ability=np.asarray(result.parameters.ability) @ turn
    )
    back = module._turned(result, dataclasses.replace(result, parameters=moved))
    np.testing.assert_allclose(back.parameters.mean, result.parameters.mean, atol=1e-5)
    np.testing.assert_allclose(back.parameters.ability, result.parameters.ability, atol=1e-5)


def test_arguments_are_those_of_the_fit_also_after_loading(tmp_path):
    priors = Priors(slope=LogNormal(0.1, 0.7), intercept=Normal())
    result = quiet_fit(
        lsat7(), ModelSpec("2pl"), priors=priors, quadrature="adaptive", nodes=9, seed=3
    )
    result.save(tmp_path / "run")
    for each in (result, FitResult.load(tmp_path / "run")):
        arguments = fit_arguments(each)
        again = quiet_fit(lsat7(), each.spec, **arguments)
        assert arguments["priors"] == priors
        assert again.report["settings"] == result.report["settings"]
        assert again.report["log_likelihood"] == result.report["log_likelihood"]
    assert priors_of(plain_settings(Priors())) == Priors()


def test_a_confirmatory_fit_is_refitted_with_its_mask():
    mask = np.repeat(np.eye(2, dtype=int), [3, 2], axis=0)
    result = quiet_fit(lsat7(), loadings=mask, correlated=True, estimator="marginal-models")
    found = parametric_bootstrap(result, n_samples=2)
    np.testing.assert_array_equal(fit_arguments(result)["loadings"], mask == 1)
    slopes = found.items[["dim1_slope_se", "dim2_slope_se"]].to_numpy()
    np.testing.assert_array_equal(slopes > 0, mask == 1)


def _with_report(**changes):
    return dataclasses.replace(lsat7_fit(), report=lsat7_fit().report | changes)


def test_what_cannot_be_simulated_is_refused_in_one_line():
    data = ResponseMatrix.from_dense(np.full((6, 8), 0.5, np.float32))
    old = {k: v for k, v in lsat7_fit().report.items() if k != "asked"}
    for given, settings, what in (
        (lsat7_fit(), {"n_samples": 1}, "n_samples must be a whole number of at least 2"),
        (lsat7_fit(), {"n_samples": 2.5}, "not 2.5"),
        (lsat7_fit(), {"seed": -1}, "the seed must be"),
        (lsat7(), {}, "takes a FitResult, not ResponseMatrix"),
        (_with_report(status="diverged"), {}, "the fit diverged"),
        (_with_report(ability_distribution="empirical"), {}, "does not keep its weights"),
        (dataclasses.replace(lsat7_fit(), data=data), {}, "number of answers of each cell"),
        (dataclasses.replace(lsat7_fit(), report=old), {}, "fit again"),
    ):
        with pytest.raises(InputError, match=what) as error:
            parametric_bootstrap(given, **settings)
        assert "\n" not in str(error.value)


def test_refits_that_do_not_converge_are_counted():
    short = _with_report(asked=lsat7_fit().report["asked"] | {"max_steps": 1})
    with pytest.warns(IrtjaxWarning, match="2 of 2 refits did not converge"):
        found = parametric_bootstrap(short, n_samples=2)
    assert found.statuses == {"max_steps": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parametric_bootstrap(lsat7_fit(), n_samples=2).n_samples == 2
