"""Benchmarks x dims: against loops, on sparse data, and on the demo data whose truth is known."""

import dataclasses
import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import irtjax as ij
from irtjax.audit.benchmark_dims import dims_by_value, expected_dims, mixed_signals
from irtjax.data.demo import DEMO_ABILITIES, DEMO_BENCHMARKS, demo_data
from irtjax.fit.tables import slope_and_intercept


@functools.cache
def fitted():
    spec = ij.ModelSpec(dims=2)
    data = ij.simulate(spec, n_models=40, n_items=300, n_benchmarks=4, seed=2).data
    dense = np.array(data.to_dense())
    dense[np.random.default_rng(0).random(dense.shape) < 0.2] = -1
    dense[3, data.groups("benchmark")[0] == 1] = -1  # a model without one benchmark
    metadata = data.item_metadata.assign(
        part=np.where(np.arange(300) % 3 == 0, "", np.where(np.arange(300) % 3 == 1, "x", "y"))
    )
    data = ij.ResponseMatrix.from_dense(
        dense, model_ids=data.model_ids, item_ids=data.item_ids, item_metadata=metadata
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ij.IrtjaxWarning)
        return ij.rotate(ij.fit(data, spec, max_steps=15), "quartimin")


@pytest.fixture(scope="module")
def demo():
    """A fit of the demo data, with what each benchmark says that it measures."""
    made = demo_data(0)
    says = {each.name: major(each) for each in DEMO_BENCHMARKS}
    says["dangerous-knowledge-withheld"] = "safety"
    metadata = made.data.item_metadata
    metadata = metadata.assign(category=metadata["benchmark"].map(says))
    data = made.data.replace(item_metadata=metadata)
    return made.truth, ij.fit(data, ij.ModelSpec(dims=2))


def major(benchmark):
    return "reasoning" if abs(benchmark.reasoning) > abs(benchmark.safety) else "safety"


def test_every_column_by_its_definition_in_loops():
    fit = fitted()
    table = dims_by_value(fit, ["benchmark", "part"])
    slope, phi = slope_and_intercept(fit)[0], fit.ability_correlations()
    dense, ability = fit.data.to_dense(), np.asarray(fit.parameters.ability, float)
    p_values = []
    for row in table.itertuples():
        items = np.flatnonzero(fit.data.item_metadata[row.column] == row.value)
        k = row.dim - 1
        loading = [slope[j, k] / np.sqrt(1.702**2 + slope[j] @ phi @ slope[j]) for j in items]
        assert row.n_items == len(items)
        assert row.mean_loading == pytest.approx(np.mean(loading), rel=1e-9)
        assert row.mean_slope == pytest.approx(np.mean(slope[items, k]), rel=1e-9)
        part = sum(slope[j, k] * (phi @ slope[j])[k] for j in items)
        total = sum(slope[j] @ phi @ slope[j] for j in items)
        assert row.discrimination_share == pytest.approx(part / total, rel=1e-9)
        seen = [i for i in range(len(dense)) if (dense[i, items] >= 0).any()]
        average = [dense[i, items][dense[i, items] >= 0].mean() for i in seen]
        expected = stats.pearsonr(average, ability[seen, k])
        assert row.n_models == len(seen)
        assert row.correlation == pytest.approx(expected.statistic, rel=1e-9)
        assert row.p_value == pytest.approx(expected.pvalue, rel=1e-6)
        p_values.append(expected.pvalue)
    np.testing.assert_allclose(
        table["p_adjusted"], stats.false_discovery_control(p_values), rtol=1e-6
    )
    clear = table["p_adjusted"] < 0.05
    assert (table["sign"] == np.sign(table["correlation"]).where(clear, 0)).all()
    by_value = table.groupby(["column", "value"], sort=False)
    np.testing.assert_allclose(by_value["discrimination_share"].sum(), 1, rtol=1e-12)
    assert (by_value["is_dominant"].sum() == 1).all()
    assert table["value"].unique().tolist()[-2:] == ["x", "y"]
    assert fit.data.n_models - 1 in table["n_models"].tolist()


def test_sparse_and_weighted_data_have_the_same_table():
    fit = fitted()
    cells = fit.data.cells()
    sparse = fit.data.replace(dense=None, sparse=cells)
    pd.testing.assert_frame_equal(
        dims_by_value(dataclasses.replace(fit, data=sparse)), dims_by_value(fit)
    )
    weight = np.full(fit.data.dense.shape, 2.0, np.float32)
    weighted = fit.data.replace(dense_weight=weight)
    pd.testing.assert_frame_equal(
        dims_by_value(dataclasses.replace(fit, data=weighted)), dims_by_value(fit)
    )


def test_demo_both_abilities_every_dominant_dim_and_the_falling_benchmark(demo):
    assert_demo_found(*demo)


def _expected_by(fit, category):
    """Of each benchmark: as expected or not, None where nobody can say, and the reason."""
    metadata = fit.data.item_metadata
    metadata = metadata.assign(category=metadata["benchmark"].map(category))
    made = dataclasses.replace(fit, data=fit.data.replace(item_metadata=metadata))
    found = expected_dims(made, "category").set_index("value")
    kept = found["is_as_expected"].astype(object).where(found["is_as_expected"].notna(), None)
    return kept.to_dict(), found["reason"].to_dict()


def test_what_nobody_can_say_is_not_called_expected(demo):
    _, fit = demo
    alone, rest = DEMO_BENCHMARKS[0].name, [each.name for each in DEMO_BENCHMARKS[1:-1]]
    says = {each.name: major(each) for each in DEMO_BENCHMARKS} | {alone: "arithmetic"}
    judged, reason = _expected_by(fit, says)
    assert judged[alone] is None
    assert reason[alone].startswith("cannot be judged: no other benchmark of its category")
    assert {judged[name] for name in rest} == {True}
    # One that falls does so in whatever category.
    last = DEMO_BENCHMARKS[-1].name
    judged, reason = _expected_by(fit, says | {last: "knowledge"})
    assert judged[last] is False
    assert "falls with dim" in reason[last]


def test_a_benchmark_that_tells_nothing_is_not_judged_nor_does_it_speak_for_others(demo):
    _, fit = demo
    silent, other = DEMO_BENCHMARKS[9].name, DEMO_BENCHMARKS[8].name  # both of the second dim
    slope = np.array(fit.parameters.mean)
    is_silent = (fit.data.item_metadata["benchmark"] == silent).to_numpy()
    slope[is_silent, :, :-1] = 0
    flat = dataclasses.replace(fit, parameters=dataclasses.replace(fit.parameters, mean=slope))
    says = {each.name: major(each) for each in DEMO_BENCHMARKS}
    judged, reason = _expected_by(flat, says)
    assert judged[silent] is None
    assert reason[silent] == "cannot be judged: its items tell models apart along no dim"
    judged, reason = _expected_by(flat, says | {silent: "refusal", other: "refusal"})
    assert judged[silent] is judged[other] is None
    assert reason[other].startswith("cannot be judged: no other benchmark")


@pytest.mark.parametrize("y", ["simulated", "ones"])
def test_one_dim_tells_no_categories_apart(y):
    data = ij.simulate(ij.ModelSpec(), n_models=30, n_items=60, n_benchmarks=3).data
    if y == "ones":
        ones = np.ones((30, 60), np.int8)
        data = ij.ResponseMatrix.from_dense(ones, item_metadata=data.item_metadata)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ij.IrtjaxWarning)
        fit = ij.fit(data)
    names = data.groups("benchmark")[1]
    judged, reason = _expected_by(fit, dict.fromkeys(names, "x"))
    assert set(judged.values()) == {None}
    assert all(each.startswith("cannot be judged: ") for each in reason.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 10))
def test_demo_of_other_seeds(seed):
    made = demo_data(seed)
    assert_demo_found(made.truth, ij.fit(made.data, ij.ModelSpec(dims=2)))


def assert_demo_found(truth, fit):
    ability = np.asarray(fit.parameters.ability, float)
    correlation = np.abs(np.corrcoef(ability.T, truth.theta.T)[:2, 2:])
    assert correlation.max(axis=1).min() >= 0.99
    name = [DEMO_ABILITIES[k] for k in correlation.argmax(axis=1)]
    assert set(name) == set(DEMO_ABILITIES)
    table = dims_by_value(fit)
    top = table[table["is_dominant"]].set_index("value")
    for benchmark in DEMO_BENCHMARKS:
        assert name[top.loc[benchmark.name, "dim"] - 1] == major(benchmark)
    assert top.index[top["sign"] < 0].tolist() == ["dangerous-knowledge-withheld"]
    assert (top["sign"] != 0).all()


def test_a_benchmark_that_does_not_measure_what_it_says_is_listed_first(demo):
    _, fit = demo
    found = expected_dims(fit, "category")
    assert found["is_as_expected"].tolist() == [False] + [True] * 15
    first = found.iloc[0]
    assert (first["value"], first["category"]) == ("dangerous-knowledge-withheld", "safety")
    dims = found.groupby("category")["expected_dim"].unique()
    assert first["dominant_dim"] == dims["reasoning"][0] != dims["safety"][0]
    assert first["sign"] == -1
    assert "measures dim" in first["reason"]
    assert "falls with dim" in first["reason"]
    rest = found["value"].tolist()[1:]
    assert rest == [each.name for each in DEMO_BENCHMARKS[:-1]]  # the order of the data


def test_sub_categories_with_two_signals_are_found_mixed(demo):
    _, fit = demo
    metadata = fit.data.item_metadata
    # One suite of a safety benchmark and of the one that falls with reasoning; one of two alike.
    suite = {"jailbreak-resistance": "A", "dangerous-knowledge-withheld": "A"}
    suite |= {"competition-math": "B", "logic-puzzles": "B"}
    data = fit.data.replace(item_metadata=metadata.assign(suite=metadata["benchmark"].map(suite)))
    found = mixed_signals(dataclasses.replace(fit, data=data), "benchmark", column="suite")
    assert found["value"].tolist() == ["A", "A", "B", "B"]
    assert found["is_mixed"].tolist() == [True, True, False, False]
    signals = found.set_index("category")["signal"]
    assert signals["dangerous-knowledge-withheld"].endswith("-")
    assert signals["competition-math"] == signals["logic-puzzles"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda fit: dims_by_value(fit, "subject"), "no item metadata column 'subject'; columns"),
        (lambda fit: dims_by_value(fit, []), "no columns to look at"),
        (lambda fit: dims_by_value("run"), "takes a FitResult, not str"),
        (lambda fit: expected_dims(fit, "category"), "no item metadata column 'category'"),
        (lambda fit: mixed_signals("run", "part"), "by a FitResult, not str"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ij.InputError, match=message):
        call(fitted())
