"""Wrong keys: option likelihoods against an urn, invariances, recovery, and a real one."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from benchmarks.wrong_keys import auc, simple_scores
from irtjax.audit.answer_keys import _options, _WrongOptions, option_evidence
from irtjax.audit.composite import composite_abilities
from irtjax.audit.item_evidence import item_evidence
from irtjax.audit.key_bootstrap import _rates, _recoded, bootstrap_rates
from irtjax.audit.wrong_key import expected_false, judged_keys, wrong_keys
from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, Answers, coded_answers
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.model.spec import ModelSpec
from tests.audit.keys import N_ITEMS, case
from tests.fit.fitting import quiet_fit


def urn(codes, n_wrong, concentration, start=()):
    """Log-probability of wrong options drawn one by one, each making itself more popular."""
    count, total = dict.fromkeys(start, 1), len(start)
    log = 0.0
    for code in codes:
        log += np.log((concentration + count.get(code, 0)) / (n_wrong * concentration + total))
        count[code], total = count.get(code, 0) + 1, total + 1
    return log


def test_wrong_options_are_those_of_an_urn():
    code = np.array([[0, 1, 1, 2, 0, 3, UNKNOWN, NO_CELL, 1]], np.int16).T
    answers = Answers(code, np.array([5], np.int32), np.array([True]), [("A", "B", "C", "D")])
    options = _options(answers, np.array([0]))
    wrong = _WrongOptions(options, np.array([5.0]), 0.3)
    known = [each for each in code[:, 0].tolist() if each >= 0]
    for k, option in enumerate(options.code.tolist()):
        others = [each for each in known if each != option]
        assert wrong.beside_the_key()[k] == pytest.approx(urn(others, 4, 0.3))
        if option != KEY:
            # The key was drawn too; by itself it is one of four.
            given = urn([KEY, *others], 4, 0.3) + np.log(4)
            assert wrong.beside_another_key()[k] + np.log(4) == pytest.approx(given)


def test_scores_do_not_depend_on_the_order_of_models_items_and_rows():
    made, result = case()
    rng = np.random.default_rng(0)
    models, items = rng.permutation(result.data.n_models), rng.permutation(N_ITEMS)
    table = wrong_keys(result, made.answers)
    fitted = result.parameters
    moved = dataclasses.replace(
        result,
        data=ResponseMatrix.from_dense(
            result.data.to_dense()[models][:, items],
            model_ids=result.data.model_ids[models].tolist(),
            item_ids=result.data.item_ids[items].tolist(),
        ),
        parameters=dataclasses.replace(
            fitted,
            ability=np.asarray(fitted.ability)[models],
            ability_covariance=np.asarray(fitted.ability_covariance)[models],
        ),
    )
    again = wrong_keys(moved, made.answers.sample(frac=1, random_state=0))
    expected = table.iloc[items].reset_index(drop=True)
    assert again["item_id"].tolist() == expected["item_id"].tolist()
    for column in ("log_likelihood_ratio", "probability"):
        np.testing.assert_allclose(again[column], expected[column], atol=2e-3)
    is_clear = expected["probability"] > 0.5
    assert (again["suggested_key"] == expected["suggested_key"])[is_clear].all()


def test_wrong_keys_are_found_and_their_right_options_named():
    made, result = case()
    is_wrong = made.is_wrong_key
    scores = simple_scores(
        result.data.to_dense(),
        coded_answers(made.answers, result.data).code,
        np.asarray(result.parameters.ability)[:, 0],
    )
    by_responses, by_answers = wrong_keys(result), wrong_keys(result, made.answers)
    area = {name: auc(score, is_wrong) for name, score in scores.items()}
    found = auc(by_responses["log_likelihood_ratio"].to_numpy(), is_wrong)
    better = auc(by_answers["log_likelihood_ratio"].to_numpy(), is_wrong)
    assert found > max(0.88, area["item_total"])
    assert better > max(found, *(value for name, value in area.items() if "vote" in name))
    sure = by_answers[by_answers["probability"] > 0.5]
    assert len(sure) > 5
    assert is_wrong[sure.index].mean() > 0.7
    assert (sure["key"] != sure["suggested_key"]).all()
    assert by_responses["suggested_key"].eq("").all()


def test_false_discovery_rates_are_those_found():
    false, estimated, drawn = 0.0, 0.0, 0.0
    for seed in (3, 2):  # some 20 to 50 items are flagged in each
        made, result = case(seed)
        evidence, answers = item_evidence(result), coded_answers(made.answers, result.data)
        keys = judged_keys(evidence, answers)
        rate = bootstrap_rates(evidence, keys, answers, result.data, n_samples=2, seed=0)
        chosen = keys.probability >= 0.2
        false += np.sum(~made.is_wrong_key[chosen])
        estimated += np.sum(1 - keys.probability[chosen])
        drawn += rate[chosen].max() * chosen.sum()
        assert 0.02 < keys.share[1] < 0.1
    assert 0.5 < estimated / false < 2
    assert 0.5 < drawn / false < 2
    none = bootstrap_rates(evidence, keys, answers, result.data, n_samples=0, seed=0)
    np.testing.assert_array_equal(none, expected_false(keys.probability))


def falling(n_items, seed=0, *, steep=0.05, dims=2):
    """Right keys all: steep items of two abilities that fall, and a benchmark that does."""
    rng = np.random.default_rng(seed)
    benchmark = rng.integers(0, 4, n_items)
    slope = rng.normal(0, 0.1, (n_items, dims))
    sign = np.where(rng.random(n_items) < steep, -1, 1) * np.where(benchmark == 3, -1, 1)
    slope[np.arange(n_items), benchmark % dims] = rng.lognormal(0, 0.4, n_items) * sign
    logit = rng.standard_normal((60, dims)) @ slope.T + rng.normal(0, 1, n_items)
    response = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(np.int8)
    names = pd.DataFrame({"benchmark": [f"b{k}" for k in benchmark]})
    return ResponseMatrix.from_dense(response, item_metadata=names)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("has_benchmarks", [True, False])
def test_falling_items_are_not_called_wrong_keys(dims, has_benchmarks):
    # Of 34,000 items of such data 775 to 1,015 were, at an estimated rate of .27 to .53.
    data = falling(1200, dims=dims, steep=0.05)
    if not has_benchmarks:
        data = data.replace(item_metadata=data.item_metadata[[]])
    result = quiet_fit(data, ModelSpec("2pl", dims))
    evidence = item_evidence(result)
    keys = judged_keys(evidence, None)
    chosen = keys.probability >= 0.2
    assert chosen.sum() <= 6
    if chosen.any():
        rate = bootstrap_rates(evidence, keys, None, data, n_samples=2, seed=0)
        assert rate[chosen].max() > 0.5


def test_a_benchmark_that_falls_has_a_composite_that_does():
    data = falling(1200, dims=1)
    result = quiet_fit(data, ModelSpec("2pl"))
    composite = composite_abilities(result)
    assert set(composite.group[data.item_metadata["benchmark"] == "b3"]) == {1}
    assert set(composite.group[data.item_metadata["benchmark"] != "b3"]) == {0}
    np.testing.assert_array_equal(composite.ability[:, 0], -composite.ability[:, 1])
    # One item that falls alone under its name may have a wrong key: it is no falling benchmark.
    slope = np.asarray(result.item_parameters()["dim1_slope"])
    one = np.where(data.item_metadata["benchmark"] == "b3", "harm", "rest").astype(object)
    rising = np.flatnonzero(one == "rest")
    one[rising[np.argmin(slope[rising])]] = "alone"
    named = dataclasses.replace(
        result, data=data.replace(item_metadata=pd.DataFrame({"benchmark": one}))
    )
    alone = composite_abilities(named)
    assert set(alone.group[one == "alone"]) == {0}
    assert set(alone.group[one == "harm"]) == {1}


def test_items_without_a_key_are_judged_by_responses():
    made, result = case()
    half = made.answers[made.answers["item_id"].isin(result.data.item_ids[:400])]
    mixed, plain = wrong_keys(result, half), wrong_keys(result)
    column = "log_likelihood_ratio"
    np.testing.assert_array_equal(mixed[column][400:], plain[column][400:])
    evidence = item_evidence(result)
    found = option_evidence(coded_answers(half, result.data), evidence, np.arange(400))
    np.testing.assert_allclose(mixed[column][:400], found.log_ratio)


def test_gaps_in_the_answers_are_not_evidence_of_wrong_keys():
    made, result = case()
    whole, plain = wrong_keys(result, made.answers), wrong_keys(result)
    for share in (0.9, 0.5, 0.1):
        table = wrong_keys(result, made.answers.sample(frac=share, random_state=0))
        chosen = table["probability"].to_numpy() >= 0.2
        limit = max(np.sum(each["probability"] >= 0.2) for each in (whole, plain))
        assert 5 < chosen.sum() <= 1.25 * limit
        assert made.is_wrong_key[chosen].mean() > 0.35
        area = auc(table["log_likelihood_ratio"].to_numpy(), made.is_wrong_key)
        assert area > auc(plain["log_likelihood_ratio"].to_numpy(), made.is_wrong_key) - 0.02


@pytest.mark.parametrize("known", ["no answers", "right answers", "free right answers"])
def test_answers_that_name_no_wrong_option_change_nothing(known):
    made, result = case()
    table = made.answers.copy()
    if known == "free right answers":
        for column in ("answer", "key"):
            table[column] = table["item_id"] + table[column]
    lost = slice(None) if known == "no answers" else (table["answer"] != table["key"]).to_numpy()
    table.loc[lost, "answer"] = None
    with pytest.warns(IrtjaxWarning, match="none of them names a wrong option"):
        answers = coded_answers(table, result.data)
    evidence = item_evidence(result)
    found, plain = judged_keys(evidence, answers), judged_keys(evidence, None)
    np.testing.assert_array_equal(found.log_ratio, plain.log_ratio)
    np.testing.assert_array_equal(found.probability, plain.probability)
    rates = [
        bootstrap_rates(evidence, plain, each, result.data, n_samples=1, seed=0)
        for each in (answers, None)
    ]
    np.testing.assert_array_equal(*rates)


@pytest.mark.parametrize("kept", ["one in all", "one an item", "half of the items", "2 in 100"])
def test_few_known_wrong_options_do_no_harm(kept):
    made, result = case()
    table, plain = made.answers.copy(), wrong_keys(result)
    is_wrong = (table["answer"] != table["key"]).to_numpy()
    rng = np.random.default_rng(0)
    is_kept = {
        "one in all": np.arange(len(table)) == np.flatnonzero(is_wrong)[0],
        "one an item": is_wrong & ~table["item_id"].where(is_wrong).duplicated().to_numpy(),
        "half of the items": table["item_id"].isin(result.data.item_ids[::2]).to_numpy(),
        "2 in 100": rng.random(len(table)) < 0.02,
    }[kept]
    table.loc[is_wrong & ~is_kept, "answer"] = None
    found = wrong_keys(result, table)
    area, limit = (
        auc(each["log_likelihood_ratio"].to_numpy(), made.is_wrong_key) for each in (found, plain)
    )
    assert area > limit - 0.01
    # One scale for items whose answers tell and for the others.
    assert auc(found["probability"].to_numpy(), made.is_wrong_key) > limit - 0.01
    whole = wrong_keys(result, made.answers)["probability"]
    most = max(np.sum(plain["probability"] >= 0.2), np.sum(whole >= 0.2))
    assert np.sum(found["probability"] >= 0.2) <= 1.25 * most


def test_helpers_of_the_bootstrap():
    drawn, is_wrong = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, False, True, False])
    found = _rates(drawn, is_wrong, np.array([0.95, 0.9, 0.5, 0.0]))
    # 10 items of the expected rates .05, .075, .2167 and .4125 beside 0, 1, 2 and 4 drawn ones.
    np.testing.assert_allclose(found, [0.05, 0.75 / 11, 3.1667 / 12, 6.125 / 14], atol=1e-4)
    first_right = _rates(drawn, ~is_wrong, np.array([0.9, 0.8, 0.3, 0.1]))
    assert (np.diff(first_right) >= 0).all()
    option = np.array([[0, 2, 1], [2, 0, 3]])
    like = np.array([[0, 0, UNKNOWN], [0, NO_CELL, 0]])
    code = _recoded(option, np.array([2, 0, 0]), like)
    assert code.tolist() == [[2, 2, UNKNOWN], [KEY, NO_CELL, 3]]


@pytest.mark.shared
def test_sat12_has_one_likely_wrong_key(shared_dir):
    # The key of item 32 is probably 3, not 5: slope .13 with 5, .49 with 3 (mirt's SAT12).
    with np.load(shared_dir / "data" / "classical.npz") as arrays:
        raw, key, scored = (arrays[f"SAT12_{name}"] for name in ("raw", "key", "scored"))
    result = quiet_fit(ResponseMatrix.from_dense(scored.astype(np.int8)), ModelSpec("2pl"))
    n_takers, n_items = raw.shape
    answers = pd.DataFrame(
        {
            "model_id": np.repeat(result.data.model_ids, n_items),
            "item_id": np.tile(result.data.item_ids, n_takers),
            "answer": raw.ravel().astype(str),
            "key": np.tile(key.astype(str), n_takers),
        }
    )
    table = wrong_keys(result, answers)
    assert np.flatnonzero(table["probability"] > 0.2).tolist() == [31]
    assert table["suggested_key"][31] == "3"
    assert np.argmax(wrong_keys(result)["log_likelihood_ratio"]) == 31
