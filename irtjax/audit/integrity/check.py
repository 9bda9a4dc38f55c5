"""`audit_data`: which blocks of responses cannot be what they say they are."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.audit.integrity.accusations import (
    accusation_table,
    copied,
    moved_rows,
    out_of_order,
)
from irtjax.audit.integrity.blocks import Benchmark, Columns, benchmarks_of, chosen_group
from irtjax.audit.integrity.copies import Similarity
from irtjax.audit.integrity.evidence import Evidence, gather_evidence
from irtjax.audit.integrity.fillings import filled_rows
from irtjax.audit.integrity.pairs import FEWEST_CELLS, totals
from irtjax.audit.integrity.published import (
    TOLERANCE,
    check_published,
    published_rows,
    published_table,
)
from irtjax.audit.integrity.shifts import Moved, find_shifts, undone
from irtjax.audit.integrity.tables import block_table, model_table
from irtjax.checks import check_number
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError
from irtjax.io import write_json, write_table
from irtjax.io.files import PathLike

__all__ = ["DataAudit", "audit_data"]

_MOST_MODELS = 20_000  # matrices of all pairs: 1.6 GB each


@dataclasses.dataclass(frozen=True, eq=False)
class DataAudit:
    """What the responses say about themselves.

    Attributes:
        accusations: a row an accusation: `kind`, `model_id`, `benchmark`, `partner_id`, `lag`
            (how many items, columns of the matrix, to the right the cells belong), `first_item`,
            `last_item`, `n_responses`, `seen` and `expected` (what is counted depends on the kind,
            the explanation says it), `z`, `p_adjusted` (for the number of tests; NaN where nothing
            is left to chance), `explanation`.
        blocks: a row a model and benchmark: counts, agreement with the other models, what is
            expected of it, best lag, closest model, `accused_of`.
        models: a row a model: `n_responses`, `evidence`, the share of a model that it counts as,
            and the model it is most alike.
        published: declared scores beside the data's, None where none were given; a score without
            responses has `n_responses` 0.
    """

    accusations: pd.DataFrame
    blocks: pd.DataFrame
    models: pd.DataFrame
    published: pd.DataFrame | None = None

    @property
    def not_found(self) -> tuple[str, ...]:
        """Declared scores whose blocks the data lack, in words."""
        if self.published is None:
            return ()
        absent = self.published[self.published["n_responses"] == 0]
        return tuple(f"{row.model_id} in {row.benchmark}" for row in absent.itertuples())

    @property
    def effective_models(self) -> float:
        """How many models with responses there are if copies of one count as one."""
        return float(self.models["evidence"].sum())

    @property
    def n_answering(self) -> int:
        """How many models have responses."""
        return int((self.models["n_responses"] > 0).sum())

    def save(self, folder: PathLike) -> None:
        """Write `accusations.csv`, `blocks.csv`, `models.csv`, `published.csv` and `check.json`.

        Args:
            folder: made where it is not there; `published.csv` is written where scores were
                declared.

        Raises:
            InputError: a file cannot be written.
        """
        folder, written = Path(folder), list[str]()
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("accusations", "blocks", "models", "published"):
            table = getattr(self, name)
            if table is not None:
                write_table(table, folder / f"{name}.csv")
                written.append(f"{name}.csv")
        summary = {
            "n_blocks": len(self.blocks),
            "accusations": self.accusations["kind"].value_counts(sort=False).to_dict(),
            "n_models": len(self.models),
            "models_with_responses": self.n_answering,
            "effective_models": self.effective_models,
            "scores_without_responses": list(self.not_found),
            "files": [*written, "check.json"],
        }
        write_json(summary, folder / "check.json")


@dataclasses.dataclass(frozen=True, eq=False)
class _Counts:
    """Observed cells and sums of responses of each block, and how many tests they make."""

    n_cells: np.ndarray
    total: np.ndarray

    @property
    def n_blocks(self) -> int:
        return int(np.sum(self.n_cells >= FEWEST_CELLS))

    @property
    def n_pairs(self) -> int:
        n = np.sum(self.n_cells >= FEWEST_CELLS, axis=0)
        return int(np.sum(n * (n - 1) // 2))


def audit_data(
    data: ResponseMatrix,
    *,
    group: str | None = None,
    published: pd.DataFrame | None = None,
    tolerance: float = TOLERANCE,
) -> DataAudit:
    """Find shifted rows, misordered, inverted, copied and filled blocks, and models given twice.

    A block is what one model answered of one benchmark. Blocks are compared with each other and
    with no fitted model: a block in its place correlates with the other models' blocks, the more
    the items differ in easiness. What is expected of it follows from what models of its accuracy
    reach; accused is what certainly stays below a third of that (a block) or differs in less than a
    third of the cells expected (a copy). Blocks that fit nowhere are searched for at every lag.
    Items of a benchmark are taken in the order of the matrix's columns; weights are not used.

    Args:
        data: the responses.
        group: column of item metadata that names the benchmark; `none` for all items as one; None
            for the column `benchmark`, where each item has a value in it (where only some have, it
            is not used, with an `IrtjaxWarning`), and all items as one where there is no such
            column.
        published: declared averages, columns `model_id`, `benchmark`, `score` (shares, or
            percentages where any exceeds 1).
        tolerance: how far a published score may be off, as a share, without being accused. Scores
            of models or benchmarks that the data lack are warned of (`IrtjaxWarning`).

    Raises:
        InputError: no such column, fewer than three models, published scores that are none or all
            of other models or benchmarks, a tolerance that is no share.

    >>> from irtjax.data.simulate import simulate
    >>> from irtjax.model.spec import ModelSpec
    >>> data = simulate(ModelSpec(), n_models=8, n_items=6000, n_benchmarks=3, seed=1).data
    >>> twisted = data.dense.copy()
    >>> twisted[2, 2000:4000] = twisted[2, 2000:4000][::-1]
    >>> found = audit_data(ResponseMatrix.from_dense(twisted, item_metadata=data.item_metadata))
    >>> found.accusations[["kind", "model_id", "benchmark"]].values.tolist()
    [['misordered', 'model-2', 'benchmark-1']]
    """
    check_matrix(data, "audit_data")
    check_number("tolerance", tolerance, 0, 1)
    _check_models(data)
    declared = None if published is None else check_published(published)
    benchmarks, columns = benchmarks_of(data, chosen_group(data, group)), Columns(data)
    counts = _counts(columns, benchmarks)
    similarity = Similarity(data.n_models)
    evidence = [
        gather_evidence(
            columns,
            benchmark,
            n_blocks=counts.n_blocks,
            n_pairs=counts.n_pairs,
            similarity=similarity,
        )
        for benchmark in benchmarks
    ]
    moved, lags = find_shifts(columns, evidence)
    in_place = _in_place(columns, evidence, moved, counts)
    rows = moved_rows(data, moved, evidence)
    for each in in_place:
        rows += out_of_order(data, each, [shift.model for shift in moved], counts.n_blocks)
    copies = [copy for each in evidence for copy in each.copies]
    rows += copied(data, copies, similarity, counts.n_pairs, is_one=len(benchmarks) == 1)
    rows += filled_rows(data, columns, benchmarks, counts.n_cells, counts.total)
    table = None
    if declared is not None:
        sizes = [(benchmark.name, len(benchmark.items)) for benchmark in benchmarks]
        table = published_table(
            declared, data.model_ids, sizes, counts.n_cells, counts.total, tolerance
        )
        rows += published_rows(table)
    accusations = accusation_table(rows)
    return DataAudit(
        accusations,
        block_table(data, evidence, lags, counts.n_cells, counts.total, accusations),
        model_table(data, similarity),
        table,
    )


def _check_models(data: ResponseMatrix) -> None:
    if data.n_models < 3:
        raise InputError(
            f"blocks are judged by the other models, and there are {data.n_models} models; "
            "give at least 3"
        )
    if data.n_models > _MOST_MODELS:
        raise InputError(
            f"all pairs of {data.n_models:,} models do not fit into memory; audit at most "
            f"{_MOST_MODELS:,} models at a time"
        )


def _counts(columns: Columns, benchmarks: list[Benchmark]) -> _Counts:
    parts = [totals(columns, benchmark)[:2] for benchmark in benchmarks]
    return _Counts(np.stack([n for n, _ in parts], 1), np.stack([total for _, total in parts], 1))


def _in_place(
    columns: Columns, evidence: list[Evidence], moved: list[Moved], counts: _Counts
) -> list[Evidence]:
    """The evidence with shifts undone: only benchmarks that a stretch left or came to change."""
    if not moved:
        return evidence
    repaired = undone(columns, moved)
    bounds = np.cumsum([0, *(len(each.benchmark.items) for each in evidence)])
    touched = set()
    for each in moved:
        shift = each.shift
        for start, stop in (
            (shift.start, shift.stop),
            (shift.start + shift.lag, shift.stop + shift.lag),
        ):
            inside = (bounds[1:] > start) & (bounds[:-1] < stop)
            touched |= set(np.flatnonzero(inside).tolist())
    return [
        gather_evidence(
            repaired,
            each.benchmark,
            n_blocks=counts.n_blocks,
            n_pairs=counts.n_pairs,
            similarity=None,
        )
        if g in touched
        else each
        for g, each in enumerate(evidence)
    ]
