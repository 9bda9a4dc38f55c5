"""What items tell when their parameters are only estimated."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.select.bank import bank_of, told_at
from tests.select.banks import N_ITEMS, drawn_bank, drawn_target, run
from tests.tolerances import close


def mean_curve(bank, item, point, draws):
    """Mean probability of an item at an ability over draws of its slopes and intercept."""
    c, d = float(bank.curves.guessing[item]), float(bank.curves.feasibility[item])
    logit = draws @ np.append(point, 1.0)
    return np.mean(c + (d - c) / (1 + np.exp(-logit)))


@pytest.mark.parametrize("dims", [1, 2])
def test_an_uncertain_item_tells_what_its_mean_curve_tells(dims):
    rng = np.random.default_rng(0)
    factor = 0.4 * rng.normal(size=(dims + 1, dims + 1))
    covariance = factor @ factor.T
    packed = np.tile(covariance[np.tril_indices(dims + 1)], (N_ITEMS, 1))
    known = drawn_bank(dims)
    bank = dataclasses.replace(known, spread=jnp.asarray(packed, jnp.float32))
    target = drawn_target(dims)
    found, sure = (np.asarray(told_at(each, target.ability)) for each in (bank, known))
    noise = rng.normal(size=(200_000, dims + 1)) @ factor.T
    item, point = 5, target.ability[0]
    mean = np.append(np.asarray(bank.curves.slope[item]), bank.curves.intercept[item])
    # Along the intercept, which moves every draw's logit alike.
    p, more, less = (
        mean_curve(bank, item, point, mean + noise + step * np.eye(dims + 1)[-1])
        for step in (0, 1e-3, -1e-3)
    )
    expected = ((more - less) / 2e-3) ** 2 / (p * (1 - p))
    np.testing.assert_allclose(found[0, item], expected, rtol=0.02)
    middle = np.abs(np.asarray(bank.curves.logit(jnp.asarray(target.ability, jnp.float32)))) < 0.5
    assert (found[middle] < sure[middle]).all()


def test_without_uncertainty_it_is_fishers_information():
    known = drawn_bank(2)
    bank = dataclasses.replace(known, spread=jnp.zeros((N_ITEMS, 6), jnp.float32))
    ability = drawn_target(2).ability
    close(told_at(bank, ability), told_at(known, ability), kind="reduction", dtype="float32")
    shorter = dataclasses.replace(known, curves=known.curves.taken(np.arange(N_ITEMS - 3)))
    found = told_at(shorter, ability)
    np.testing.assert_array_equal(found[:, : N_ITEMS - 3], told_at(known, ability)[:, :-3])


def test_a_bank_is_the_fits_items_by_id():
    fit = run("2pl-2d")
    bank = bank_of(fit)
    assert bank.item_ids.tolist() == sorted(fit.data.item_ids)
    table = fit.item_parameters().set_index("item_id").loc[bank.item_ids]
    np.testing.assert_allclose(bank.curves.slope[:, 1], table["dim2_slope"], rtol=1e-5)
    spread = np.asarray(bank.spread)[:, [0, 2, 5]]
    columns = ["dim1_slope_se", "dim2_slope_se", "intercept_se"]
    np.testing.assert_allclose(spread, table[columns].to_numpy() ** 2, rtol=1e-4)
    assert bank.n_groups == 4
    assert bank.effect_variance > 0
