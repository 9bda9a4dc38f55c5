"""How many abilities, and which come back: by definition, and on data with two."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest

import irtjax as ij
from irtjax.audit.dimensions import (
    FEWEST_CORRELATED,
    REFITS,
    compare_dims,
    dim_correlations,
    explained_variance,
    fits_by_dims,
    refit_agreement,
    stable_dims,
)


@functools.cache
def fitted(dims=2):
    """Two strong abilities in 60 x 600."""
    data = ij.simulate(ij.ModelSpec(dims=2), n_models=60, n_items=600, n_benchmarks=2, seed=1).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ij.IrtjaxWarning)
        return ij.fit(data, ij.ModelSpec(dims=dims), max_steps=40)


@functools.cache
def agreement(dims):
    return refit_agreement(fitted(dims), refits=2, seed=0)


def test_true_dims_come_back_from_every_kind_of_refit():
    found = agreement(2)
    assert found["kind"].unique().tolist() == list(REFITS)
    assert len(found) == 3 * 2 * 2
    # Other starts end at the same optimum.
    seeds = found[found["kind"] == "seeds"]
    assert seeds[["ability_correlation", "slope_correlation", "congruence"]].min(axis=None) > 0.999
    verdict = stable_dims(found)
    assert verdict["dim"].tolist() == [1, 2]
    assert verdict["is_stable"].all()
    assert (verdict["reason"] == "").all()


def test_a_dim_fitted_to_noise_does_not_come_back():
    verdict = stable_dims(agreement(3))
    assert verdict["is_stable"].tolist() == [True, True, False]
    assert "correlation" in verdict["reason"].iloc[2]
    assert verdict["seeds_correlation"].iloc[2] < FEWEST_CORRELATED


def test_the_verdict_is_of_means_over_the_refits_of_each_kind():
    rows = [
        {"kind": "seeds", "dim": 1, "ability_correlation": 0.99, "congruence": 0.99},
        {"kind": "seeds", "dim": 1, "ability_correlation": 0.85, "congruence": 0.99},
        {"kind": "items", "dim": 1, "ability_correlation": 0.95, "congruence": 0.80},
        {"kind": "seeds", "dim": 2, "ability_correlation": 0.95, "congruence": 0.90},
        {"kind": "items", "dim": 2, "ability_correlation": np.nan, "congruence": 0.90},
    ]
    verdict = stable_dims(pd.DataFrame(rows))
    assert verdict["seeds_correlation"].tolist() == pytest.approx([0.92, 0.95])
    assert verdict["is_stable"].tolist() == [False, False]
    assert verdict["reason"].tolist() == [
        "items: congruence 0.80, below 0.85",
        "items: correlation nan, below 0.9",
    ]


def test_halves_complement_each_other_and_are_the_same_at_every_call():
    found = agreement(2)
    again = refit_agreement(fitted(2), refits=1, kinds=["models"], seed=0)
    first = found[(found["kind"] == "models") & (found["refit"] == 1)]
    pd.testing.assert_frame_equal(first.reset_index(drop=True), again)


def test_explained_variance_and_correlations_between_numbers_of_dims():
    fits = fits_by_dims(fitted(2), (1, 2, 3), max_steps=40)
    assert fits[2] is fitted(2)
    explained = explained_variance(fits)
    assert explained["dims"].tolist() == [1, 2, 2, 3, 3, 3]
    for dims, of in explained.groupby("dims"):
        loading = fits[dims].item_parameters()[[f"dim{k + 1}_loading" for k in range(dims)]]
        np.testing.assert_allclose(
            of["explained_variance"], np.mean(loading.to_numpy() ** 2, axis=0), rtol=1e-3
        )
    found = dim_correlations(fits)
    assert len(found) == 1 * 2 + 1 * 3 + 2 * 3
    ability = {dims: np.asarray(fit.parameters.ability, float) for dims, fit in fits.items()}
    for row in found.itertuples():
        x, y = ability[row.dims][:, row.dim - 1], ability[row.other_dims][:, row.other_dim - 1]
        assert row.correlation == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-9)
    # The two true dims are found again among three.
    kept = found[(found["dims"] == 2) & (found["other_dims"] == 3)]
    assert (kept.groupby("dim")["correlation"].max() > 0.95).all()


@pytest.mark.slow
def test_held_out_predictions_choose_two_dims():
    found = compare_dims(fitted(2), (1, 2), folds=2, max_steps=15)
    assert found.chosen_dims == 2
    assert {"log_loss", "log_loss_se", "accuracy", "mae"} <= set(found.table.columns)
    assert found.settings["estimator"] == "marginal-items"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda fit: refit_agreement("run"), "of a FitResult, not str"),
        (lambda fit: refit_agreement(fit, refits=0), "refits must be a whole number"),
        (lambda fit: refit_agreement(fit, kinds=["halves"]), "seeds, items, models, not 'halves'"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ij.InputError, match=message):
        call(fitted(2))
