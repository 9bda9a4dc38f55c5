"""Likelihoods of items on the grid against float64 loops, and the shares of the curves."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from irtjax.audit.item_curves import (
    ASYMPTOTES,
    CHOSEN,
    N_FALLING,
    N_PLACES,
    N_REGULAR,
    N_WRONG_KEY,
    PLACES,
    item_curves,
)
from irtjax.audit.item_mixture import (
    ROWS,
    Counts,
    Evidence,
    Mixture,
    evidence_of,
    falling_shares,
    fitted_mixture,
    mixture_weights,
    shares_of_wrong_keys,
)
from tests.tolerances import close

N_MODELS = 12


def curves_in_numpy(ability, error):
    """P of every model and curve, one curve at a time, errors integrated by 200 midpoints."""
    quantile = np.linspace(-5, 5, 201)
    weight = np.exp(-(quantile**2) / 2)
    weight /= weight.sum()
    theta = ability[:, None] + error[:, None] * quantile

    def p(slope, intercept, low, high):
        return (low + (high - low) * expit(slope * theta + intercept)) @ weight

    found = [p(*place, *ends) for ends in ASYMPTOTES for place in PLACES]
    found += [p(-0.3 * slope, intercept, 0.1, 0.995) for slope, intercept in PLACES]
    found += [p(-slope, intercept, 0.005, 0.995) for slope, intercept in PLACES]
    found += [q * (1 - p(*place, 0.1, 0.995)) for q in CHOSEN for place in PLACES]
    return np.stack(found, axis=1)


def some_counts(n_items, seed=0):
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 2, (n_items, N_MODELS)).astype(np.float32)
    is_seen = rng.random(right.shape) < 0.8
    return Counts(right * is_seen, (1 - right) * is_seen)


@pytest.mark.oracle
def test_curves_are_those_of_numpy():
    rng = np.random.default_rng(1)
    ability, error = rng.standard_normal(N_MODELS), rng.uniform(0, 0.3, N_MODELS)
    curves = item_curves(jnp.asarray(ability, float), jnp.asarray(error, float))
    expected = curves_in_numpy(ability, error)
    assert expected.shape[1] == N_REGULAR + N_FALLING + N_WRONG_KEY
    # Five nodes are exact to 1e-3 for the widest errors times the steepest slopes.
    np.testing.assert_allclose(np.exp(curves.log_right), expected, atol=1.5e-3)
    close(np.exp(curves.log_right) + np.exp(curves.log_wrong), np.ones_like(expected))


@pytest.mark.oracle
def test_evidence_is_that_of_loops():
    ability = np.linspace(-2, 2, N_MODELS)
    curves = item_curves(jnp.asarray(ability, float), jnp.zeros(N_MODELS, float))
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(N_REGULAR))
    mixture = Mixture(weight, 0.03, 0.01, 0.2)
    counts = some_counts(5)
    found = evidence_of([counts], curves, mixture)
    p = curves_in_numpy(ability, np.zeros(N_MODELS))
    place = weight.reshape(-1, N_PLACES).sum(axis=0)
    for j in range(5):
        each = np.array(
            [
                np.sum(counts.right[j] * np.log(column) + counts.wrong[j] * np.log1p(-column))
                for column in p.T
            ]
        )
        regular = each[:N_REGULAR] + np.log(weight)
        kinds = np.log(np.concatenate([0.8 * place, 0.2 * place]))
        falling = each[N_REGULAR : N_REGULAR + N_FALLING] + kinds
        close(found.regular[j], logsumexp(regular), kind="solve")
        close(found.falling[j], logsumexp(falling), kind="solve")
        share = np.exp(regular - logsumexp(regular)).reshape(-1, N_PLACES).sum(axis=1)
        close(found.asymptotes[j], share, kind="solve")
        chosen = mixture_weights(mixture)[N_REGULAR + N_FALLING :]
        wrong_key = each[N_REGULAR + N_FALLING :] + chosen
        close(found.wrong_key[j], logsumexp(wrong_key), kind="solve")


def test_falling_items_have_a_share_in_every_benchmark():
    # Of 200 plainly falling items 180 are in the first benchmark, of 200 rising ones 20.
    falls = np.arange(400) < 200
    benchmark = np.where(falls, np.arange(400) >= 180, np.arange(400) >= 220).astype(int)
    kinds = [np.where(falls, low, high) for low, high in ((-40.0, 0.0), (0.0, -40.0))]
    items = Evidence(kinds[0], kinds[1], np.full(400, -40.0), np.zeros((400, len(ASYMPTOTES))))
    mixture = Mixture(np.full(N_REGULAR, 1 / N_REGULAR), 0.1, 0.01, 0.5)
    share = falling_shares(items, mixture, benchmark)
    np.testing.assert_allclose(share[benchmark == 0], (180 + 30 * 0.1) / 230, rtol=1e-6)
    np.testing.assert_allclose(share[benchmark == 1], (20 + 30 * 0.1) / 230, rtol=1e-6)
    # One item alone is taken for what most are.
    alone = falling_shares(items, mixture, np.arange(400))
    assert alone.max() < 0.13


def test_items_that_nobody_answered_have_no_evidence():
    curves = item_curves(jnp.zeros(N_MODELS), jnp.zeros(N_MODELS))
    nothing = Counts(np.zeros((2, N_MODELS)), np.zeros((2, N_MODELS)))
    mixture = fitted_mixture([([nothing], curves)])
    found = evidence_of([nothing], curves, mixture)
    for part in (found.regular, found.falling, found.wrong_key):
        np.testing.assert_allclose(part, 0, atol=1e-4)


def test_shares_sum_to_one_and_chunks_do_not_matter():
    curves = item_curves(jnp.linspace(-2, 2, N_MODELS), jnp.zeros(N_MODELS))
    counts = some_counts(300)
    parts = [Counts(counts.right[k : k + 100], counts.wrong[k : k + 100]) for k in (0, 100, 200)]
    one, three = fitted_mixture([([counts], curves)]), fitted_mixture([(parts, curves)])
    assert one.weight.sum() == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(one.weight, three.weight, atol=1e-6)
    whole, cut = evidence_of([counts], curves, one), evidence_of(parts, curves, one)
    np.testing.assert_array_equal(whole.regular, cut.regular)
    assert len(counts.right) < ROWS


def test_the_share_of_wrong_keys_is_found_where_they_are_plain():
    ratio = np.where(np.arange(2000) < 200, 30.0, -30.0)
    probability, share = shares_of_wrong_keys(ratio)
    assert share == pytest.approx(201 / 2100, abs=1e-3)
    assert probability[0] > 0.999
    assert probability[-1] < 1e-9
