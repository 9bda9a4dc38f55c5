"""Shifted rows: found by the best lag of blocks that fit nowhere, and undone."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from irtjax.audit.integrity.blocks import Columns, without_trend
from irtjax.audit.integrity.evidence import Evidence
from irtjax.audit.integrity.lags import Lag, Shift, best_lag, lag_agreement, shift_of
from irtjax.audit.integrity.pairs import standardised
from irtjax.audit.integrity.testing import FALSE_ALARMS
from irtjax.data.checks import MISSING

__all__ = ["Moved", "ShiftedBlock", "find_shifts", "undone"]

_IN_PLACE = 3.0  # standard errors of agreement that make a block fit where it is
_HALF = 0.5
_FEWEST_CELLS = 20
_OWN_EVIDENCE = 4.0  # standard errors at a lag that other blocks have shown
# The tail of the best of so many lags is extrapolated, and may be heavier than it looks.
_FALSE_ALARMS = FALSE_ALARMS / 10
_DETECTABLE = 6.0  # standard errors; what the best of some 100,000 lags reaches is about 4.5


@dataclasses.dataclass(frozen=True)
class ShiftedBlock:
    """A block of which cells belong to other columns.

    Attributes:
        benchmark: place among the benchmarks.
        first: column of its first cell that does.
        last: of its last.
        z: agreement of these cells at the lag, in standard errors.
        agreement: as a correlation.
        in_place: correlation where they stand.
    """

    benchmark: int
    first: int
    last: int
    z: float
    agreement: float
    in_place: float


@dataclasses.dataclass(frozen=True)
class Moved:
    """A shifted stretch of a row and the blocks it runs through.

    Attributes:
        model: row of the matrix.
        shift: lag and stretch, in places of `order`.
        order: columns of the matrix by benchmark.
        search: what the search found in the block with the clearest evidence.
        blocks: with their own evidence, or between such blocks.
    """

    model: int
    shift: Shift
    order: Int[np.ndarray, " items"]
    search: Lag
    blocks: list[ShiftedBlock]


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Standardised rows and the others' weighted mean, in the order of the benchmarks."""

    reference: Float[np.ndarray, " items"]
    row: dict[int, Float[np.ndarray, " items"]]
    bounds: Int[np.ndarray, " edges"]
    order: Int[np.ndarray, " items"]


def find_shifts(
    columns: Columns, evidence: Sequence[Evidence]
) -> tuple[list[Moved], dict[tuple[int, int], Lag]]:
    """Search the best lag of every block that does not fit where it is.

    Returns:
        The shifted stretches; and what the search found for each block, by model and place of the
        benchmark.
    """
    searched = {
        (int(each.model[at]), g)
        for g, each in enumerate(evidence)
        for at in np.flatnonzero(_is_searched(each))
    }
    if not searched:
        return [], {}
    rows = _rows(columns, evidence, sorted({model for model, _ in searched}))
    found: dict[tuple[int, int], Lag] = {}
    for model, g in sorted(searched):
        block = slice(int(rows.bounds[g]), int(rows.bounds[g + 1]))
        reference = _others(rows, evidence, model)
        found[model, g] = best_lag(rows.row[model], reference, block, len(searched))
    moved = [
        each
        for model in rows.row
        for each in _shifts_of(
            rows, evidence, model, {g: lag for (i, g), lag in found.items() if i == model}
        )
    ]
    return moved, found


def undone(columns: Columns, moved: Sequence[Moved]) -> Columns:
    """The responses with shifted cells back in their columns.

    Cells of the stretch that nothing is moved to become missing; cells outside it keep what they
    have.
    """
    rows: dict[int, Float[np.ndarray, " items"]] = {}
    for each in moved:
        row = rows.get(each.model, columns.row(each.model))[each.order]
        shift, place = each.shift, np.arange(each.shift.start, each.shift.stop)
        new = row.copy()
        new[place] = MISSING
        target = place + shift.lag
        inside = (target >= 0) & (target < len(row))
        target, source = target[inside], place[inside]
        is_free = new[target] == MISSING
        new[target[is_free]] = row[source[is_free]]
        back = np.empty_like(new)
        back[each.order] = new
        rows[each.model] = back
    return columns.replaced(rows)


def _is_searched(each: Evidence) -> Bool[np.ndarray, " models"]:
    """Blocks that do not fit, in benchmarks where a search would tell the right place."""
    main = each.main
    safe = np.where(main.error > 0, main.error, np.inf)
    z = main.seen / safe
    inside = main.is_tested & (main.weight > 0)
    if not inside.any() or np.median(z[inside]) < _DETECTABLE:
        return np.zeros(len(z), bool)
    return main.is_tested & ((z < _IN_PLACE) | (main.seen < _HALF * main.expected))


def _rows(columns: Columns, evidence: Sequence[Evidence], models: Sequence[int]) -> _Rows:
    sizes = [len(each.benchmark.items) for each in evidence]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    reference = np.zeros(bounds[-1])
    row = {model: np.zeros(bounds[-1], np.float32) for model in models}
    for g, each in enumerate(evidence):
        at = {int(model): k for k, model in enumerate(each.model)}
        mine = [model for model in models if model in at]
        places = [at[model] for model in mine]
        for part, block in columns.chunks(each.benchmark.items):
            response = block[each.model]
            x = standardised(response, each.share, each.spread)
            x = without_trend(x, response != MISSING)
            inside = slice(bounds[g] + part.start, bounds[g] + part.stop)
            reference[inside] = each.main.weight @ x
            for model, place in zip(mine, places, strict=True):
                row[model][inside] = x[place]
    return _Rows(reference, row, bounds, np.concatenate([e.benchmark.items for e in evidence]))


def _others(rows: _Rows, evidence: Sequence[Evidence], model: int) -> Float[np.ndarray, " items"]:
    """The reference without the model's own part, of unit variance in each benchmark."""
    reference = rows.reference.copy()
    for g, each in enumerate(evidence):
        part = slice(int(rows.bounds[g]), int(rows.bounds[g + 1]))
        at = np.flatnonzero(each.model == model)
        if len(at):
            reference[part] -= each.main.weight[at[0]] * rows.row[model][part]
        spread = float(np.sqrt(np.mean(np.square(reference[part]))))
        reference[part] = reference[part] / spread if spread > 0 else 0
    return reference


def _shifts_of(
    rows: _Rows, evidence: Sequence[Evidence], model: int, lags: dict[int, Lag]
) -> list[Moved]:
    """The stretches of one row, the clearest first, each with the blocks it runs through."""
    reference, row = _others(rows, evidence, model), rows.row[model].astype(np.float64)
    open_ = {g: lag for g, lag in lags.items() if lag.lag != 0 and lag.p <= _FALSE_ALARMS}
    found: list[Moved] = []
    while open_:
        best = max(open_, key=lambda g: open_[g].z)
        search = open_.pop(best)
        shift = shift_of(row, reference, search.lag)
        blocks = _blocks_of(rows, row, reference, shift)
        if best not in [block.benchmark for block in blocks]:
            continue
        found.append(Moved(model, shift, rows.order, search, blocks))
        for block in blocks:
            open_.pop(block.benchmark, None)
        row[shift.start : shift.stop] = 0
    return found


def _blocks_of(
    rows: _Rows,
    row: Float[np.ndarray, " items"],
    reference: Float[np.ndarray, " items"],
    shift: Shift,
) -> list[ShiftedBlock]:
    """The stretch's blocks from the first to the last that agrees at the lag by itself."""
    blocks = []
    for g in range(len(rows.bounds) - 1):
        first = max(int(rows.bounds[g]), shift.start)
        stop = min(int(rows.bounds[g + 1]), shift.stop)
        if stop - first < _FEWEST_CELLS:
            continue
        part = slice(first, stop)
        agreement, z = lag_agreement(row, reference, part, shift.lag)
        in_place, _ = lag_agreement(row, reference, part, 0)
        blocks.append(ShiftedBlock(g, first, stop - 1, z, agreement, in_place))
    own = [k for k, block in enumerate(blocks) if block.z >= _OWN_EVIDENCE]
    return blocks[own[0] : own[-1] + 1] if own else []
