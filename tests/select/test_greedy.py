"""Greedy gains and exchange against determinants and traces in float64; quotas; prefixes."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from irtjax.model.curves import item_curves
from irtjax.select.greedy import exchanged, greedy
from irtjax.select.precision import precision_curve, size_for
from irtjax.select.quotas import Quotas
from irtjax.select.target import Target
from tests.select.banks import N_ITEMS, drawn_bank, drawn_target, free
from tests.tolerances import close


def objective(bank, target, items, criterion, direction=None):
    """Minus log det or trace of the measured part of the posterior, averaged over the target."""
    slope, intercept, c, d = (
        np.asarray(leaf, np.float64)
        for leaf in (
            bank.curves.slope,
            bank.curves.intercept,
            bank.curves.guessing,
            bank.curves.feasibility,
        )
    )
    dims, items = slope.shape[1], np.asarray(items, int)
    loading = slope
    if bank.group is not None:
        loading = np.concatenate([slope, np.eye(bank.n_groups)[bank.group]], axis=1)
    measured = np.eye(dims, loading.shape[1])
    if direction is not None:
        measured = np.pad(np.asarray(direction, float), (0, loading.shape[1] - dims))[None]
    total = 0.0
    for point, weight in zip(target.ability, target.weight, strict=True):
        s = 1 / (1 + np.exp(-(slope @ point + intercept)))
        p = c + (d - c) * s
        told = ((d - c) * s * (1 - s)) ** 2 / (p * (1 - p))
        precision = np.linalg.inv(bank.prior_covariance())
        precision = precision + (loading[items].T * told[items]) @ loading[items]
        posterior = measured @ np.linalg.inv(precision) @ measured.T
        value = np.linalg.slogdet(posterior)[1] if criterion == "d-optimal" else np.trace(posterior)
        total -= weight * value
    return total


CASES = [
    pytest.param(criterion, dims, n_groups, direction, id=f"{criterion}-{dims}-{n_groups}-{name}")
    for criterion in ("d-optimal", "a-optimal")
    for dims, n_groups, direction, name in (
        (1, 0, None, "all"),
        (2, 0, None, "all"),
        (2, 0, (0.6, 0.8), "direction"),
        (2, 3, None, "effects"),
        (2, 3, (0.6, 0.8), "effects-direction"),
    )
]


@pytest.mark.oracle
@pytest.mark.parametrize("criterion, dims, n_groups, direction", CASES)
def test_every_pick_is_the_best_and_its_gain_exact(criterion, dims, n_groups, direction):
    bank, target = drawn_bank(dims, n_groups=n_groups), drawn_target(dims)
    order, gain = greedy(bank, target, free(), 6, criterion=criterion, direction=direction)
    before = objective(bank, target, [], criterion, direction)
    for k, item in enumerate(order):
        others = np.setdiff1d(np.arange(N_ITEMS), order[:k])
        found = {
            j: objective(bank, target, [*order[:k], j], criterion, direction) - before
            for j in others
        }
        best = max(found, key=found.__getitem__)
        assert item == best or found[best] - found[item] < 1e-5 * found[best]
        close(gain[k], found[item], kind="solve")
        before += found[item]


@pytest.mark.oracle
@pytest.mark.parametrize("n_groups", [0, 3])
def test_errors_at_every_size_are_the_inverse_informations(n_groups):
    bank, target = drawn_bank(2, n_groups=n_groups), drawn_target(2)
    order = np.array([5, 17, 3, 40])
    curve = precision_curve(bank, target, order)
    along = precision_curve(bank, target, order, np.array([0.6, 0.8]))
    for k in range(1, 5):
        each = [
            -objective(bank, target, order[:k], "a-optimal", direction)
            for direction in ((1, 0), (0, 1), (0.6, 0.8))
        ]
        row = curve.iloc[k - 1]
        close(row[["dim1_se", "dim2_se"]].to_numpy(float) ** 2, np.array(each[:2]), kind="solve")
        close(along["direction_se"].iloc[k - 1] ** 2, np.array(each[2]), kind="solve")
        close(row["dim1_reliability"], np.array(1 - each[0] / bank.prior[0, 0]), kind="solve")
    assert (np.diff(curve["dim1_se"]) <= 0).all()
    assert size_for(curve, 0.0) == 1
    assert size_for(curve, 1.0) is None


def test_a_smaller_budget_is_a_prefix():
    bank, target = drawn_bank(), drawn_target()
    long, _ = greedy(bank, target, free(), 30, criterion="d-optimal")
    for budget in (1, 7, 18):
        short, _ = greedy(bank, target, free(), budget, criterion="d-optimal")
        np.testing.assert_array_equal(short, long[:budget])
    assert len(set(long)) == 30


def test_equal_items_go_by_id():
    bank = drawn_bank(1)
    twins = jax.tree.map(lambda leaf: leaf.at[20:].set(leaf[3]), bank.curves)
    bank = dataclasses.replace(bank, curves=twins)
    order, _ = greedy(bank, drawn_target(1), free(), N_ITEMS, criterion="d-optimal")
    picked = [int(item) for item in order if item >= 20 or item == 3]
    assert picked == sorted(picked)


def test_cases_6_items_far_above_the_target_are_taken_nearest_first_to_the_last():
    rasch = item_curves(np.ones((N_ITEMS, 1)), -np.linspace(2, 3.1, N_ITEMS))
    bank = dataclasses.replace(drawn_bank(1), curves=rasch)
    target = Target(np.zeros((1, 1)), np.ones(1), "0")
    order, gain = greedy(bank, target, free(), N_ITEMS, criterion="d-optimal")
    np.testing.assert_array_equal(order, np.arange(N_ITEMS))
    assert (np.diff(gain) < 0).all()
    assert (gain > 0).all()


def quotas(least, most, seed=2):
    group = np.random.default_rng(seed).integers(0, 3, N_ITEMS)
    return Quotas("kind", group, ["a", "b", "c"], np.array(least), np.array(most))


@pytest.mark.parametrize(
    "least, most",
    [
        ((0, 0, 0), (4, 4, 4)),
        ((3, 3, 3), (9, 9, 9)),
        ((0, 9, 0), (9, 9, 0)),
        ((4, 4, 4), (4, 4, 4)),
    ],
)
@pytest.mark.parametrize("criterion", ["d-optimal", "a-optimal"])
def test_quotas_are_kept_by_greedy_and_exchange(criterion, least, most):
    bank, target, bounds = drawn_bank(), drawn_target(), quotas(least, most)
    order, _ = greedy(bank, target, bounds, 12, criterion=criterion)
    swapped = exchanged(bank, target, bounds, order, criterion=criterion)
    for chosen in (order, swapped):
        count = np.bincount(bounds.group[chosen], minlength=3)
        assert len(set(chosen)) == 12
        assert (count >= least).all()
        assert (count <= most).all()
    gained = objective(bank, target, swapped, criterion)
    assert gained >= objective(bank, target, order, criterion) - 1e-5


def test_exchange_finds_the_best_pair_from_the_worst_start():
    bank, target = drawn_bank(), drawn_target()
    some = np.arange(0, N_ITEMS, 4)
    values = {
        pair: objective(bank, target, pair, "d-optimal") for pair in itertools.combinations(some, 2)
    }
    bounds = Quotas(
        "kind",
        np.isin(np.arange(N_ITEMS), some).astype(int),
        ["not", "some"],
        np.zeros(2, int),
        np.array([0, 2]),
    )
    start = np.array(min(values, key=values.__getitem__))
    found = exchanged(bank, target, bounds, start, criterion="d-optimal")
    # Single swaps end where no single swap gains, which need not be the best of all pairs.
    assert values[tuple(sorted(found))] >= np.quantile(list(values.values()), 0.95)
    for swap in some:
        for kept in found:
            if swap not in found:
                pair = tuple(sorted((kept, swap)))
                assert values[pair] <= values[tuple(sorted(found))] + 1e-4
