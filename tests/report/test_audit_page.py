"""The audit: its tables, its page, and that every number of the page is in a table."""

import dataclasses
import html
import json
import re

import numpy as np
import pandas as pd
import pytest

from irtjax.audit.benchmark_dims import dims_by_value, expected_dims
from irtjax.audit.flags import flag_items
from irtjax.audit.integrity.check import audit_data
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.model.spec import ModelSpec
from irtjax.report.audit_page import PARTS, Audit, audit
from irtjax.report.blocks import Section, TableView, Words
from irtjax.report.item_curves import chosen_items
from irtjax.report.page import render_page, shown_column, shown_number
from irtjax.report.part import Request
from irtjax.report.parts.dimensions import DIMENSIONS
from irtjax.report.parts.flags import FLAGS
from irtjax.report.style import MINUS
from irtjax.report.trust import trust_checks
from tests.fit.fitting import quiet_fit
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def plain_audit(plain_fit) -> Audit:
    return audit(plain_fit, quick=True)


@pytest.fixture(scope="module")
def hostile_audit(hostile_fit) -> Audit:
    return audit(hostile_fit, by=["kind"], expected="kind", quick=True)


def test_tables_are_those_of_the_fit(plain_audit, plain_fit):
    pd.testing.assert_frame_equal(plain_audit.tables["items"], plain_fit.item_parameters())
    pd.testing.assert_frame_equal(plain_audit.tables["models"], plain_fit.abilities())
    heldout = plain_audit.tables["heldout"].set_index("predictor")
    assert heldout["log_loss"]["this fit"] == plain_fit.report["heldout"]["model"]["log_loss"]
    assert list(plain_audit.report["parts"]) == [part.name for part in PARTS]


def test_benchmarks_and_further_columns_are_looked_at(hostile_audit):
    found = hostile_audit.tables["benchmark_loadings"]
    assert found.groupby("column", sort=False).size().to_dict() == {"benchmark": 4, "kind": 2}


def test_the_parts_are_those_of_the_audit_functions(hostile_audit, hostile_fit):
    tables = hostile_audit.tables
    accused = audit_data(hostile_fit.data).accusations
    pd.testing.assert_frame_equal(tables["accusations"], accused)
    expected = dims_by_value(hostile_fit, ["benchmark", "kind"])
    pd.testing.assert_frame_equal(tables["benchmark_dims"], expected)
    pd.testing.assert_frame_equal(
        tables["benchmark_expected"], expected_dims(hostile_fit, "kind", column="benchmark")
    )
    assert set(tables["benchmark_mixed"]["within"]) == {"kind"}
    flags = flag_items(hostile_fit, bootstrap=1)
    pd.testing.assert_frame_equal(tables["flags"].drop(columns="text"), flags)
    assert tables["flags"]["text"].tolist() == flags["item_id"].tolist()  # of these data
    counts = tables["flag_counts"].set_index("flag")["n_items"]
    assert counts.sum() == len(flags)
    assert set(tables["dim_refits"]["kind"]) == {"seeds", "items", "models"}
    assert "dim_comparison" not in tables  # it was to be quick


@pytest.mark.parametrize("n_items", [2, 5, 6])
def test_few_items_have_a_page_too(n_items):
    made = quiet_fit(simulate(ModelSpec(), n_models=60, n_items=n_items, seed=3).data, ModelSpec())
    found = audit(made, quick=True)
    left_out = found.report["parts"]["shorter"].get("left_out", "")
    assert ("would have none" in left_out) == (n_items < 6)


@pytest.mark.parametrize("y", ["coin", "ones"])
def test_responses_that_say_nothing_are_audited_all_the_same(y):
    draws = np.random.default_rng(0).integers(0, 2, (10, 50)).astype(np.int8)
    dense = draws if y == "coin" else np.ones_like(draws)
    metadata = pd.DataFrame({"benchmark": ["A", "B"] * 25})
    made = quiet_fit(ResponseMatrix.from_dense(dense, item_metadata=metadata), ModelSpec())
    found = audit(made, quick=True, expected="benchmark")
    assert "no such ability" in " ".join(found.tables["trust"]["finding"])
    assert 1 <= len(chosen_items(made)) <= 5


def test_accused_blocks_copies_dims_and_bare_items_are_not_trusted(plain_fit, plain_audit):
    def verdicts(tables):
        return trust_checks(plain_fit, tables).set_index("check")["verdict"]

    tables = dict(plain_audit.tables)
    assert plain_audit.tables["trust"].equals(trust_checks(plain_fit, tables))
    assert verdicts(tables)[["data", "copies of models", "responses an item"]].eq("good").all()
    assert "number of dims" not in verdicts(tables)  # it was to be quick
    n_blocks = int(tables["data_summary"]["n_blocks"][0])
    accused = pd.DataFrame({"kind": ["copied"] * 2})
    counts = {"n_accusations": 2, "effective_models": 15.0}
    tables |= {"accusations": accused, "data_summary": tables["data_summary"].assign(**counts)}
    chosen = pd.DataFrame({"dims": [1, 2], "is_chosen": [False, True]})
    found = trust_checks(plain_fit, tables | {"dim_comparison": chosen}).set_index("check")
    assert found["verdict"]["data"] == "bad"
    assert f"2 accusations in {n_blocks} blocks (2 copied)" in found["finding"]["data"]
    assert found["verdict"]["copies of models"] == "look"
    assert "(whole models; copied blocks are listed" in found["finding"]["copies of models"]
    assert found["verdict"]["number of dims"] == "look"
    many = tables["data_summary"].assign(n_blocks=10_000)
    assert verdicts(tables | {"data_summary": many})["data"] == "look"


@pytest.mark.parametrize(
    "error, effective, verdict, said",
    [
        (1.0, 16, "good", "1.1 times as wide as the plain ones (errors 1.0 times)"),
        (3.0, 16, "look", "(errors 3.0 times): benchmarks rank the models differently"),
        (0.9, 4, "good", "1.5 times as wide as the plain ones (errors 0.9 times)"),
        (1.0, 3, "look", "(errors 1.0 times): few benchmarks carry the abilities"),
        (0.5, 1.2, "look", "too few independent benchmarks to tell for 30 of 30 models"),
    ],
)
def test_agreement_of_benchmarks_is_judged_by_the_intervals(
    plain_fit, error, effective, verdict, said
):
    fitted, n = plain_fit.parameters, plain_fit.data.n_models
    plain = np.sqrt(np.asarray(fitted.ability_covariance)[:, :, 0])
    told = {
        "ability_se_clustered": error * plain,
        "clustered_degrees_of_freedom": np.full((n, 1), effective - 1.0),
    }
    made = dataclasses.replace(plain_fit, parameters=dataclasses.replace(fitted, **told))
    found = trust_checks(made, {}).set_index("check").loc["agreement of benchmarks"]
    assert said in found["finding"]
    assert found["verdict"] == verdict


def test_dims_that_refits_do_not_find_are_not_trusted(plain_fit, plain_audit):
    def check(flags, stable):
        dim = {"name": "dim1", "explained_variance": 0.3, "flags": flags}
        dim |= {"top_model": "gpt", "top_model_share": 0.76}
        told = {"dim": [1], "is_stable": [stable], "reason": ["" if stable else "models: low"]}
        made = dataclasses.replace(plain_fit, report=plain_fit.report | {"dimensions": [dim]})
        found = trust_checks(made, {"dim_stability": pd.DataFrame(told)}).set_index("check")
        return found.loc["dim1"].tolist()

    explains = "explains 30.0% of the items' variance"
    of_one = "gpt alone holds 76% of its spread: check that model's responses"
    assert check("", True) == ["good", explains]
    assert check("", False) == ["bad", f"{explains}; refits do not find it again (models: low)"]
    assert check("one_model", True)[1].startswith(f"{explains}; {of_one}")
    # What comes back as that of one model is said so where it is said to come back.
    tables = dict(plain_audit.tables)
    request = Request(plain_fit, "benchmark", quick=True)
    assert not [each for each in DIMENSIONS.blocks(request, tables) if isinstance(each, Words)]
    tables["dim_variance"] = tables["dim_variance"].assign(flags="one_model", top_model="gpt")
    tables["dim_stability"] = tables["dim_stability"].assign(is_stable=True)
    (words,) = (each for each in DIMENSIONS.blocks(request, tables) if isinstance(each, Words))
    assert words.text.startswith("Dim 1 comes back, and gpt alone holds")


def test_predictions_off_by_no_more_than_chance_are_calibrated(plain_fit):
    def check(gap, chance, high, source="held-out"):
        told = {"source": source, "mean_gap": gap, "chance_gap": chance, "chance_gap_high": high}
        found = trust_checks(plain_fit, {"calibration_summary": pd.DataFrame([told])})
        return found.set_index("check").reindex(["calibration"]).iloc[0]

    # 12 x 200 responses drawn from the fit's own model, and ChemBench.
    assert check(0.082, 0.080, 0.108)["verdict"] == "good"
    assert check(0.030, 0.016, 0.021)["verdict"] == "look"
    assert check(0.080, 0.016, 0.021)["verdict"] == "bad"
    assert check(0.112, 0.080, 0.108)["verdict"] == "look"
    assert check(0.004, 0.001, 0.002)["verdict"] == "good"
    said = check(0.030, 0.016, 0.021)["finding"]
    assert "off by 0.030 on average" in said
    assert "by 0.016 (0.021 at most, 19 times in 20)" in said
    assert check(0.3, 0.01, 0.02, source="fitted").isna().all()


def test_items_of_few_responses_are_not_trusted(plain_fit):
    dense = plain_fit.data.to_dense().copy()
    dense[5:, :20] = -1
    metadata = plain_fit.data.item_metadata
    bare = quiet_fit(ResponseMatrix.from_dense(dense, item_metadata=metadata), ModelSpec())
    row = trust_checks(bare, {}).set_index("check").loc["responses an item"]
    assert row.tolist() == ["look", "10.0% of the items have 5 responses or fewer"]


def test_benchmarks_that_some_items_lack_are_counted(plain_fit):
    metadata = plain_fit.data.item_metadata.copy()
    metadata["benchmark"] = metadata["benchmark"].astype(object)
    metadata.loc[metadata.index[:7], "benchmark"] = None
    bare = dataclasses.replace(plain_fit, data=plain_fit.data.replace(item_metadata=metadata))
    with pytest.warns(IrtjaxWarning, match="column 'benchmark' has no value for 7 items"):
        found = audit(bare, quick=True)
    assert found.report["parts"]["benchmarks"]["left_out"].startswith("7 items have no benchmark")
    assert set(found.tables["blocks"]["benchmark"]) == {"all"}
    whole = audit(plain_fit, group="none", quick=True)
    reason = whole.report["parts"]["benchmarks"]["left_out"]
    assert reason == "All items were asked to be one benchmark."
    assert set(whole.tables["blocks"]["benchmark"]) == {"all"}


def test_reasons_stand_beside_the_ids(hostile_audit):
    flags = re.search(r"of each flag the first 40</h3>(.*?)</table>", hostile_audit.html, re.S)
    headings = re.findall(r"<th [^>]*>(.*?)</th>", flags.group(1), re.S)
    assert headings[:5] == ["item id", "flag", "reason", "text", "value"]
    assert '<th scope="row" class="i">' in flags.group(1)


@pytest.mark.slow
def test_without_haste_the_numbers_of_dims_are_compared(plain_fit):
    found = audit(plain_fit)
    compared = found.tables["dim_comparison"]
    assert compared["is_chosen"].sum() == 1
    assert set(found.tables["dim_variance"]["dims"]) == {1, 2, 3, 4, 5}
    assert 'aria-label="Held-out log-loss by number of dims."' in found.html


def test_answers_reach_the_keys(plain_fit):
    cells = plain_fit.data.cells()
    answer = np.where(cells.response == 1, "A", "B")
    table = pd.DataFrame(
        {
            "model_id": plain_fit.data.model_ids[cells.model_index],
            "item_id": plain_fit.data.item_ids[cells.item_index],
            "answer": answer,
            "key": "A",
        }
    )
    found = FLAGS.tables(Request(plain_fit, "benchmark", answers=table, quick=True))
    pd.testing.assert_frame_equal(found["flags"], flag_items(plain_fit, table, bootstrap=1))


def test_columns_are_each_once(hostile_fit):
    request = Request(hostile_fit, "benchmark", ["kind", "benchmark"])
    assert request.columns == ["benchmark", "kind"]


def test_every_section_says_what_it_shows_how_to_read_it_and_what_to_do(plain_audit):
    for part in PARTS:
        guide = dataclasses.astuple(part.guide)
        assert all(len(text) > 20 and text.endswith(".") for text in guide), part.name
    sections = re.findall(r"<section.*?</section>", plain_audit.html, re.S)
    assert len(sections) == len(PARTS)
    for section in sections:
        terms = re.findall(r"<dt>(.*?)</dt>", section)
        assert terms == ["What it shows", "How to read it", "What to do"]
    assert "<code>irtjax plot RUN curves --item ID</code>" in plain_audit.html


def test_hostile_names_stay_text(hostile_audit):
    page = hostile_audit.html
    # The page's own script and nothing else.
    assert len(re.findall(r"<script", page)) == 1
    assert "<img" not in page
    assert "<b>" not in page
    text = html.unescape(re.sub(r"<[^>]*>", "\n", page.replace("<wbr>", "")))
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[4]):
        assert name in text, name
    assert "m" * 300 + "…" not in text  # 300 letters are shown in full
    assert "m" * 300 in text


def test_the_page_needs_no_network(hostile_audit):
    links = re.findall(r"""(?:src|href|action)=["']([^"']*)|url\(([^)]*)\)""", hostile_audit.html)
    assert all(a.startswith(("#", "data:")) or b.startswith("#") for a, b in links)
    assert "@import" not in hostile_audit.html


def test_a_part_that_cannot_be_done_says_why(plain_fit):
    bare = plain_fit.data.replace(item_metadata=pd.DataFrame(index=range(200)))
    report = plain_fit.report | {"trace": {}}
    made = dataclasses.replace(plain_fit, data=bare, heldout=None, report=report)
    found = audit(made, quick=True)
    assert "benchmark_loadings" not in found.tables
    assert "no column that says their benchmark" in found.html
    assert found.report["parts"]["course"]["left_out"] == "The fit's report has no trace."


def test_a_long_list_is_capped_and_the_page_stays_small():
    n = 100_000
    frame = pd.DataFrame({"item_id": [f"item-{k}" for k in range(n)], "score": np.arange(n) / 7})
    view = TableView(frame.head(300), "flags.csv", "Flags", n, is_searchable=True)
    page = render_page("t", "s", [Section("x", "X", [Words("w", is_warning=True), view])])
    assert len(page) < 100_000
    assert "300 of 100,000 rows; all of them: flags.csv" in page


def test_saved_files_are_listed(plain_audit, tmp_path):
    plain_audit.save(tmp_path / "a" / "b")
    told = json.loads((tmp_path / "a" / "b" / "audit.json").read_text())
    assert sorted(told["files"]) == sorted(path.name for path in (tmp_path / "a/b").iterdir())
    assert told["settings"]["group"] == "benchmark"


def test_progress_is_told(plain_fit):
    seen = []
    audit(
        plain_fit, quick=True, on_part=lambda title, done, total: seen.append((title, done, total))
    )
    assert seen == [(part.title, k, len(PARTS)) for k, part in enumerate(PARTS)]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"group": "x"}, "'x'"),
        ({"by": ["x"]}, "'x'"),
        ({"expected": "x"}, "'x'"),
        ({"seed": -1}, "seed"),
        ({"answers": pd.DataFrame({"model_id": ["a"]})}, "answers need a column 'item_id'"),
        ({"published": pd.DataFrame({"model_id": ["a"]})}, "score|benchmark"),
    ],
)
def test_bad_arguments(plain_fit, options, message):
    with pytest.raises(InputError, match=message):
        audit(plain_fit, **options)


def test_no_fit_is_refused(plain_fit):
    with pytest.raises(InputError, match="audit takes a FitResult, not ResponseMatrix"):
        audit(plain_fit.data)


def test_numbers_are_shown_to_four_digits():
    shown = {
        0.0: "0",
        1234567.0: "1,234,567",
        -0.5: f"{MINUS}0.5000",
        0.000123: "0.00012",
        1e-9: f"1.0e{MINUS}09",
        12.345: "12.35",
    }
    assert {value: shown_number(value) for value in shown} == shown


def test_numbers_of_different_things_have_their_own_digits():
    frame = pd.DataFrame({"item_id": ["a", "b", "c"], "value": [0.000469, -3.32, 5.0]})
    view = TableView(frame, "flags.csv", "Flags", 3, mixed=["value"])
    page = render_page("t", "s", [Section("x", "X", [view])])
    shown = re.findall(r'<td class="n" data-v="[^"]*">(.*?)</td>', page)
    assert shown == ["0.00047", f"{MINUS}3.320", "5"]


def test_numbers_of_a_column_line_up():
    assert shown_column(np.array([1.59, 0.7892, -0.0267, np.nan])) == [
        "1.590",
        "0.789",
        f"{MINUS}0.027",
        "",
    ]
    assert shown_column(np.array([1.0, np.nan, 12345.0])) == ["1", "", "12,345"]
    # Nothing is rounded to 0, and numbers of different things keep their own digits.
    tiny = shown_column(np.array([12.5, 3.5, 2.5, 8.5, 0.0001]))
    assert tiny == ["12.50", "3.50", "2.50", "8.50", f"1.0e{MINUS}04"]
    assert shown_column(np.array([1e-68, 0.5, 1e-70])) == [
        f"1.0e{MINUS}68",
        "0.5000",
        f"1.0e{MINUS}70",
    ]
