"""BenchMIRT's filter against a plain loop, and short versions judged by models not seen."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import irtjax as ij
from irtjax.audit.filtering import filter_items, validate_filters


@pytest.fixture(scope="module")
def fitted():
    made = ij.simulate(ij.ModelSpec("2pl", 2), n_models=60, n_items=300, n_benchmarks=3, seed=5)
    return ij.fit(made.data, ij.ModelSpec("2pl", 2))


@pytest.mark.parametrize("by", [None, "benchmark"])
@pytest.mark.parametrize("removed", [0.0, 0.5, 0.9])
def test_the_filter_keeps_the_steepest_of_every_bin(fitted, by, removed):
    found = filter_items(fitted, removed, dim=2, by=by)
    table = fitted.item_parameters()
    assert (found.item_id == table.item_id).all()
    location = -table.intercept / table.dim2_slope.abs()
    groups = [""] * len(table) if by is None else table[by]
    for _, inside in table.groupby(np.asarray(groups)):
        order = location[inside.index].sort_values(kind="stable").index
        for bin_ in np.unique(found.bin):
            first, last = (-(-k * len(order) // 10) for k in (bin_, bin_ + 1))
            chosen = order[first:last]
            assert (found.bin[chosen] == bin_).all()
            slopes = table.dim2_slope[chosen].sort_values(ascending=False)
            n_kept = len(chosen) - int(removed * len(chosen) + 1e-9)
            assert set(chosen[found.is_kept[chosen]]) == set(slopes.index[:n_kept])


@pytest.mark.parametrize("removed", [0.1, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("size", [3, 7, 25])
def test_few_items_a_value_lose_the_share_that_is_asked(fitted, size, removed):
    # Bins of one or two items would each lose none at less than half.
    names = pd.DataFrame({"topic": [f"t{k // size}" for k in range(300)]})
    fit = dataclasses.replace(fitted, data=fitted.data.replace(item_metadata=names))
    found = filter_items(fit, removed, by="topic")
    n_gone = int(np.floor(removed * 300 + 0.5))
    assert (~found.is_kept).sum() == n_gone
    for columns in (["topic"], ["topic", "bin"]):
        exact = found.groupby(columns).is_kept.agg(["size", "sum"])
        away = exact["size"] * removed - (exact["size"] - exact["sum"])
        assert away.abs().max() < 1 + (len(columns) - 1) * 1e-9
    for _, inside in found.groupby(["topic", "bin"]):
        assert inside.slope[inside.is_kept].min() >= inside.slope[~inside.is_kept].max() or (
            inside.is_kept.nunique() == 1
        )


def test_the_short_version_is_as_hard_as_the_long_one(fitted):
    found = filter_items(fitted, 0.5, dim=1)
    kept = found[found.is_kept]
    quartiles = [table.difficulty.quantile([0.25, 0.5, 0.75]) for table in (kept, found)]
    np.testing.assert_allclose(*quartiles, atol=0.25)
    assert kept.slope.mean() > found.slope.mean()


def test_short_versions_are_judged_by_models_that_were_not_learnt_from(fitted):
    found = validate_filters(fitted, dims=1, by="benchmark", halves=2)
    assert list(found.method.unique()) == ["filter", "filter by benchmark", "selection", "random"]
    assert found.removed.tolist() == [0.5] * 4 + [0.9] * 4
    table = found.set_index(["removed", "method"])
    for removed in (0.5, 0.9):
        assert table.loc[(removed, "filter"), "n_items"] == round(300 * (1 - removed))
        # What was chosen for the dim follows it better than as many items at random.
        for method in ("filter", "selection"):
            chosen = table.loc[(removed, method), "r_ability"]
            assert chosen > table.loc[(removed, "random"), "r_ability"]
    values = found[["r_full", "rho_full", "r_ability", "rho_ability"]].to_numpy()
    assert np.all((values > -1) & (values <= 1))
    assert (found.dim == 1).all()
    again = validate_filters(fitted, dims=1, by="benchmark", halves=2)
    pd.testing.assert_frame_equal(found, again)


def test_sparse_data_are_filtered_as_dense(fitted):
    cells = fitted.data.cells()
    sparse = ij.ResponseMatrix.from_cells(
        cells.model_index,
        cells.item_index,
        cells.response,
        model_ids=fitted.data.model_ids,
        item_ids=fitted.data.item_ids,
    )
    fit = ij.fit(sparse)
    assert filter_items(fit, 0.5).is_kept.sum() == 150


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"removed": 1.5}, "removed is a share from 0 to below 1, not 1.5"),
        ({"removed": 1}, "removed is a share from 0 to below 1, not 1"),
        ({"removed": 0.999}, "removing 0.999 of 300 items leaves none"),
        ({"removed": 0.5, "dim": 3}, "dim must be a whole number from 1 to 2"),
        ({"removed": 0.5, "by": "subject"}, "no item metadata column 'subject'"),
        ({"removed": 0.5, "n_bins": 0}, "n_bins must be a whole number of at least 1"),
    ],
)
def test_filters_that_make_no_sense_are_refused(fitted, arguments, message):
    with pytest.raises(ij.InputError, match=message):
        filter_items(fitted, **arguments)


def test_too_few_models_and_all_removed_are_refused(fitted):
    few = ij.fit(ij.simulate(ij.ModelSpec("2pl"), n_models=6, n_items=40, seed=1).data)
    with pytest.raises(ij.InputError, match="needs 8 at least, not 6"):
        validate_filters(few)
    with pytest.raises(ij.InputError, match="removed is a share from 0 to below 1"):
        validate_filters(fitted, removed=[1.0])
