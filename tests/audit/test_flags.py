"""Flags: what is planted is found, nothing else is said of clean items, and the table's form."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from irtjax.audit.chance_tail import chance_tail
from irtjax.audit.dependence import Twins, closest_items, identical_items
from irtjax.audit.flag_names import FLAGS
from irtjax.audit.flag_rules import dependence_flags
from irtjax.audit.flags import _key_reason, flag_items
from irtjax.audit.shared_cells import Copies
from irtjax.data.answers import KEY, UNKNOWN, Answers
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec
from tests.audit.keys import case
from tests.fit.fitting import fitted, quiet_fit

N_MODELS, N_ITEMS = 40, 900
COPIES, DEPENDENT = (10, 11), (20, 21)
NOBODY, FEW, ALL_RIGHT, ALL_WRONG = 30, 31, 32, 33


def planted(seed=0):
    """Clean 2PL responses with one pair of copies, one dependent pair, and four odd totals."""
    rng = np.random.default_rng(seed)
    ability = rng.standard_normal(N_MODELS)
    slope, difficulty = rng.lognormal(0, 0.3, N_ITEMS), rng.normal(0, 1, N_ITEMS)
    difficulty[[*COPIES, *DEPENDENT]] = 0
    p = expit(slope * (ability[:, None] - difficulty))
    response = (rng.random(p.shape) < p).astype(np.int8)
    response[:, COPIES[1]] = response[:, COPIES[0]]
    response[3:, DEPENDENT[1]] = response[3:, DEPENDENT[0]]
    response[:3, DEPENDENT[1]] = 1 - response[:3, DEPENDENT[0]]
    response[:, NOBODY] = -1
    response[4:, FEW] = -1
    response[:, ALL_RIGHT], response[:, ALL_WRONG] = 1, 0
    return ResponseMatrix.from_dense(
        response, item_metadata=pd.DataFrame({"benchmark": ["x"] * N_ITEMS})
    )


def items_with(table, flag):
    return [int(name.split("-")[1]) for name in table.loc[table["flag"] == flag, "item_id"]]


def test_what_is_planted_is_found():
    result = quiet_fit(planted())
    table = flag_items(result, bootstrap=1)
    assert list(table.columns) == [
        "rank", "item_id", "benchmark", "flag", "value", "threshold", "false_discovery_rate",
        "reason",
    ]  # fmt: skip
    assert set(table["flag"]) <= set(FLAGS)
    order = [list(FLAGS).index(flag) for flag in table["flag"]]
    assert order == sorted(order)
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert sorted(items_with(table, "identical_responses")) == list(COPIES)
    dependent = items_with(table, "local_dependence")
    assert set(COPIES + DEPENDENT) <= set(dependent)
    assert len(dependent) <= 8
    assert items_with(table, "no_responses") == [NOBODY]
    assert items_with(table, "few_responses") == [FEW]
    assert ALL_RIGHT in items_with(table, "all_right")
    assert ALL_WRONG in items_with(table, "all_wrong")
    assert len(items_with(table, "wrong_key")) <= 1  # at a false discovery rate of .8
    pair = table[(table["flag"] == "local_dependence") & (table["item_id"] == "item-20")]
    assert "item-21" in pair["reason"].iloc[0]


def test_reasons_of_wrong_keys_count_models_whose_answer_is_not_known():
    composite = SimpleNamespace(ability=np.arange(6.0)[:, None], group=[0])
    ids = pd.DataFrame({"log_likelihood_ratio": [5.0], "key": ["B"], "suggested_key": ["C"]})

    def reason(*strong, best=-1):
        code = np.array([[UNKNOWN], [1], [KEY], *([each] for each in strong)], np.int16)
        answers = Answers(code, np.array([4]), np.array([True]), [("B", "C")])
        return _key_reason(0, ids, composite, answers, np.array([best]))

    assert reason(KEY, UNKNOWN, UNKNOWN).startswith(
        "1 of 3 strong models answer the key 'B', what the others answer is not known; a wrong key"
    )
    assert "'B', the others no option in common" in reason(KEY, 1, UNKNOWN)
    assert reason(KEY, 1, 1, best=1).startswith("2 answer 'C', 1 of 3 strong models answer the key")
    assert reason(KEY, KEY, KEY).endswith(
        "times as likely to give these responses, although 3 of 3 strong models answer the key 'B'"
    )


def test_totals_count_held_out_responses_too():
    matrix = planted().to_dense().copy()
    matrix[0, ALL_RIGHT], matrix[1, ALL_WRONG] = 0, 1
    matrix[6:, 17] = -1
    data = ResponseMatrix.from_dense(matrix)
    models, items = np.array([0, 1, 0]), np.array([ALL_RIGHT, ALL_WRONG, 17])
    held = matrix[models, items].astype(np.float32)
    train = matrix.copy()
    train[models, items] = -1
    made = quiet_fit(ResponseMatrix.from_dense(train))
    order = np.argsort(items, kind="stable")
    cells = Cells(
        models[order].astype(np.int32), items[order].astype(np.int32), held[order],
        np.ones(3, np.float32),
    )  # fmt: skip
    table = flag_items(dataclasses.replace(made, heldout=cells), bootstrap=0)
    assert data.totals("items")[1][ALL_RIGHT] < 1
    assert ALL_RIGHT not in items_with(table, "all_right")
    assert ALL_WRONG not in items_with(table, "all_wrong")
    rows = table.set_index(["flag", "item_id"])["reason"]
    ceiling = rows["ceiling", f"item-{ALL_RIGHT}"]
    assert ceiling == f"{1 - 1 / N_MODELS:.1%} of {N_MODELS} responses right"
    assert rows["few_responses", "item-17"] == "5 responses fitted"
    without = flag_items(made, bootstrap=0)
    assert ALL_RIGHT in items_with(without, "all_right")


def test_thresholds_are_what_is_asked_and_not_what_was_found():
    table = flag_items(quiet_fit(planted()), bootstrap=1)
    for flag, is_beyond in (
        ("local_dependence", np.greater_equal),
        ("identical_responses", np.less_equal),
        ("wrong_key", np.greater_equal),
    ):
        rows = table[table["flag"] == flag]
        assert is_beyond(rows["value"], rows["threshold"]).all(), flag
        assert (rows["value"] != rows["threshold"]).all(), flag
    q3 = table[table["flag"] == "local_dependence"]["threshold"].iloc[0]
    assert 0.4 < q3 < 1


@pytest.mark.parametrize("dims", [1, 2])
def test_clean_items_depend_on_no_other(dims):
    # Two dims fitted as one leave the items of a kind alike, and no two of them more than others.
    # 10 seeds of each: no pair in 9 of 10 and in all 10.
    made = simulate(ModelSpec("2pl", dims), n_models=60, n_items=600, seed=2)
    table = flag_items(quiet_fit(made.data), bootstrap=0)
    assert items_with(table, "local_dependence") == []


def test_the_tail_of_chance_is_that_of_normal_correlations():
    rng = np.random.default_rng(0)
    drawn, found = (np.tanh(rng.standard_exponential(n) * 0.1) for n in (6_000, 600))
    tail = chance_tail(drawn, found)
    for probability in (0.5, 0.01, 1e-4, 1e-6):
        z = np.arctanh(tail.reached(probability))
        assert z == pytest.approx(-0.1 * np.log(probability), rel=0.3)
        assert tail.exceeded(np.tanh([z]), 0)[0] == pytest.approx(probability, rel=0.05)
    # Where all that was found lies higher, that is no news of any single one.
    wider = chance_tail(drawn, np.tanh(2 * np.arctanh(found) + 0.1))
    assert wider.reached(1e-4) == pytest.approx(np.tanh(2 * 0.92 + 0.1), abs=0.05)
    # Ties were drawn as often as they are found; and one draw says nothing of what is beyond it.
    tied = chance_tail(np.append(drawn, [1.0] * 4), np.append(found, 1.0))
    one = np.array([1.0])
    assert tied.exceeded(one, 1)[0] == pytest.approx(5 / 6_005)
    assert tied.exceeded(one, 0)[0] == pytest.approx(4 / 6_004)
    assert tail.exceeded(one, 1)[0] == pytest.approx(1 / 6_001)
    # Copies that chance hardly makes are as rare as that, and no lower correlation is rarer.
    assert tail.exceeded(one, 1e-20)[0] == 1e-20
    rising = np.linspace(-0.9, 1, 200)
    for chance in (tail, tied, wider):
        for ties in (0, 1e-9, 1e-4, 1):
            assert (np.diff(chance.exceeded(rising, ties)) <= 0).all()


@pytest.mark.parametrize("group", ["benchmark", None])
def test_closer_copies_have_lower_rates(group):
    rng = np.random.default_rng(3)
    made = simulate(ModelSpec("2pl"), n_models=100, n_items=300, n_benchmarks=3, seed=6)
    response = made.data.to_dense().copy()
    n_changed = (0, 0, 1, 2, 4, 6, 8)
    for k, n in enumerate(n_changed):
        copy = response[:, 10 + 30 * k].copy()
        changed = rng.choice(100, n, replace=False)
        copy[changed] = 1 - copy[changed]
        response[:, 11 + 30 * k] = copy
    data = ResponseMatrix.from_dense(response, item_metadata=made.data.item_metadata)
    table = flag_items(quiet_fit(data, ModelSpec("2pl"), group=group), bootstrap=0)
    rows = table[table["flag"] == "local_dependence"]
    assert len(rows) >= 2 * len(n_changed)
    assert rows["value"].iloc[:4].tolist() == [1.0] * 4
    assert (np.diff(rows["value"]) <= 0).all()
    rate = rows["false_discovery_rate"].to_numpy()
    assert (np.diff(rate) >= 0).all()
    assert rate[13] < 1e-4


def test_poor_copies_are_no_surer_than_their_chance():
    """Items that hardly any model has right are copies by chance: what is drawn says how often."""
    rng = np.random.default_rng(0)
    chance = np.tanh(rng.standard_exponential(1_000) * 0.1)
    q3 = np.append(np.tanh(rng.standard_exponential(98) * 0.1), [1.0, 1.0])
    twins = Twins(q3, np.arange(100)[::-1], chance, 10)
    same = np.append(np.arange(98), [98, 98])

    def rates(log_marginal):
        copies = Copies(
            same, np.bincount(same)[same], np.full(100, 100), np.full(100, log_marginal),
            np.zeros(100, bool),
        )  # fmt: skip
        return dependence_flags(twins, copies, np.arange(100).astype(str)).rate

    np.testing.assert_allclose(rates(-40.0)[:2], 99 * np.exp(-40) * 100 / 2)
    np.testing.assert_allclose(rates(-14.0)[:2], 99 * np.exp(-14) * 100 / 2)
    np.testing.assert_allclose(rates(0.0)[:2], 1 / 1_001 * 100 / 2)


def test_flags_of_the_items_table_are_the_same():
    result = quiet_fit(planted())
    table, items = flag_items(result, bootstrap=0), result.item_parameters()
    for flag in ("negative_slope", "weak_slope", "no_responses", "few_responses"):
        named = items["flags"].str.split(";").map(lambda each, flag=flag: flag in each)
        assert sorted(items_with(table, flag)) == np.flatnonzero(named).tolist(), flag
    again = flag_items(result, bootstrap=0)
    pd.testing.assert_frame_equal(table, again)


def test_answers_name_the_right_option():
    made, result = case()
    table = flag_items(result, made.answers, bootstrap=1)
    keys = table[table["flag"] == "wrong_key"]
    assert len(keys) > 5
    assert keys["value"].ge(0.2).all()
    assert keys["reason"].str.contains(r"answer '[A-J]', \d+ of \d+ strong models").any()
    assert keys["false_discovery_rate"].between(0, 1).all()


@pytest.mark.parametrize("kind", ["4pl-2d", "mixture"])
def test_dims_effects_and_mixtures(kind):
    table = flag_items(fitted(kind), bootstrap=1)
    assert table["value"].notna().all()
    assert table["reason"].str.len().gt(0).all()


def test_q3_is_the_correlation_of_residuals():
    result = quiet_fit(planted(), ModelSpec("2pl"))
    twins = closest_items(result, np.zeros(N_ITEMS, int), np.random.default_rng(0))
    items = result.item_parameters()
    ability = np.asarray(result.parameters.ability, np.float64)
    slope, intercept = items["dim1_slope"].to_numpy(), items["intercept"].to_numpy()
    response = result.data.to_dense()
    residual = np.where(response >= 0, response - expit(ability * slope + intercept), 0)
    design = np.column_stack([np.ones(N_MODELS), ability])
    both = np.sum(response == 1, axis=0), np.sum(response == 0, axis=0)
    residual = np.where(np.minimum(*both) >= 4, residual, 0)
    residual -= design @ np.linalg.lstsq(design, residual, rcond=None)[0]
    some = [*COPIES, *DEPENDENT, 5, 500, 899]
    length = np.linalg.norm(residual, axis=0)
    for j in some:
        q3 = residual[:, j] @ residual / (length[j] * np.maximum(length, 1e-9))
        q3[j] = -1
        assert twins.partner[j] == np.argmax(q3)
        assert twins.q3[j] == pytest.approx(q3.max(), abs=1e-4)


def test_only_items_of_a_group_are_compared():
    result = quiet_fit(planted())
    group = np.arange(N_ITEMS) % 2  # each pair is split
    twins = closest_items(result, group, np.random.default_rng(0))
    assert (group[twins.partner] == group).all()
    alone = np.arange(N_ITEMS)
    none = closest_items(result, np.minimum(alone, 1), np.random.default_rng(0))
    assert np.isnan(none.q3[0])
    assert none.partner[0] == -1


def test_copies_are_found_in_the_cells_that_both_have():
    response = planted().to_dense().copy()
    response[np.random.default_rng(2).random(response.shape) < 0.1] = -1
    table = flag_items(quiet_fit(ResponseMatrix.from_dense(response)), bootstrap=0)
    assert sorted(items_with(table, "identical_responses")) == list(COPIES)
    reason = table.loc[table["flag"] == "identical_responses", "reason"].iloc[0]
    assert "where both have one" in reason


def test_few_models_do_not_make_items_dependent():
    for n_models in (12, 20, 30):
        data = simulate(ModelSpec("2pl"), n_models=n_models, n_items=600, seed=1).data
        table = flag_items(quiet_fit(data), bootstrap=0)
        assert len(items_with(table, "local_dependence")) <= 2


def test_identical_columns_dense_and_sparse():
    matrix = np.array([[1, 1, 0, -1, 1, -1], [0, 0, 1, 1, -1, -1], [1, 1, 0, 1, 1, -1]], np.int8)
    for keep in (False, True):
        data = ResponseMatrix.from_dense(matrix)
        if keep:
            cells = data.cells()
            data = data.replace(dense=None, sparse=cells)
        same, copies, alike = identical_items(data)
        assert same[0] == same[1]
        assert len(set(same.tolist())) == 5
        assert copies.tolist() == [2, 2, 1, 1, 1, 1]
        assert alike.tolist() == [3, 3, 3, 1, 1, 1]


def test_sparse_and_dense_responses_have_the_same_flags():
    result = quiet_fit(planted())
    data = result.data.replace(dense=None, sparse=result.data.cells())
    sparse = flag_items(dataclasses.replace(result, data=data), bootstrap=1)
    pd.testing.assert_frame_equal(flag_items(result, bootstrap=1), sparse)


@pytest.mark.parametrize("changed", [{"bootstrap": -1}, {"bootstrap": 1.5}, {"seed": "x"}])
def test_bad_settings(changed):
    with pytest.raises(InputError):
        flag_items(case()[1], **changed)
