"""Interpolated sums of P and P^2 over the items of each group, against every node at every item."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit

from irtjax.score.bank import item_bank, without_effects
from irtjax.score.effects import EffectPrior
from irtjax.score.group_sums import sums_at
from tests.score.fits import N_ITEMS, given

GROUP = (np.arange(N_ITEMS) % 2).astype(np.int32)
N_SPOTS = 5


def _oracle(mean, latent, effect):
    logit = latent @ mean[:, :-1].T + mean[:, -1]
    p = expit(logit[:, None] + effect[:, :, GROUP])
    sums = [(p**power) @ np.eye(2)[GROUP] for power in (1, 2)]
    return np.stack(sums)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("n_points", [3, 4000])
@pytest.mark.parametrize("has_effects", [True, False])
def test_sums_are_those_of_all_items_at_every_node(dims, n_points, has_effects):
    known = given(dims)
    prior = EffectPrior(GROUP, ["x", "y"], np.zeros(2), np.full(2, 0.3))
    bank = item_bank(known.fit, prior, is_uncertain=False)
    bank = dataclasses.replace(without_effects(bank, dims), group=bank.group)
    rng = np.random.default_rng(n_points)
    latent = np.clip(rng.normal(0, 1.2, (n_points, dims)), -4, 4)
    effect = rng.normal(0, 0.5 * has_effects, (n_points, N_SPOTS, 2))
    found = np.stack(sums_at(bank, 2, latent, effect))
    # Of an item at most 1e-4 is left out, by steep ones where few nodes are.
    np.testing.assert_allclose(
        found, _oracle(known.oracle.mean, latent, effect), atol=1e-4 * N_ITEMS
    )


@pytest.mark.oracle
def test_a_node_alone_is_computed_not_interpolated():
    known = given(2)
    bank = item_bank(known.fit, None, is_uncertain=False)
    latent, effect = np.array([[0.3, -1.2]]), np.zeros((1, 1, 1))
    first, second = sums_at(bank, 1, latent, effect)
    logit = latent @ known.oracle.mean[:, :-1].T + known.oracle.mean[:, -1]
    assert first[0, 0, 0] == pytest.approx(expit(logit).sum(), rel=1e-5)
    assert second[0, 0, 0] == pytest.approx((expit(logit) ** 2).sum(), rel=1e-5)
