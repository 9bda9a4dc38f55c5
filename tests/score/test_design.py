"""Items drawn by what they tell, and anchor points by clusters."""

import numpy as np
import pytest

from irtjax.errors import InputError
from irtjax.score.anchors import anchor_points, anchor_rows
from irtjax.score.design import drawn_items, expected_information, score_items
from irtjax.select.api import select_items
from tests.fit.fitting import fitted
from tests.score.fits import N_ITEMS, given


def test_chances_are_in_proportion_to_size_and_groups_get_their_share():
    size = np.array([1.0, 2.0, 3.0, 4.0, 0.0, 10.0, 1.0, 1.0])
    group = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    rng = np.random.default_rng(0)
    count, by_group = np.zeros(8), np.zeros(2)
    for _ in range(4000):
        drawn = drawn_items(size, group, 2, rng)
        assert len(np.unique(drawn)) == 2
        count[drawn] += 1
        by_group += np.bincount(group[drawn], minlength=2)
    np.testing.assert_allclose(count / 4000, 2 * size / size.sum(), atol=0.03)
    np.testing.assert_allclose(by_group / 4000, [2 * 10 / 22, 2 * 12 / 22], atol=0.03)


def test_an_item_larger_than_its_share_is_always_drawn_and_all_can_be():
    rng = np.random.default_rng(0)
    size, group = np.array([100.0, 1.0, 1.0, 1.0]), np.zeros(4, int)
    assert all(0 in drawn_items(size, group, 2, rng) for _ in range(50))
    np.testing.assert_array_equal(drawn_items(size, group, 4, rng), np.arange(4))


@pytest.mark.oracle
def test_information_is_that_of_the_curves_by_differences():
    known = given(1, "4pl", 0.3)
    from irtjax.score.design import _abilities

    at = _abilities(1)
    step = 1e-5
    p = known.oracle.curves(at)
    slope = (known.oracle.curves(at + step) - known.oracle.curves(at - step)) / (2 * step)
    expected = np.mean(slope**2 / (p * (1 - p)), axis=0)
    np.testing.assert_allclose(expected_information(known.fit), expected, rtol=2e-3)


def test_items_are_drawn_by_seed_in_the_order_of_the_run():
    fit = fitted("2pl")
    one, same, other = (score_items(fit, 30, seed=seed) for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one["item_id"].equals(other["item_id"])
    position = [list(fit.data.item_ids).index(name) for name in one["item_id"]]
    assert position == sorted(position)
    assert len(one) == 30


def test_clusters_far_apart_are_found_with_their_weights():
    rng = np.random.default_rng(0)
    centre = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    label = np.repeat([0, 1, 2], [10, 20, 30])
    features = centre[label] + rng.normal(0, 0.1, (60, 2))
    rows, weight = anchor_rows(features, 3, seed=0)
    np.testing.assert_array_equal(label[rows], [2, 1, 0])
    np.testing.assert_allclose(weight, [1 / 2, 1 / 3, 1 / 6])


def test_there_are_as_many_anchors_as_asked_for_where_items_are_alike():
    rows, weight = anchor_rows(np.repeat([[0.0], [1.0]], [6, 4], axis=0), 4, seed=0)
    assert len(set(rows)) == 4
    assert weight.sum() == pytest.approx(1)


@pytest.mark.parametrize("features", ["parameters", "answers"])
def test_anchors_are_items_of_the_run_and_stand_for_all(features):
    anchors = anchor_points(fitted("2pl"), 15, features=features)
    assert anchors["weight"].sum() == pytest.approx(1)
    assert anchors["item_id"].is_unique
    assert len(anchors) == 15


def test_anchors_are_those_that_a_selection_by_clusters_has():
    fit = fitted("2pl")
    anchors = anchor_points(fit, 15, seed=2)
    items = select_items(fit, 15, criterion="clusters", seed=2).items
    assert anchors["item_id"].tolist() == items["item_id"].tolist()
    np.testing.assert_allclose(anchors["weight"], items["weight"])


def test_bad_input_is_refused_in_one_line():
    fit = given().fit
    with pytest.raises(InputError, match="number of anchors must be a whole number"):
        anchor_points(fit, N_ITEMS + 1)
    with pytest.raises(InputError, match="use parameters or answers"):
        anchor_points(fit, 3, features="text")
    with pytest.raises(InputError, match="number of items must be a whole number"):
        score_items(fit, 0)
