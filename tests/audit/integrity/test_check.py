"""`audit_data`: planted faults are found, clean data are left alone, real faults are named."""

import numpy as np
import pandas as pd
import pytest

from irtjax.audit.integrity.check import audit_data
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.model.spec import ModelSpec
from tests.audit.integrity.cases import clean, of_kind, with_rows

B3 = slice(1900, 3900)  # of the benchmarks of `clean`


def planted(seed=0, **settings):
    data = clean(seed, **settings)
    return data, data.dense.copy(), np.random.default_rng(seed)


def accused(data, dense):
    return audit_data(with_rows(data, dense)).accusations


def test_a_permuted_block_is_misordered():
    data, dense, rng = planted()
    dense[3, B3] = rng.permutation(dense[3, B3])
    (row,) = accused(data, dense).to_dict("records")
    assert (row["kind"], row["model_id"], row["benchmark"]) == ("misordered", "m3", "b3")
    assert abs(row["seen"]) < 0.05 < row["expected"] / 3
    assert row["p_adjusted"] < 0.01
    assert "expected" in row["explanation"]


def test_an_inverted_block_is_inverted():
    data, dense, _ = planted()
    dense[3, B3] = 1 - dense[3, B3]
    (row,) = accused(data, dense).to_dict("records")
    assert (row["kind"], row["model_id"], row["benchmark"]) == ("inverted", "m3", "b3")
    assert row["seen"] < -row["expected"] / 3


@pytest.mark.parametrize("family", ["2pl", "3pl"])
def test_any_model_may_be_inverted(family):
    # A strong one looks like the weakest then, who might guess.
    data = simulate(ModelSpec(family), n_models=12, n_items=3200, n_benchmarks=2, seed=21).data
    block = np.flatnonzero(data.item_metadata["benchmark"] == "benchmark-1")
    for model in range(12):
        dense = data.dense.copy()
        dense[model, block] = 1 - dense[model, block]
        (row,) = accused(data, dense).to_dict("records")
        named = ("inverted", f"model-{model:02}", "benchmark-1")
        assert (row["kind"], row["model_id"], row["benchmark"]) == named
        assert row["expected"] / 3 < -row["seen"]
        assert row["z"] < -5


def test_a_block_like_no_other_has_no_closest_model():
    data, dense, _ = planted()
    dense[3, B3] = 1 - dense[3, B3]
    audit = audit_data(with_rows(data, dense))
    blocks = audit.blocks.set_index(["model_id", "benchmark"])
    block = blocks.loc[("m3", "b3")]
    assert block["closest_model"] == ""
    assert np.isnan(block["closest_correlation"])
    assert [block["expected_agreement"], block["z"]] == pytest.approx(
        audit.accusations[["expected", "z"]].iloc[0].tolist()
    )
    assert (blocks["closest_model"] != blocks.index.get_level_values(0)).all()
    assert (blocks["closest_model"] != "").sum() == len(blocks) - 1


@pytest.mark.parametrize("far", [2, 3])
def test_a_model_far_from_the_rest_is_not_inverted(far):
    # Items that differ in slope, with its sign, more than in easiness: it disagrees for that.
    rng = np.random.default_rng(1)
    slope = rng.lognormal(0, 0.5, 1000) * np.where(rng.random(1000) < 0.2, -1, 1)
    ability = np.append(rng.normal(-0.4 * far, 0.7, 11), far)
    p = 1 / (1 + np.exp(-(np.outer(ability, slope) + rng.normal(0, 0.5, 1000))))
    audit = audit_data(ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(np.int8)))
    block = audit.blocks.iloc[-1]
    assert block["agreement"] < -5 * block["agreement_se"]
    assert audit.accusations.empty


def test_a_second_order_is_a_group_with_its_weak_members():
    data, dense, rng = planted(sizes=(300, 1000, 600, 6000))
    order = rng.permutation(6000)
    group = [1, 3, 5, 11]  # the last one is weak
    for model in group:
        dense[model, 1900:] = dense[model, 1900:][order]
    found = accused(data, dense)
    assert set(of_kind(found, "other_order")) == {(f"m{k}", "b3") for k in group}
    assert len(found) == len(group)
    first = found.iloc[0]
    assert first["partner_id"] in {"m3", "m5", "m11"}
    assert "m5" in first["explanation"]


@pytest.mark.parametrize("lag", [-40, 1, 333])
def test_a_shifted_row_is_found_with_its_lag(lag):
    data, dense, _ = planted()
    start, stop = 1500, 3900
    original = dense[4].copy()
    source = np.arange(start, stop) + lag
    dense[4, start:stop] = original[source]
    found = accused(data, dense)
    assert set(found["kind"]) == {"shifted"}
    assert set(found["model_id"]) == {"m4"}
    assert set(found["benchmark"]) >= {"b3"}
    assert (found["lag"] == lag).all()
    edge = int(found.iloc[0]["first_item"].removeprefix("item-"))
    assert abs(edge - start) < 80
    said = (
        f"{abs(lag)} item{'s' if abs(lag) > 1 else ''} (column{'s' if abs(lag) > 1 else ''}) to the"
    )
    assert found["explanation"].str.contains(said, regex=False).all()


def test_a_shift_is_undone_before_orders_are_judged():
    data, dense, rng = planted()
    twisted = dense[4].copy()
    twisted[B3] = rng.permutation(twisted[B3])
    twisted[400:-250] = twisted[650:]  # from within b1 to the end
    twisted[-250:] = -1
    dense[4] = twisted
    found = accused(data, dense)
    assert ("m4", "b1") in of_kind(found, "shifted")
    assert (found["lag"].dropna() == 250).all()
    assert of_kind(found, "misordered") == [("m4", "b3")]
    assert "after its shift is undone" in found[found["kind"] == "misordered"].iloc[0].explanation


def test_a_copied_block_names_both_models():
    data, dense, _ = planted()
    dense[3, B3] = dense[4, B3]
    dense[3, 1900:1903] ^= 1
    found = accused(data, dense)
    assert of_kind(found, "copied") == [("m3", "b3"), ("m4", "b3")]
    assert found["partner_id"].tolist() == ["m4", "m3"]
    assert found["seen"].tolist() == [3, 3]
    assert len(found) == 2


def test_a_model_given_twice_counts_once():
    data, dense, rng = planted()
    dense[3] = np.where(rng.random(dense.shape[1]) < 0.01, 1 - dense[4], dense[4])
    dense[8] = dense[4]
    audit = audit_data(with_rows(data, dense))
    found = audit.accusations
    assert set(of_kind(found, "duplicated_model")) == {("m3", ""), ("m4", ""), ("m8", "")}
    assert len(found) == 3
    assert found["explanation"].str.contains("in the other benchmarks when the most alike").all()
    assert audit.effective_models == pytest.approx(10, abs=0.2)
    np.testing.assert_allclose(audit.models.evidence[[3, 4, 8]], 1 / 3, atol=0.05)


@pytest.mark.parametrize("family", ["2pl", "3pl"])
@pytest.mark.parametrize("n_models", [100, 500])
def test_chance_likeness_on_few_items_is_no_copy(n_models, family):
    drawn = simulate(ModelSpec(family), n_models=n_models, n_items=30, n_benchmarks=1, seed=11)
    audit = audit_data(drawn.data)
    assert audit.effective_models == pytest.approx(n_models, rel=0.01)
    # Copies among as many models are known for what they are.
    dense = drawn.data.dense.copy()
    middle = np.argsort(dense.mean(axis=1))[n_models // 2]
    copies = [k for k in range(4) if k != middle]
    dense[copies] = dense[middle]
    audit = audit_data(ResponseMatrix.from_dense(dense))
    assert audit.effective_models == pytest.approx(n_models - len(copies), rel=0.01)


def test_a_fine_tune_counts_in_part():
    data = simulate(ModelSpec("2pl"), n_models=20, n_items=3000, n_benchmarks=5, seed=21).data
    dense, rng = data.dense.copy(), np.random.default_rng(0)
    dense[5] = np.where(rng.random(3000) < 0.6, dense[6], dense[5])
    models = audit_data(with_rows(data, dense)).models
    assert models["evidence"].sum() == pytest.approx(19.5, abs=0.1)
    np.testing.assert_allclose(models["evidence"].drop([5, 6]), 1, atol=0.01)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("start", [1900, 2900])
def test_a_filled_stretch_is_found(value, start):
    data, dense, _ = planted()
    dense[4, start:3900] = value
    found = accused(data, dense)
    row = found[found["kind"] == "filled"].iloc[0]
    assert (row["model_id"], row["benchmark"], row["seen"]) == ("m4", "b3", value)
    # Cells before it may have the same value by chance.
    assert abs(int(row["first_item"].removeprefix("item-")) - start) < 60
    assert row["last_item"] == "item-3899"
    assert set(found["model_id"]) == {"m4"}


def test_a_block_of_one_fraction_is_filled():
    data, dense, _ = planted()
    answers = [dense, clean(1).dense, clean(2).dense]
    fractions = np.mean(answers, axis=0).astype(np.float32)
    fractions[4, B3] = 0.5
    assert of_kind(accused(data, fractions), "filled") == [("m4", "b3")]


CLEAN = {
    "two abilities": {},
    "easy and hard": {"easiness_sd": 3.0, "effect_sd": 1.0},
    "guessing and weak": {"guessing": 0.25, "n_weak": 5, "effect_sd": 1.0},
    "30 items": {"sizes": (30,) * 40, "guessing": 0.25, "easiness_sd": 2.0},
    "4 models": {"n_models": 4, "easiness_sd": 2.0},
}


@pytest.mark.parametrize("settings", CLEAN.values(), ids=CLEAN)
def test_clean_blocks_are_not_accused(settings):
    # `python -m benchmarks integrity` counts them by the ten thousand.
    for seed in range(4):
        audit = audit_data(clean(100 + seed, **settings))
        assert audit.accusations.empty, audit.accusations.to_string()
        assert audit.effective_models == pytest.approx(len(audit.models), abs=0.01)


def test_missing_cells_and_sparse_matrices_give_the_same_accusations():
    data, dense, rng = planted(n_models=15, sizes=(3000, 6000))
    dense[3, 3000:] = rng.permutation(dense[3, 3000:])
    dense[rng.random(dense.shape) < 0.4] = -1
    matrix = with_rows(data, dense)
    expected = audit_data(matrix)
    assert of_kind(expected.accusations, "misordered") == [("m3", "b1")]
    cells = matrix.cells()
    thin = ResponseMatrix.from_cells(
        cells.model_index,
        cells.item_index,
        cells.response,
        model_ids=[*data.model_ids, *(f"silent{k}" for k in range(60))],
        item_ids=list(data.item_ids),
        item_metadata=data.item_metadata,
    )
    assert thin.sparse is not None
    found = audit_data(thin)
    pd.testing.assert_frame_equal(found.blocks, expected.blocks, rtol=1e-4)
    # Models without a response are no models.
    assert (len(found.models), found.n_answering) == (75, 15)
    assert found.effective_models == pytest.approx(expected.effective_models)
    assert (found.models["evidence"][15:] == 0).all()


def test_models_in_another_order_give_the_same_evidence():
    data, dense, rng = planted()
    dense[3, B3] = rng.permutation(dense[3, B3])
    expected = audit_data(with_rows(data, dense)).blocks.set_index(["model_id", "benchmark"])
    order = rng.permutation(len(dense))
    turned = ResponseMatrix.from_dense(
        dense[order],
        model_ids=[str(name) for name in data.model_ids[order]],
        item_metadata=data.item_metadata,
    )
    found = audit_data(turned).blocks.set_index(["model_id", "benchmark"]).loc[expected.index]
    for name in ("agreement", "expected_agreement", "z"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-3)
    assert found["accused_of"].tolist() == expected["accused_of"].tolist()


def test_one_benchmark_without_metadata():
    data = ResponseMatrix.from_dense(clean(0).dense)
    audit = audit_data(data)
    assert audit.blocks["benchmark"].unique().tolist() == ["all"]
    assert audit.accusations.empty


def test_a_default_column_with_gaps_is_left_with_a_warning_a_named_one_refused():
    data = clean(0)
    names = data.item_metadata["benchmark"].astype(object)
    gappy = data.replace(item_metadata=pd.DataFrame({"benchmark": names.where(names != "b2")}))
    said = "column 'benchmark' has no value for 600 items of 4,700.*'item-1300'.*all items are one"
    with pytest.warns(IrtjaxWarning, match=said):
        found = audit_data(gappy)
    with pytest.raises(InputError, match="'item-1300' has no value in column 'benchmark'"):
        audit_data(gappy, group="benchmark")
    for each in (data, gappy):
        whole = audit_data(each, group="none")
        pd.testing.assert_frame_equal(whole.blocks, found.blocks)


def test_a_copy_of_the_only_block_is_a_copy_of_the_model():
    dense = clean(0).dense.copy()
    dense[3] = dense[4]
    found = audit_data(ResponseMatrix.from_dense(dense)).accusations
    assert of_kind(found, "duplicated_model") == [("model-3", ""), ("model-4", "")]
    assert len(found) == 2
    assert found["explanation"][0].endswith("are expected")


def test_blocks_too_small_or_too_lonely_are_counted_and_not_judged():
    data, dense, _ = planted(sizes=(5, 1000, 200, 300))
    dense[1:, 1005:1205] = -1  # one model answered b2, two b3
    dense[2:, 1205:] = -1
    dense[3, 5:1005] = dense[4, 5:1005]
    audit = audit_data(with_rows(data, dense))
    assert of_kind(audit.accusations, "copied") == [("m3", "b1"), ("m4", "b1")]
    assert len(audit.accusations) == 2
    blocks = audit.blocks.set_index("benchmark")
    assert blocks.groupby(level=0).size().to_dict() == {"b0": 12, "b1": 12, "b2": 1, "b3": 2}
    assert blocks.loc[["b0", "b2", "b3"], "agreement"].isna().all()
    assert blocks.loc["b1", "agreement"].notna().all()


def test_two_models_are_too_few():
    with pytest.raises(InputError, match="at least 3"):
        audit_data(clean(0, n_models=2, n_weak=0, sizes=(50,)))


@pytest.fixture(scope="module")
def real(shared_dir):
    arrays = np.load(shared_dir / "data" / "psn_irt.npz")
    names = pd.Series(arrays["benchmarks"][arrays["item_benchmark"]].astype(str))
    number = names.groupby(names).cumcount().astype(str)
    return audit_data(
        ResponseMatrix.from_dense(
            arrays["responses"],
            model_ids=[str(name) for name in arrays["models"]],
            item_ids=list(names + "/" + number),
            item_metadata=pd.DataFrame({"benchmark": names}),
        )
    )


def test_the_known_faults_of_real_data_are_found_and_four_runs(real):
    found = real.accusations
    shifted = found[found["kind"] == "shifted"]
    assert set(shifted["model_id"]) == {"Gemini-1.5"}
    assert (shifted["lag"] == 1255).all()
    assert shifted["benchmark"].tolist() == [
        "GSM8K",
        "HellaSwag",
        "HumanEval",
        "MATH",
        "MBPP",
        "MMLU",
    ]
    # The first 64 cells of GSM8K are in their place.
    assert abs(int(shifted.iloc[0]["first_item"].split("/")[1]) - 64) <= 2
    assert of_kind(found, "misordered") == [("Doubao-Pro", "MMLU"), ("Gemini-1.5", "MMLU")]
    group = ("DeepSeek-V3", "Gemma-2B", "Mistral-7B", "Qwen2.5-3B", "Vicuna-7B")
    assert of_kind(found, "other_order") == [(name, "Chinese SimpleQA") for name in group]
    copied = found[found["kind"] == "copied"]
    assert copied["model_id"].tolist() == ["Qwen-Plus", "Yi-Lightning"]
    assert (copied["benchmark"] == "MMLU").all()
    assert (copied["seen"] == 2).all()
    # Nobody had told of these: outages or cells filled in, of 30 to 67 cells.
    filled = found[found["kind"] == "filled"]
    runs = set(zip(filled["model_id"], filled["first_item"], filled["seen"], strict=True))
    assert runs == {
        ("360GPT2-Pro", "Chinese SimpleQA/2967", 1),
        ("Hunyuan-Turbo", "MATH/1653", 0),
        ("Qwen-Plus", "MATH/1146", 0),
        ("Qwen2.5-3B", "MBPP/0", 0),
    }
    assert len(found) == 6 + 2 + 5 + 2 + 4
    assert (found["p_adjusted"] < 0.01).all()


def test_real_blocks_have_their_numbers(real):
    blocks = real.blocks.set_index(["model_id", "benchmark"])
    assert len(blocks) == 12 * 11 - 1  # Gemini-1.5 has no TheoremQA
    assert blocks.loc[("Gemini-1.5", "MATH"), "best_lag"] == 1255
    assert blocks.loc[("Moonshot-v1", "MATH"), "best_lag"] == 0
    assert blocks.loc[("Gemini-1.5", "MMLU"), "accused_of"] == "shifted;misordered"
    sound = blocks[blocks["accused_of"] == ""]
    assert sound["z"].min() > 0
    assert blocks.loc[("Yi-Lightning", "MMLU"), "closest_model"] == "Qwen-Plus"
