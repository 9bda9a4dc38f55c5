"""Item quality against the published table of PSN-IRT, and against NumPy."""

import numpy as np
import pandas as pd
import pytest

from irtjax.audit.quality import item_quality, quality_at, ranked_means, with_ranks
from irtjax.data.simulate import simulate
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit

# Zhou et al. (2026), Table 5 with the digits that the published parameters give: difficulty,
# discrimination, guessing, feasibility, LEH, information, total rank without difficulty.
TABLE_5 = {
    "ARC-C": (-1.1637, 1.2823, 0.2621, 0.9481, 0.004085, 0.0005352, 38),
    "BBH": (-0.6033, 1.3845, 0.1657, 0.8747, 0.005729, 0.0005915, 32),
    "Chinese SimpleQA": (0.2656, 1.4474, 0.0609, 0.7088, 0.008877, 0.0006425, 21),
    "GPQA Diamond": (0.1902, 0.8598, 0.1518, 0.6437, 0.014220, 0.0013519, 30),
    "GSM8K": (-0.7898, 1.5255, 0.1491, 0.9167, 0.003810, 0.0003811, 32),
    "HellaSwag": (-1.0353, 1.2920, 0.2449, 0.9304, 0.004681, 0.0005959, 33),
    "HumanEval": (-0.6351, 1.4459, 0.1565, 0.8957, 0.004632, 0.0004697, 33),
    "MATH": (-0.2396, 1.5793, 0.0673, 0.8290, 0.005419, 0.0003824, 27),
    "MBPP": (-0.3456, 1.3625, 0.1345, 0.8221, 0.007146, 0.0006846, 26),
    "MMLU": (-0.8383, 1.1968, 0.2381, 0.8921, 0.006734, 0.0008104, 31),
    "TheoremQA": (0.6548, 1.0656, 0.0888, 0.5012, 0.014462, 0.0012911, 27),
}


def test_the_published_parameters_give_the_published_table(shared_dir):
    published = np.load(shared_dir / "data" / "psn_irt.npz")
    names = ("difficulty", "discrimination", "guessing", "feasibility")
    parameters = {name: published[f"pub_{name}"].astype(float) for name in names}
    table = quality_at(float(published["pub_ability"].max()), **parameters)
    benchmark = published["benchmarks"][published["item_benchmark"]]
    ranked = ranked_means(table, pd.Series(benchmark, name="benchmark")).set_index("benchmark")
    assert set(ranked.index) == set(TABLE_5)
    for name, expected in TABLE_5.items():
        row = ranked.loc[name]
        found = row[[*names, "leh", "information"]].to_numpy(float)
        # The table's discrimination of ARC-C, 1.2823, is 1.28219 from the parameters.
        np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-4, atol=6e-5)
        np.testing.assert_allclose(found[4:], expected[4:6], rtol=2e-4)
        assert row.total_rank == expected[6]


@pytest.mark.parametrize("dims", [1, 2])
def test_a_fits_quality_is_the_curve_at_its_top(dims):
    data = simulate(ModelSpec("2pl", dims), n_models=30, n_items=40, n_benchmarks=3, seed=4).data
    fit = quiet_fit(data, ModelSpec("2pl", dims))
    table, items = item_quality(fit), fit.item_parameters()
    slope = items[[f"dim{k + 1}_slope" for k in range(dims)]].to_numpy()
    ability = fit.abilities()[[f"dim{k + 1}_ability" for k in range(dims)]].to_numpy()
    if dims == 1:
        logit = slope[:, 0] * ability.max() + items.intercept
        steep = slope[:, 0]
    else:
        logit, steep = (slope @ ability.T).max(axis=1) + items.intercept, items.discrimination
    p = 1 / (1 + np.exp(-logit))
    np.testing.assert_allclose(table.leh, steep * p * (1 - p), rtol=1e-4)
    np.testing.assert_allclose(table.information, steep**2 * p * (1 - p), rtol=1e-4)
    assert table.item_id.tolist() == items.item_id.tolist()
    assert list(table.columns)[:3] == ["item_id", "benchmark", "difficulty"]


def test_ranks_are_1_for_the_best_and_equal_for_ties():
    table = quality_at(
        1.0,
        difficulty=np.array([0.0, 1.0, 2.0, 0.0]),
        discrimination=np.array([1.0, 2.0, 1.0, 1.0]),
        guessing=np.array([0.1, 0.3, 0.2, 0.1]),
        feasibility=np.ones(4),
    )
    ranked = ranked_means(table, pd.Series(["a", "b", "c", "d"], name="set")).set_index("set")
    assert ranked.difficulty_rank.to_dict() == {"a": 3, "b": 2, "c": 1, "d": 3}
    assert ranked.guessing_rank.to_dict() == {"a": 1, "b": 4, "c": 3, "d": 1}
    assert ranked.discrimination_rank.to_dict() == {"a": 2, "b": 1, "c": 2, "d": 2}
    assert ranked.total_rank.is_monotonic_increasing


def test_items_have_the_ranks_that_their_own_means_would_have():
    rng = np.random.default_rng(0)
    names = ["difficulty", "discrimination", "guessing", "feasibility", "leh", "information"]
    table = pd.DataFrame(rng.normal(size=(9, 6)), columns=names)
    table.loc[4, "difficulty"] = np.nan
    found = with_ranks(table)
    assert found[names].equals(table)
    alone = ranked_means(table, pd.Series([f"i{k}" for k in range(9)], name="item"))
    alone = alone.set_index("item").loc[[f"i{k}" for k in range(9)]]
    ranks = [*(f"{name}_rank" for name in names), "total_rank"]
    np.testing.assert_array_equal(found[ranks], alone[ranks])
    assert found.loc[4, "difficulty_rank"] == 9
    assert found.loc[table["guessing"].idxmin(), "guessing_rank"] == 1


def test_a_column_without_values_is_refused():
    table = quality_at(0.0, **{name: np.ones(2) for name in ("difficulty", "discrimination")},
                       guessing=np.zeros(2), feasibility=np.ones(2))  # fmt: skip
    with pytest.raises(InputError, match="no item has a value in the column 'kind'"):
        ranked_means(table, pd.Series(["", ""], name="kind"))


def test_a_mean_that_does_not_exist_ranks_last():
    difficulty = np.array([np.nan, 1.0, 0.0, np.nan])
    table = quality_at(0.0, difficulty=difficulty, discrimination=np.ones(4),
                       guessing=np.zeros(4), feasibility=np.ones(4))  # fmt: skip
    ranked = ranked_means(table, pd.Series(["a", "b", "c", "d"], name="set")).set_index("set")
    assert ranked.difficulty_rank.to_dict() == {"a": 3, "b": 1, "c": 2, "d": 3}
