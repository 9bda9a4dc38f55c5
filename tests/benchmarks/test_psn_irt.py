"""PSN-IRT's table: its baselines on small data, its parts, and what it prints."""

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.environments import PeerFailed
from benchmarks.large_problems import sparse_problem
from benchmarks.problems import problem_w1
from benchmarks.psn_irt import run, scores
from benchmarks.psn_irt.bayes import Unknowns, cell_probability, log_joint
from benchmarks.psn_irt.parts import drawn_items, halves, restricted
from benchmarks.psn_irt.report import PUBLISHED, draw, markdown
from benchmarks.psn_irt.rows import ROWS, Outcome, Row
from benchmarks.psn_irt.stability import correlations
from benchmarks.psn_irt.variational import posterior_draws
from irtjax.data.cells import Cells
from irtjax.data.simulate import simulate
from irtjax.model.metrics import all_metrics
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit


@pytest.fixture(scope="module")
def problem() -> Any:
    return sparse_problem(n_models=30, n_items=200, density=0.5)


def test_the_joint_density_is_the_likelihood_and_normal_priors():
    rng = np.random.default_rng(0)
    ability, items = rng.normal(size=4), rng.normal(size=(4, 5))
    response = rng.integers(-1, 2, (4, 5))
    slope, difficulty = np.exp(items[0]), items[1]
    c = 1 / (1 + np.exp(-items[2]))
    d = c + (1 - c) / (1 + np.exp(-items[3]))
    p = c + (d - c) / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    expected = np.sum(np.log(np.where(response == 1, p, 1 - p))[response >= 0])
    prior = norm.logpdf(ability).sum()
    for row, mean, sd in zip(items, (0, 0, -1.5, 2.5), (0.5, 1.5, 1, 1), strict=True):
        prior += norm.logpdf(row, mean, sd).sum() + row.size * math.log(sd)
    prior += (ability.size + items.size) * 0.5 * math.log(2 * math.pi)
    unknowns = Unknowns(ability.astype(np.float32), items.astype(np.float32))
    assert float(log_joint(unknowns, response)) == pytest.approx(expected + prior, rel=1e-5)
    at = Cells(np.array([0, 3]), np.array([4, 1]), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(cell_probability([unknowns] * 2, at), p[[0, 3], [4, 1]], rtol=1e-5)


@pytest.mark.parametrize("is_amortised", [False, True])
def test_variational_rows_find_the_abilities(is_amortised: bool):
    drawn = simulate(ModelSpec("2pl"), n_models=30, n_items=200, seed=3)
    draws, bounds = posterior_draws(
        drawn.data.to_dense(), is_amortised=is_amortised, seed=0, n_steps=200
    )
    ability = np.mean([np.asarray(each.ability) for each in draws], axis=0)
    assert np.corrcoef(ability, drawn.truth.theta[:, 0])[0, 1] > 0.95
    assert bounds[-1] > bounds[0]


@pytest.mark.slow
def test_nuts_finds_the_abilities():
    pytest.importorskip("numpyro", reason="numpyro is the extra mcmc")
    from benchmarks.psn_irt.sampling import nuts_draws

    drawn = simulate(ModelSpec("2pl"), n_models=12, n_items=60, seed=3)
    draws, notes = nuts_draws(drawn.data.to_dense(), seed=0, n_warmup=100, n_samples=50)
    ability = np.mean([np.asarray(each.ability) for each in draws], axis=0)
    assert np.corrcoef(ability, drawn.truth.theta[:, 0])[0, 1] > 0.9
    assert notes["draws"] == 100


def test_a_problem_on_some_items_keeps_their_cells(problem: Any):
    items = drawn_items(problem.train.n_items, 50, seed=1)
    part = restricted(problem, items)
    assert part.train.item_ids.tolist() == problem.train.item_ids[items].tolist()
    np.testing.assert_array_equal(part.train.to_dense(), problem.train.to_dense()[:, items])
    kept = np.isin(problem.test.item_index, items)
    np.testing.assert_array_equal(items[part.test.item_index], problem.test.item_index[kept])
    np.testing.assert_array_equal(part.test.response, problem.test.response[kept])
    one, other = halves(7, seed=0)
    assert sorted([*one, *other]) == list(range(7))


def test_a_row_is_scored_on_all_cells_and_outside_the_copy(
    problem: Any, monkeypatch: pytest.MonkeyPatch
):
    accuracy = problem.train.totals("models")[1]
    is_copied = np.arange(len(problem.test)) % 2 == 0
    problem = dataclasses.replace(problem, is_copied=is_copied)

    def fitted(row: Row, part: Any, seed: int) -> Outcome:
        p = np.where(part.is_copied, 1.0, 0.5 + 0.1 * seed)
        return Outcome(p, accuracy, 2.0 + seed, {"seed": seed})

    monkeypatch.setattr(scores, "fitted", fitted)
    found = scores.row_result(Row("made-up", "made up", n_seeds=3), problem, 3, 2)
    share = problem.test.response[~is_copied].mean()
    assert found["outside"]["accuracy"] == {"mean": pytest.approx(share), "sd": pytest.approx(0)}
    assert math.isfinite(found["all"]["log_loss"]["mean"])  # although a probability was 1
    assert found["ranking"]["kendall_accuracy"]["mean"] == pytest.approx(1)
    assert found["kendall_halves"]["each"] == pytest.approx([1, 1])
    assert (found["first_cpu_seconds"], found["cpu_seconds"]) == (2.0, 3.5)
    assert found["n_outside"] == np.sum(~is_copied)
    fixed = scores.row_result(Row("made-up", "made up", is_random=False), problem, 3, 2)
    assert fixed["n_seeds"] == 1
    assert fixed["all"]["accuracy"]["sd"] is None


def _kendall(one: np.ndarray, other: np.ndarray) -> float:
    """Pairs in the same order less those in the other, as a share of all; without ties."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    return sum(np.sign((one[i] - one[j]) * (other[i] - other[j])) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("n_items", [None, 60])
def test_halves_are_of_several_splits_and_each_fit_has_a_seed_of_its_own(
    problem: Any, monkeypatch: pytest.MonkeyPatch, n_items: int | None
):
    fits = []

    def fitted(row: Row, part: Any, seed: int) -> Outcome:
        rank_by = np.random.default_rng(seed).normal(size=part.train.n_models)
        fits.append((seed, set(part.train.item_ids), rank_by))
        return Outcome(np.full(len(part.test), 0.5), rank_by, 1.0, {})

    monkeypatch.setattr(scores, "fitted", fitted)
    row = Row("made-up", "made up", n_items=n_items)
    found = scores.halves_result(row, problem, 3)["kendall_halves"]
    assert [seed for seed, _, _ in fits] == [0, 1, 2, 3, 4, 5]
    splits = list(zip(fits[::2], fits[1::2], strict=True))
    (whole,) = {frozenset(one | other) for (_, one, _), (_, other, _) in splits}
    assert len(whole) == (n_items or problem.train.n_items)
    for (_, one, _), (_, other, _) in splits:
        assert not one & other
        assert abs(len(one) - len(other)) <= 1
    assert len({frozenset(one) for (_, one, _), _ in splits}) == 3
    expected = [_kendall(one, other) for (_, _, one), (_, _, other) in splits]
    assert found["each"] == pytest.approx(expected)
    assert found["mean"] == pytest.approx(np.mean(expected))
    assert found["sd"] == pytest.approx(np.std(expected, ddof=1))
    # A whole run has the same.
    assert scores.row_result(row, problem, 1, 3)["kendall_halves"] == found


def test_a_fit_correlates_with_itself():
    fit = quiet_fit(simulate(ModelSpec("2pl"), n_models=20, n_items=60).data)
    found = correlations(fit, fit)
    assert set(found["pearson"]) == {"ability", "discrimination", "difficulty"}
    assert all(value == pytest.approx(1) for value in found["pearson"].values())


def test_parts_are_put_into_the_results_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run, "run_module", lambda *arguments: {"arguments": list(arguments)})
    path, said = tmp_path / "psn_irt.json", []
    run.measured(["psn-4pl", "epochs"], 2, path, said.append)
    results = run.measured(["mle"], None, path, said.append)
    assert said == ["psn_irt: psn-4pl", "psn_irt: epochs", "psn_irt: mle"]
    assert [row["name"] for row in results["rows"]] == ["mle", "psn-4pl"]
    assert results["rows"][1]["arguments"][1:] == ["psn-4pl", "--seeds", "2"]
    assert json.loads(path.read_text()) == results


def test_halves_alone_leave_the_other_columns_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, said = tmp_path / "psn_irt.json", []
    rows = [{"name": "mle", "all": 1}, {"name": "vi", "error": "no"}, {"name": "psn-4pl", "all": 2}]
    before = {"rows": [row | {"kendall_halves": 0} for row in rows], "stability": [3]}
    path.write_text(json.dumps(before))

    def run_module(_: str, part: str, *arguments: str) -> dict[str, Any]:
        if part == "mle":
            raise PeerFailed("no memory")
        return {"kendall_halves": list(arguments)}

    monkeypatch.setattr(run, "run_module", run_module)
    results = run.measured_halves(run.PARTS, 2, path, said.append)
    assert results["rows"][:2] == before["rows"][:2]
    halves_of = {"kendall_halves": ["--halves-only", "--seeds", "2"]}
    assert results["rows"][2] == before["rows"][2] | halves_of
    assert results["stability"] == [3]
    assert said == [
        "psn_irt: mle, halves",
        "psn_irt: mle stays as it was: no memory",
        "psn_irt: psn-4pl, halves",
    ]
    assert json.loads(path.read_text()) == results


def _row(name: str, paper: dict[str, float] | None) -> dict[str, Any]:
    metrics = {name: {"mean": 0.25, "sd": 0.001} for name in scores.METRICS}
    return {
        "name": name,
        "label": name,
        "paper": paper,
        "n_seeds": 5,
        "n_items": 2000,
        "is_subsample": name == "mcmc",
        "n_outside": 1234,
        "all": metrics,
        "outside": metrics,
        "ranking": {"kendall_accuracy": {"mean": 1.0, "sd": None}},
        "kendall_halves": {"mean": 0.9, "sd": 0.05, "each": [0.85, 0.95]},
        "cpu_seconds": 3.0,
        "first_cpu_seconds": 9.0,
    }


def test_tables_and_figure_say_the_papers_value_beside_ours(tmp_path: Path):
    pytest.importorskip("matplotlib")
    results = {
        "date": "2026-01-31",
        "rows": [
            _row("mcmc", {"accuracy": 0.7, "kendall_accuracy": 1.0}),
            _row("psn", None),
            {"name": "mle", "error": "no memory"},
        ],
        "stability": [
            {"name": "psn", "share": 0.3, "pearson": {"ability": 0.9}, "spearman": {"ability": 0.8}}
        ],
        "epochs": {"cpu_seconds": {"dense": 3.2}, "reference_cpu_seconds": {"PyTorch": 14.5}},
        "whole-fit": {"first": {"wall_seconds": 50.0, "cpu_seconds": 40.0}},
    }
    text = markdown(results)
    assert "| mcmc, 2,000 items | .7000 -> .2500 (.0010) | .2500 (.0010) |" in text
    assert "1.0000 -> 1.0000 | .9000 (.0500) | 2 | 3 | 9 |" in text
    assert "halves are fitted with seeds 2k and 2k + 1" in text
    assert "| psn | 30% | .9000 (.8000) |  |" in text
    assert "| 1PL MAP (the aim) | .8041 | .8561 | .8601 | .4393 | .1396 |  |" in text
    assert "| PSN-IRT, published predictions | .7998 | .8538 | .8485 | .4537 | .1443 |  |" in text
    assert "Spearman's, beside it" in text
    assert "- mle: no memory" in text
    assert "dense 3.2, PyTorch 14.5" in text
    assert draw(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert not draw({"date": ""}, tmp_path / "none.png")


ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
# What the README's table calls the rows.
QUOTED = {
    "irtjax, 1 dim, without `--group`": "default",
    "`psn`, 4PL, mean of 5 seeds (sd)": "psn-4pl",
    "PSN-IRT's recipe": "psn-published",
    "joint maximum likelihood, 4PL": "mle",
    "mean-field variational inference, 4PL": "vi",
    "amortised (VIBO), 4PL": "vibo",
    "NUTS, 4PL, on 2,000 of the items": "mcmc",
}


def test_the_committed_table_is_of_the_committed_results():
    results = json.loads((RESULTS / "psn_irt.json").read_text())
    assert (RESULTS / "psn_irt.md").read_text() == markdown(results)


@pytest.mark.parametrize("start", list(QUOTED))
def test_the_readme_quotes_the_results(start: str):
    results = json.loads((RESULTS / "psn_irt.json").read_text())
    row = next(row for row in results["rows"] if row["name"] == QUOTED[start])
    lines = (ROOT / "README.md").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"| {start}"))
    *quoted, outside = (cell.strip() for cell in line.strip("|").split("|")[1:])
    means = [f"{row['all'][name]['mean']:.4f}" for name in ("accuracy", "f1", "auc", "log_loss")]
    expected = [text if text >= "1" else text[1:] for text in means]
    assert [cell.split()[0] for cell in quoted] == expected
    means = [f"{row['outside'][name]['mean']:.4f}" for name in ("accuracy", "log_loss")]
    assert outside == ", ".join(text if text >= "1" else text[1:] for text in means)


def test_the_readme_quotes_the_taus_of_halves():
    results = json.loads((RESULTS / "psn_irt.json").read_text())
    halves_of = {row["name"]: row["kendall_halves"] for row in results["rows"]}
    assert {len(found["each"]) for found in halves_of.values()} == {scores.N_SPLITS}
    text = " ".join((ROOT / "README.md").read_text().split())
    said = text.split("Kendall's tau of the two rankings of the models is ")[1].split("recipe.")[0]
    for quoted, name in zip(
        said.split(", "), ("effects", "default", "psn-4pl", "psn-published"), strict=True
    ):
        mean, sd = (float(word.strip("()")) for word in quoted.split()[:2])
        assert (mean, sd) == pytest.approx(
            (halves_of[name]["mean"], halves_of[name]["sd"]), abs=6e-5
        )


def test_rows_have_names_of_their_own_and_the_paper_has_six():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    papers = [row for row in ROWS if row.paper]
    assert len(papers) == 7  # PSN-IRT stands beside its own recipe and beside the defaults


@pytest.mark.shared
def test_the_published_rows_are_the_published_predictions_scored(shared_dir: Path):
    problem = problem_w1(shared_dir)
    with np.load(shared_dir / "data" / "psn_irt_test_pred.npz") as found:
        order = np.lexsort((found["row"], found["col"]))
        named = {name: found[name][order] for name in ("p_psn", "p_deep")}
    assert problem.is_copied is not None
    everything = np.ones(len(problem.test), bool)
    for cells, part in (("all", everything), ("outside", ~problem.is_copied)):
        for values, p in zip(PUBLISHED[cells].values(), named.values(), strict=True):
            scored = all_metrics(p[part], problem.test.response[part])
            names = ("accuracy", "f1", "auc", "log_loss", "brier")
            assert tuple(round(scored[name], 4) for name in names) == values
