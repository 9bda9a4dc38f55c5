"""The numbers behind the figures, against plain NumPy; and that every figure can be drawn."""

import dataclasses
import re
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from irtjax.errors import InputError, IrtjaxWarning
from irtjax.model.metrics import calibration_error
from irtjax.report.abilities import ability_intervals, draw_abilities, is_carried_by_few
from irtjax.report.all_items import (
    ability_counts,
    information_of_all_items,
    precision_summary,
)
from irtjax.report.calibration import calibration_bins, calibration_summary
from irtjax.report.dims_chart import draw_dim_correlations
from irtjax.report.heatmap import draw_heatmap, draw_loadings, mean_loadings
from irtjax.report.item_curves import chosen_items, item_curves, observed_shares
from irtjax.report.items_scatter import draw_items, items_summary
from irtjax.report.plot import KINDS, plot
from irtjax.report.style import MINUS, shortened, shortened_together, svg_of
from irtjax.report.trace import trace_table


def sigmoid(z):
    return 1 / (1 + np.exp(-np.asarray(z, np.float64)))


def test_information_of_all_items_is_the_sum_over_items(hostile_fit):
    items = hostile_fit.item_parameters()
    found = information_of_all_items(hostile_fit)
    for dim, at in ((1, 0), (2, 40), (2, 80)):
        row = found[found["dim"] == dim].iloc[at]
        slope = items[f"dim{dim}_slope"].to_numpy()
        p = sigmoid(slope * row["ability"] + items["intercept"])
        expected = np.sum(slope**2 * p * (1 - p))
        np.testing.assert_allclose(row["information"], expected, rtol=1e-4)
        np.testing.assert_allclose(row["standard_error"], expected**-0.5, rtol=1e-4)


def test_every_model_is_counted_once(hostile_fit):
    counts = ability_counts(hostile_fit)
    assert counts.groupby("dim")["n_models"].sum().tolist() == [30, 30]


@pytest.mark.parametrize("name", ["plain_fit", "hostile_fit"])
def test_item_curves_follow_the_items_own_direction(name, request):
    fit = request.getfixturevalue(name)
    ids = chosen_items(fit)
    assert 3 <= len(ids) <= 5
    curves = item_curves(fit, ids)
    items = fit.item_parameters().set_index("item_id").loc[ids]
    for item_id, item in items.iterrows():
        mine = curves[curves["item_id"] == item_id]
        z = item["discrimination"] * mine["ability"] + item["intercept"]
        np.testing.assert_allclose(mine["probability"], sigmoid(z), atol=1e-5)
        information = item["discrimination"] ** 2 * sigmoid(z) * sigmoid(-z)
        np.testing.assert_allclose(mine["information"], information, atol=1e-5)


def test_observed_shares_group_the_models_along_the_item(hostile_fit):
    item = hostile_fit.data.item_ids[9]
    found = observed_shares(hostile_fit, [item])
    assert found["n_models"].sum() == 30
    assert len(found) == 7
    row = hostile_fit.item_parameters().iloc[9]
    slope = row[["dim1_slope", "dim2_slope"]].to_numpy(float)
    place = np.asarray(hostile_fit.parameters.ability) @ slope / row["discrimination"]
    lowest = np.argsort(place)[: found["n_models"][0]]
    np.testing.assert_allclose(found["ability"][0], place[lowest].mean(), rtol=1e-5)
    share = hostile_fit.data.to_dense()[lowest, 9].mean()
    np.testing.assert_allclose(found["share_right"][0], share, rtol=1e-6)


def test_calibration_bins_are_those_of_the_calibration_error(plain_fit):
    bins, cells = calibration_bins(plain_fit), plain_fit.heldout
    gap = np.sum(bins["n"] * (bins["observed"] - bins["predicted"]).abs()) / bins["n"].sum()
    p = plain_fit.predict_cells(cells.model_index, cells.item_index)
    np.testing.assert_allclose(gap, calibration_error(p, cells.response), rtol=1e-6)
    assert bins["n"].sum() == len(cells)
    summary = calibration_summary(bins).iloc[0]
    assert summary["source"] == "held-out"
    assert summary["n"] == len(cells)
    np.testing.assert_allclose(summary["mean_gap"], gap, rtol=1e-12)
    assert set(bins["source"]) == {"held-out"}
    first = bins.iloc[0]
    interval = stats.binomtest(round(first["observed"] * first["n"]), int(first["n"]))
    wilson = interval.proportion_ci(method="wilson")
    np.testing.assert_allclose([first["low"], first["high"]], wilson, atol=1e-4)


def test_gaps_by_chance_are_those_of_responses_drawn_from_the_predictions(plain_fit):
    cells = plain_fit.heldout
    p = plain_fit.predict_cells(cells.model_index, cells.item_index).astype(np.float64)
    rng = np.random.default_rng(1)
    gaps = [calibration_error(p, rng.random(len(p)) < p) for _ in range(1000)]
    found = calibration_summary(calibration_bins(plain_fit)).iloc[0]
    np.testing.assert_allclose(found["chance_gap"], np.mean(gaps), rtol=0.05)
    np.testing.assert_allclose(found["chance_gap_high"], np.quantile(gaps, 0.95), rtol=0.05)


def test_scores_scatter_less_by_chance_than_right_and_wrong_answers(plain_fit):
    cells = plain_fit.heldout
    p = plain_fit.predict_cells(cells.model_index, cells.item_index)
    rng = np.random.default_rng(2)
    score = rng.beta(9 * p, 9 * (1 - p)).astype(np.float32)  # of a tenth of the variance
    scored = dataclasses.replace(plain_fit, heldout=dataclasses.replace(cells, response=score))
    plain, found = (
        calibration_summary(calibration_bins(each)).iloc[0] for each in (plain_fit, scored)
    )
    ratio = found["chance_gap"] / plain["chance_gap"]
    np.testing.assert_allclose(ratio, 0.1**0.5, rtol=0.15)


def test_without_held_out_responses_calibration_says_so(hostile_fit):
    assert set(calibration_bins(hostile_fit)["source"]) == {"fitted"}


def test_intervals_are_those_of_the_standard_errors(plain_fit):
    table, models = ability_intervals(plain_fit), plain_fit.abilities()
    np.testing.assert_allclose(
        table["high"] - table["low"], 2 * 1.959964 * models["dim1_ability_se"], rtol=1e-5
    )
    assert table["low_clustered"].isna().all()  # four benchmarks are too few
    assert table.sort_values("rank")["ability"].is_monotonic_decreasing


@pytest.fixture(scope="module")
def uneven_fit(plain_fit):
    """Clustered errors of .1; every third model rests on 1.2 benchmarks, the others on 3 to 16."""
    n = plain_fit.data.n_models
    effective = np.where(np.arange(n) % 3 == 0, 1.2, np.linspace(3.01, 16, n))[:, None]
    errors = {
        "ability_se_clustered": np.full((n, 1), 0.1),  # as old fits saved them
        "clustered_degrees_of_freedom": effective - 1,
    }
    return dataclasses.replace(
        plain_fit, parameters=dataclasses.replace(plain_fit.parameters, **errors)
    )


def test_no_clustered_interval_is_made_of_too_few_benchmarks(uneven_fit):
    table = ability_intervals(uneven_fit)
    is_few = np.arange(len(table)) % 3 == 0
    assert is_carried_by_few(table).tolist() == is_few.tolist()
    assert (
        table.loc[is_few, ["low_clustered", "high_clustered", "multiplier"]].isna().to_numpy().all()
    )
    known = table[~is_few]
    expected = stats.t.ppf(0.975, known["effective_benchmarks"] - 1)
    np.testing.assert_allclose(known["multiplier"], expected)
    half = (known["high_clustered"] - known["low_clustered"]) / 2
    np.testing.assert_allclose(half, 0.1 * expected, rtol=1e-5)
    assert known["multiplier"].max() < 4.31


def test_models_without_a_clustered_interval_are_hollow(uneven_fit):
    table = ability_intervals(uneven_fit)
    figure = draw_abilities(table)
    full, hollow = figure.axes[0].lines
    assert (len(full.get_xdata()), len(hollow.get_xdata())) == (20, 10)
    assert hollow.get_markerfacecolor() == "white"
    said = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    assert "Hollow: too few independent benchmarks" in said
    none = table.assign(low_clustered=np.nan, high_clustered=np.nan)
    said = " ".join(text.get_text() for text in draw_abilities(none).texts)
    assert "Hollow: too few" in said
    plain = none.assign(effective_benchmarks=np.nan)
    assert "too few" not in " ".join(text.get_text() for text in draw_abilities(plain).texts)


@pytest.mark.parametrize("name", ["plain_fit", "hostile_fit"])
def test_the_curve_stands_beside_the_models_own_errors(name, request):
    fit = request.getfixturevalue(name)
    information = information_of_all_items(fit)
    found = precision_summary(fit, information)
    assert found["dim"].tolist() == list(range(1, fit.spec.dims + 1))
    for _, row in found.iterrows():
        mine = information[information["dim"] == row["dim"]]
        assert row["best_standard_error"] == mine["standard_error"].min()
        own = fit.abilities()[f"dim{row['dim']:.0f}_ability_se"]
        np.testing.assert_allclose(row["median_model_se"], np.median(own))


def test_mean_loadings(plain_fit):
    items = plain_fit.item_parameters()
    expected = items.groupby("benchmark", sort=False)["dim1_loading"].mean()
    found = mean_loadings(plain_fit)
    assert found["value"].tolist() == expected.index.tolist()
    np.testing.assert_allclose(found["dim1_loading"], expected)


def test_the_trace_is_that_of_the_report(plain_fit):
    found = trace_table(plain_fit)
    assert found["objective"].tolist() == list(plain_fit.report["trace"]["objective"])
    assert found["step"].tolist() == list(range(1, plain_fit.report["n_steps"] + 1))


@pytest.mark.parametrize("name", ["plain_fit", "hostile_fit"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_as_png_and_svg(name, kind, request, tmp_path):
    fit = request.getfixturevalue(name)
    with warnings.catch_warnings():
        # Letters that no font of this machine has: tests/report/test_fonts.py.
        warnings.filterwarnings("ignore", "no installed font has", IrtjaxWarning)
        plot(fit, kind, tmp_path / "p.png")
    plot(fit, kind, tmp_path / "p.svg")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "p.svg").read_text()
    ElementTree.fromstring(text)  # whatever the names, it is well-formed
    assert "<script" not in text
    again = tmp_path / "again.svg"
    plot(fit, kind, again)
    assert again.read_text() == text


def test_many_models_and_items_make_small_pictures():
    n = 5000
    models = pd.DataFrame(
        {
            "model_id": [f"model-{k}" for k in range(n)],
            "dim": 1,
            "rank": np.arange(1, n + 1),
            "ability": np.linspace(3, -3, n),
            "low": np.linspace(3, -3, n) - 0.5,
            "high": np.linspace(3, -3, n) + 0.5,
            "low_clustered": np.nan,
            "high_clustered": np.nan,
            "effective_benchmarks": np.nan,
        }
    )
    svg = svg_of(draw_abilities(models), "a", "abilities")
    assert len(svg) < 60_000
    assert "model-0<" in svg
    assert "model-4999<" in svg
    assert "ranks 21 to 4,980" in svg
    rng = np.random.default_rng(0)
    items = pd.DataFrame(
        rng.standard_normal((100_000, 2)), columns=["difficulty", "discrimination"]
    )
    assert len(svg_of(draw_items(items), "b", "items")) < 200_000
    benchmarks = pd.DataFrame({"column": "benchmark", "value": range(900), "n_items": range(900)})
    loadings = benchmarks.assign(dim1_loading=0.1, dim2_loading=-0.4)
    svg = svg_of(draw_loadings(loadings), "c", "loadings")
    assert len(svg) < 200_000
    assert "the 40 largest of 900" in svg


def test_items_are_summed_up_as_drawn():
    items = pd.DataFrame(
        {"difficulty": [0.0, 1.0, np.nan, -1.0], "discrimination": [1.0, -2.0, 3.0, 0.5]}
    )
    told = items_summary(items).iloc[0].to_dict()
    assert told == {
        "n_items": 4,
        "n_falling": 1,
        "median_discrimination": 0.5,
        "n_not_drawn": 1,
    }


def test_heatmaps_share_one_symmetric_scale_and_say_what_falls_without_colour():
    value = np.array([[0.2, -0.004], [np.nan, -0.9], [-0.006, 0.01]])
    names = {"label": "l", "title": "t", "note": "n"}
    axes, bar = draw_heatmap(value, ["a", "b", "e"], ["c", "d"], **names).axes
    assert axes.images[0].get_clim() == (-1, 1)
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["0.20", "0.00", f"{MINUS}0.90", f"{MINUS}0.01", "0.01"]
    # What is printed with a minus is hatched, and nothing else.
    assert [patch.get_xy() for patch in axes.patches] == [(0.5, 0.5), (-0.5, 1.5)]
    assert list(bar.get_xticks()) == [-1, -0.5, 0, 0.5, 1]


def test_dims_of_other_fits_are_rows_whichever_fit_comes_first():
    table = pd.DataFrame(
        [(1, 1, 2, 1, 0.9), (1, 1, 2, 2, 0.1), (1, 1, 3, 1, 0.5)]
        + [(2, i, 3, j, i / 10 + j / 100) for i in (1, 2) for j in (1, 2, 3)],
        columns=["dims", "dim", "other_dims", "other_dim", "correlation"],
    )
    axes = draw_dim_correlations(table, 2).axes[0]
    np.testing.assert_allclose(
        axes.images[0].get_array(), [[0.9, 0.1], [0.11, 0.21], [0.12, 0.22], [0.13, 0.23]]
    )
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows == ["the one dim", "dim 1 of 3", "dim 2 of 3", "dim 3 of 3"]


def test_ids_inside_an_svg_carry_the_prefix(plain_fit):
    svg = svg_of(draw_items(plain_fit.item_parameters()), "here", 'a "quoted" <text>')
    ids = re.findall(r' id="([^"]+)"', svg)
    used = re.findall(r"url\(#([^)]+)\)", svg) + re.findall(r'href="#([^"]+)"', svg)
    assert set(used) <= set(ids)
    assert all(each.startswith("here-") for each in ids)
    assert 'aria-label="a &#34;quoted&#34; &lt;text&gt;"' in svg
    assert svg.startswith("<svg ")
    assert svg.endswith("</svg>")


def test_names_are_shortened_in_the_middle():
    assert shortened("x" * 100) == "x" * 12 + "…" + "x" * 13
    assert shortened("a\nb\tc\x1b") == "a b c"
    assert shortened("_x") == " _x"


def test_names_that_would_become_one_keep_what_tells_them_apart():
    names = [f"an-organisation/a-model-{k}-instruct-fp8-chat" for k in (199, 1250, 1251)]
    assert shortened_together(names) == ["…199…", "…1250…", "…1251…"]
    assert shortened_together(["b" * 60, "x"]) == [shortened("b" * 60), "x"]
    assert shortened_together(["x", "x"]) == ["x", "x"]


@pytest.mark.parametrize(
    "kind, file, options, message",
    [
        ("abilites", "p.png", {}, "no picture 'abilites'; choose one of abilities,"),
        ("abilities", "p.jpg", {}, "must end with .png or .svg"),
        ("abilities", "p.png", {"dim": 2}, "dim must be a whole number from 1 to 1, not 2"),
        ("curves", "p.png", {"items": ["x"]}, "item 'x' was not in the fit"),
        ("curves", "p.png", {"items": list("abcdefg")}, "1 to 6 items, not of 7"),
        ("heatmap", "p.png", {"by": "x"}, "'x'"),
        ("trace", "none/p.png", {}, "none"),
    ],
)
def test_what_cannot_be_drawn_is_refused(plain_fit, tmp_path, kind, file, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        plot(plain_fit, kind, tmp_path / file, **options)
    assert not list(tmp_path.iterdir())
