"""`irtjax demo`: two abilities found in invented data, beside the truth."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.progress import shown_progress
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_files, show_fit, show_heldout, show_models, show_next
from irtjax.cli.tables import plain_table

if TYPE_CHECKING:
    from irtjax.data.simulate import Simulated
    from irtjax.fit.result import FitResult

__all__ = ["demo"]

_FOLDER = "irtjax-demo"
_SHARE = 0.1
# Benchmark effects are not in these data, but with `group` each benchmark also has an item
# distribution of its own: held-out log-loss .4683, without .4719; the truth has .4562.
_GROUP = "benchmark"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder to write the run to; irtjax-demo without, or irtjax-demo-2 and so on.",
        ),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    no_cache: options.NoCache = False,
) -> None:
    """Fit an invented evaluation whose truth is known: 100 models, 34,000 items, two abilities.

    Example: irtjax demo --out demo
    """
    from irtjax.data.demo import demo_data
    from irtjax.data.splits import holdout
    from irtjax.evaluate.heldout import heldout_table, with_heldout
    from irtjax.fit.api import fit
    from irtjax.model.spec import ModelSpec

    run = RunFolder(_fresh_folder() if out is None else out, force=force)
    output = console()
    made = demo_data(seed)
    train, cells = holdout(made.data, _SHARE, seed=seed)
    lines(
        output,
        "Data",
        f"{train.n_models:,} invented models x {train.n_items:,} items in "
        f"{len(made.truth.benchmarks)} benchmarks: {train.n_responses:,} responses",
        f"and {len(cells):,} held out; two true abilities, reasoning and safety",
    )
    if not no_cache:
        use_compilation_cache()
    with shown_progress(quiet=False) as on_look:
        result = fit(train, ModelSpec("2pl", dims=2), group=_GROUP, seed=seed, on_look=on_look)
    result = with_heldout(result, cells, chosen=f"holdout {_SHARE}")
    run.write(result.save)
    show_fit(result, output)
    oracle = heldout_table({"oracle": made.truth.cell_probability(cells)}, cells)["oracle"]
    show_heldout(result, output, ("the true parameters", oracle))
    names = _show_abilities(result, made, output)
    title = "What each benchmark measures, with the mean slopes of its items"
    show_table(output, title, _benchmark_table(result, names))
    show_models(result, output, names)
    show_files(run.path, output)
    show_next(output, "predict", run.path, "PAIRS.csv", "--out", "FILE.csv")


def _fresh_folder() -> Path:
    """The first of irtjax-demo, irtjax-demo-2, ... that is not there."""
    names = itertools.chain([_FOLDER], (f"{_FOLDER}-{k}" for k in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def _show_abilities(fit: "FitResult", made: "Simulated", output: Console) -> list[str]:
    """Say how well each ability is recovered; returns the true ability of each dim."""
    import numpy as np

    from irtjax.data.demo import DEMO_ABILITIES

    found = np.asarray(fit.parameters.ability, np.float64)
    dims = found.shape[1]
    correlation = np.corrcoef(found.T, made.truth.theta.T)[:dims, dims:]
    best = max(
        itertools.permutations(range(dims)),
        key=lambda order: sum(abs(correlation[k, order[k]]) for k in range(dims)),
    )
    table = plain_table(["dim", "is the true"], ["correlation"])
    for k in range(dims):
        table.add_row(f"dim {k + 1}", DEMO_ABILITIES[best[k]], f"{correlation[k, best[k]]:.4f}")
    show_table(output, "Abilities found", table)
    return [DEMO_ABILITIES[k] for k in best]


def _benchmark_table(fit: "FitResult", names: list[str]) -> Table:
    """Which ability each benchmark measures, and whether it rises with it."""
    items = fit.item_parameters()
    dims = range(1, len(names) + 1)
    loading = [f"dim{k}_loading" for k in dims]
    slope = [f"dim{k}_slope" for k in dims]
    squared = (items[loading] ** 2).groupby(items[_GROUP], sort=False).mean()
    mean = items[slope].groupby(items[_GROUP], sort=False).mean()
    n_items = items.groupby(_GROUP, sort=False).size()
    table = plain_table(
        ["benchmark", "measures"],
        ["items", *names],
    )
    for benchmark in n_items.index:
        major = int(squared.loc[benchmark].to_numpy().argmax())
        slopes = mean.loc[benchmark].to_numpy()
        falls = ", falls with it" if slopes[major] < 0 else ""
        table.add_row(
            str(benchmark),
            f"{names[major]}{falls}",
            f"{n_items[benchmark]:,}",
            *(f"{value:.2f}" for value in slopes),
        )
    return table
