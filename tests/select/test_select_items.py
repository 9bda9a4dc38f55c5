"""`select_items`: the table, targets, quotas, exclusions, invariance, exports, refusals."""

import dataclasses
import json

import numpy as np
import pytest

import irtjax as ij
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.select.api import CRITERIA, select_items
from irtjax.select.target import target_of
from tests.fit.fitting import quiet_fit, simulated
from tests.select.banks import run

BUDGET = 20


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["2pl", "2pl-2d", "3pl"])
def test_the_table_has_a_row_an_item_and_errors_at_every_size(kind, criterion):
    fit = run(kind)
    selection = select_items(fit, BUDGET, criterion=criterion)
    items = selection.items
    assert items["order"].tolist() == list(range(1, BUDGET + 1))
    assert set(items["item_id"]) <= set(fit.data.item_ids)
    assert items["item_id"].is_unique
    assert list(items.columns[:3]) == ["order", "item_id", "benchmark"]
    for k in range(fit.spec.dims):
        errors = items[f"dim{k + 1}_se"]
        assert (errors.diff().dropna() <= 1e-9).all()
        assert errors.between(0, 1).all()
        reliability = items[f"dim{k + 1}_reliability"]
        np.testing.assert_allclose(reliability, 1 - errors**2, atol=0.05)
    if criterion != "random":
        assert (items["gain"].diff().dropna() <= 1e-6).all()
        assert (items["gain"] >= 0).all()
    assert items["weight"].sum() == pytest.approx(1)
    again = select_items(fit, BUDGET, criterion=criterion)
    assert again.item_ids.tolist() == selection.item_ids.tolist()
    assert selection.report["criterion"] == criterion


def test_greedy_measures_better_than_random_and_future_models_get_harder_items():
    fit = run()
    by = {
        criterion: select_items(fit, BUDGET, criterion=criterion).items["dim1_se"].iloc[-1]
        for criterion in ("d-optimal", "fisher", "random")
    }
    assert by["d-optimal"] < 0.9 * by["random"]
    assert by["d-optimal"] <= by["fisher"] + 1e-6
    table = fit.item_parameters().set_index("item_id")["difficulty"]
    mean = {
        target: table[select_items(fit, BUDGET, target=target).item_ids].mean()
        for target in ("models", "top", "future=1")
    }
    assert mean["models"] < mean["top"] < mean["future=1"]


@pytest.mark.parametrize("kind", ["2pl", "2pl-2d"])
def test_targets_keep_mean_and_spread_of_the_models(kind):
    fit = run(kind)
    found = target_of(fit, "models")
    ability = np.asarray(fit.parameters.ability, float)
    assert found.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.weight @ found.ability, ability.mean(axis=0), atol=1e-5)
    within = np.diagonal(fit.parameters.ability_covariance, axis1=1, axis2=2).mean(axis=0)
    spread = found.weight @ (found.ability - found.weight @ found.ability) ** 2
    # Putting points together loses what is between them.
    np.testing.assert_allclose(spread, ability.var(axis=0) + within, rtol=0.08)
    future = target_of(fit, "future=0.7")
    moved = future.weight @ future.ability
    assert np.linalg.norm(moved) > np.linalg.norm(found.weight @ found.ability) + 0.5
    if fit.spec.dims == 1:
        assert moved[0] == pytest.approx(ability.max() + 0.7, abs=1e-5)
    point = target_of(fit, ",".join(["0.5"] * fit.spec.dims))
    np.testing.assert_array_equal(point.ability, np.full((1, fit.spec.dims), 0.5))


def test_quotas_coverage_and_exclusions():
    fit = run()
    items = select_items(fit, 40, per={"benchmark": 12}, min_coverage=5).items
    count = items["benchmark"].value_counts()
    assert count.between(5, 12).all()
    assert len(count) == 4
    name = count.index[0]
    one = select_items(fit, 40, per={"benchmark": {name: "20-25"}}, criterion="fisher").items
    assert 20 <= (one["benchmark"] == name).sum() <= 25
    swapped = select_items(fit, 40, per={"benchmark": "5-12"}, method="exchange").items
    assert swapped["benchmark"].value_counts().between(5, 12).all()
    assert swapped["dim1_se"].iloc[-1] <= items["dim1_se"].iloc[-1] + 1e-5
    flags = fit.item_parameters()["flags"]
    flagged = flags.str.contains("weak_slope|negative_slope").sum()
    assert flagged
    n_sound = fit.data.n_items - flagged
    exclude = ("weak_slope", "negative_slope")
    kept = select_items(fit, n_sound, exclude_flags=exclude, criterion="random").items["flags"]
    assert not kept.str.contains("weak_slope|negative_slope").any()
    with pytest.raises(InputError, match=f"more than the {n_sound} items .* have an excluded flag"):
        select_items(fit, n_sound + 1, exclude_flags=exclude)


def test_several_columns_need_the_integer_program():
    drawn = simulated("2pl").data
    metadata = drawn.item_metadata.assign(kind=np.arange(drawn.n_items) % 3)
    fit = quiet_fit(drawn.replace(item_metadata=metadata), ij.ModelSpec("2pl"))
    per = {"benchmark": 6, "kind": "4-8"}
    with pytest.raises(InputError, match="quotas of several columns"):
        select_items(fit, 18, per=per)
    items = select_items(fit, 18, per=per, criterion="fisher", method="milp").items
    assert (items["benchmark"].value_counts() <= 6).all()
    assert items["kind"].value_counts().between(4, 8).all()


@pytest.mark.parametrize("criterion", ["d-optimal", "clusters", "discrimination", "random"])
def test_the_order_of_the_items_changes_nothing(criterion):
    fit = run()
    turn = np.random.default_rng(0).permutation(fit.data.n_items)
    data = fit.data
    turned_data = ij.ResponseMatrix.from_dense(
        data.to_dense()[:, turn],
        model_ids=data.model_ids.tolist(),
        item_ids=data.item_ids[turn].tolist(),
        item_metadata=data.item_metadata.iloc[turn].reset_index(drop=True),
    )
    fitted = fit.parameters
    of_items = ("mean", "covariance", "share", "guessing", "feasibility")
    of_items += ("guessing_se", "feasibility_se", "item_spread")
    changed = {
        name: None if getattr(fitted, name) is None else np.asarray(getattr(fitted, name))[turn]
        for name in of_items
    }
    turned = dataclasses.replace(
        fit, data=turned_data, parameters=dataclasses.replace(fitted, **changed)
    )
    one = select_items(fit, BUDGET, criterion=criterion, per=None).items
    other = select_items(turned, BUDGET, criterion=criterion).items
    assert one["item_id"].tolist() == other["item_id"].tolist()
    np.testing.assert_allclose(one["dim1_se"], other["dim1_se"], rtol=1e-6)


def test_anchors_stand_for_all_items():
    fit = run()
    items = select_items(fit, BUDGET, criterion="clusters").items
    assert items["weight"].sum() == pytest.approx(1)
    assert items["weight"].is_monotonic_decreasing
    everything = select_items(fit, fit.data.n_items, criterion="clusters").items
    assert sorted(everything["item_id"]) == sorted(fit.data.item_ids)
    assert everything["weight"].to_numpy() == pytest.approx(1 / fit.data.n_items)


def test_exports(tmp_path):
    selection = select_items(run(), 5)
    selection.save(tmp_path / "s.json")
    samples = json.loads((tmp_path / "s.json").read_text())
    assert sum(map(len, samples.values())) == 5
    back = {f"{task}/{number}" for task, numbers in samples.items() for number in numbers}
    assert back == set(selection.item_ids)
    assert all(numbers == sorted(numbers) for numbers in samples.values())
    selection.save(tmp_path / "s.txt")
    assert (tmp_path / "s.txt").read_text().splitlines() == selection.item_ids.tolist()
    selection.save(tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().startswith("order,item_id,benchmark,gain")
    with pytest.raises(InputError, match="must end with"):
        selection.save(tmp_path / "s.xlsx")


def test_cases_8_and_19_models_and_items_without_answers(tmp_path):
    """An all-missing item is left out and counted, an all-missing model is no target."""
    drawn = simulated("2pl").data
    responses = drawn.to_dense().copy()
    responses[:, 7], responses[3] = -1, -1
    data = ij.ResponseMatrix.from_dense(
        responses, item_ids=drawn.item_ids.tolist(), item_metadata=drawn.item_metadata
    )
    fit = quiet_fit(data, ij.ModelSpec("2pl"))
    selection = select_items(fit, 239, criterion="fisher")
    assert selection.report["excluded"] == {"no_responses": 1}
    assert drawn.item_ids[7] not in selection.item_ids
    with pytest.raises(InputError, match="more than the 239 items"):
        select_items(fit, 240)
    assert len(select_items(fit, 240, exclude_flags=()).item_ids) == 240
    assert np.isfinite(selection.items[["gain", "information", "dim1_se"]]).all(axis=None)


def test_cases_19_the_family_that_was_fitted_is_the_one_selected_by():
    """Guessing makes an item tell less: the information is the 3PL's, not that of its 2PL part."""
    fit = run("3pl")
    items = select_items(fit, 5, criterion="fisher", target=0.0).items.set_index("item_id")
    table = fit.item_parameters().set_index("item_id").loc[items.index]
    slope, intercept = table["discrimination"], table["intercept"]
    p = table["guessing"] + (1 - table["guessing"]) / (1 + np.exp(-intercept))
    expected = slope**2 * (p - table["guessing"]) ** 2 * (1 - p)
    expected /= (1 - table["guessing"]) ** 2 * p
    assert (table["guessing"] > 0.05).all()
    np.testing.assert_allclose(items["information"], expected, rtol=1e-4)


@pytest.mark.compilations
def test_cases_16_budgets_share_their_programs():
    """Small budgets and large ones run one program."""
    from irtjax.select import greedy

    fit = run()
    greedy._greedy.clear_cache()
    for budget in (1, 2, 5, 9, 12, 15, 16, 200):
        select_items(fit, budget)
    assert greedy._greedy._cache_size() == 1


@pytest.mark.parametrize(
    "budget, settings, said",
    [
        (0, {}, "the budget must be a whole number of at least 1"),
        (241, {}, "the budget of 241 items is more than the 240 items"),
        (5, {"criterion": "magic"}, "criterion 'magic' is not known"),
        (5, {"method": "magic"}, "method 'magic' is not known"),
        (5, {"target": "best"}, "target 'best' is not known"),
        (5, {"target": "future=far"}, "the shift must be a number"),
        (5, {"target": [0.0, 1.0]}, "the target must be 1 finite number"),
        (5, {"dim": 2}, "dim must be a whole number from 1 to 1"),
        (5, {"direction": [0.0]}, "not all 0"),
        (5, {"dim": 1, "direction": [1.0]}, "pass one of them"),
        (5, {"exclude_flags": ["broken"]}, "no flag is called 'broken'"),
        (5, {"exclude_flags": "weak_slope"}, "exclude_flags must be a list, not 'weak_slope'"),
        (5, {"per": "benchmark"}, "per must be a column of items to its bounds, not 'benchmark'"),
        (5, {"per": {"kind": 3}}, "'kind'"),
        (5, {"per": {"benchmark": 1}}, "allow 4 items together, fewer than the budget of 5"),
        (5, {"per": {"benchmark": "few"}}, "a number of items or LOW-HIGH"),
        (5, {"per": {"benchmark": {"none": 3}}}, "no item has benchmark 'none'"),
        (5, {"min_coverage": 10**30}, "more than the 240 items there are"),
        (5, {"per": {"benchmark": f"{10**30}-{10**31}"}}, "more than the 240 items there are"),
        (5, {"min_coverage": 2}, "must have 8 items together, more than the budget of 5"),
        (5, {"per": {"benchmark": 2}, "min_coverage": 3}, "must have 3 items and may have 2"),
        (5, {"per": {"benchmark": 2}, "criterion": "clusters"}, "clusters takes no quotas"),
        (5, {"criterion": "fisher", "method": "exchange"}, "greedy is already the best, or milp"),
        (
            5,
            {"criterion": "clusters", "method": "exchange"},
            "goes with d-optimal and a-optimal, not clusters; drop the method",
        ),
        (5, {"criterion": "random", "method": "exchange"}, "not random; drop the method"),
        (5, {"method": "milp"}, "method milp maximises"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(budget, settings, said):
    with pytest.raises(InputError) as caught:
        select_items(run(), budget, **settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("criterion", ["d-optimal", "a-optimal", "fisher"])
def test_a_target_far_away_selects_real_items(criterion):
    fit = ij.fit(ij.simulate(ij.ModelSpec("2pl"), n_models=30, n_items=100, seed=2).data)
    with pytest.warns(IrtjaxWarning, match="next to nothing of the ability 1000"):
        found = ij.select_items(fit, 10, criterion=criterion, target="1000").items
    assert found["item_id"].nunique() == 10
    assert np.isfinite(found["dim1_se"]).all()
    assert (found["dim1_reliability"].abs() < 1e-3).all()


def test_the_shift_is_in_standard_deviations_of_a_linked_run():
    data = ij.simulate(ij.ModelSpec("2pl"), n_models=60, n_items=150, seed=4).data
    order = np.argsort(data.totals("models")[1])
    matrix = data.to_dense().astype(float)
    inner, outer = (
        ij.fit(
            ij.ResponseMatrix.from_dense(
                matrix[rows], model_ids=data.model_ids[rows], item_ids=data.item_ids
            )
        )
        for rows in (order[15:45], np.r_[order[:15], order[45:]])
    )
    linked = ij.link(inner, outer).fit
    assert abs(float(linked.parameters.population_covariance[0, 0, 0]) - 1) > 0.2
    first, second = (ij.select_items(fit, 20, target="future=1").items for fit in (inner, linked))
    assert first["item_id"].tolist() == second["item_id"].tolist()


@pytest.mark.parametrize("target", ["50", "-50", "1e6", "future=100"])
@pytest.mark.parametrize("criterion", ["d-optimal", "random"])
def test_targets_that_the_items_tell_nothing_of_are_warned_of(target, criterion):
    with pytest.warns(IrtjaxWarning) as caught:
        select_items(run(), 5, target=target, criterion=criterion)
    assert len(caught) == 1
    assert str(caught[0].message).startswith("the items tell next to nothing of ")


@pytest.mark.parametrize("target", ["models", "top", "future=0.5", "2", "-2"])
def test_targets_near_the_models_are_not_warned_of(target):
    assert len(select_items(run(), 5, target=target).items) == 5


def test_sizes_are_asked_for_reliabilities_that_there_are():
    selection = select_items(run(), 5)
    for wrong in (2, -0.1, float("nan"), "high"):
        with pytest.raises(InputError, match="the reliability must be a number from 0 to 1"):
            selection.size_for(wrong)
