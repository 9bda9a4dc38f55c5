"""PSN-IRT's table: its baselines on small data, its parts, and what it prints."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.large_problems import sparse_problem
from benchmarks.psn_irt import run, scores
from benchmarks.psn_irt.bayes import Unknowns, cell_probability, log_joint
from benchmarks.psn_irt.parts import drawn_items, halves, restricted
from benchmarks.psn_irt.report import draw, markdown
from benchmarks.psn_irt.rows import ROWS, Outcome, Row
from benchmarks.psn_irt.stability import correlations
from benchmarks.psn_irt.variational import posterior_draws
from irtjax.data.cells import Cells
from irtjax.data.simulate import simulate
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
    found = scores.row_result(Row("made-up", "made up", n_seeds=3), problem, 3)
    share = problem.test.response[~is_copied].mean()
    assert found["outside"]["accuracy"] == {"mean": pytest.approx(share), "sd": pytest.approx(0)}
    assert math.isfinite(found["all"]["log_loss"]["mean"])  # although a probability was 1
    assert found["ranking"]["kendall_accuracy"]["mean"] == pytest.approx(1)
    assert found["kendall_halves"] == pytest.approx(1)
    assert (found["first_cpu_seconds"], found["cpu_seconds"]) == (2.0, 3.5)
    assert found["n_outside"] == np.sum(~is_copied)
    fixed = scores.row_result(Row("made-up", "made up", is_random=False), problem, 3)
    assert fixed["n_seeds"] == 1
    assert fixed["all"]["accuracy"]["sd"] is None


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
        "kendall_halves": 0.9,
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
    assert "1.0000 -> 1.0000" in text
    assert "| psn | 30% | .9000 (.8000) |  |" in text
    assert "| 1PL MAP (the aim) | .8041 | .8561 | .8601 | .4393 | .1396 |  |" in text
    assert "| PSN-IRT, published predictions | .7998 | .8538 | .8485 | .4537 |  |  |" in text
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


def test_rows_have_names_of_their_own_and_the_paper_has_six():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    papers = [row for row in ROWS if row.paper]
    assert len(papers) == 7  # PSN-IRT stands beside its own recipe and beside the defaults
