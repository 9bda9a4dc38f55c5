"""Accusations: one row each, with its evidence in numbers and in a sentence."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr
from scipy.stats import norm

from irtjax.audit.integrity.copies import Copy, Similarity, is_duplicate
from irtjax.audit.integrity.evidence import Evidence
from irtjax.audit.integrity.orders import Order
from irtjax.audit.integrity.shifts import Moved
from irtjax.audit.integrity.testing import adjusted
from irtjax.checks import counted
from irtjax.data.responses import ResponseMatrix

__all__ = ["ACCUSATION_COLUMNS", "accusation_table", "copied", "moved_rows", "out_of_order", "z_of"]

ACCUSATION_COLUMNS = (
    "kind",
    "model_id",
    "benchmark",
    "partner_id",
    "lag",
    "first_item",
    "last_item",
    "n_responses",
    "seen",
    "expected",
    "z",
    "p_adjusted",
    "explanation",
)
_TEXTS = (
    "kind",
    "model_id",
    "benchmark",
    "partner_id",
    "first_item",
    "last_item",
    "explanation",
)
_SHOWN_MEMBERS = 5
_NEWTON_STEPS = 6

Row = dict[str, Any]


def accusation_table(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows with all columns, text empty and numbers NaN where they do not apply."""
    told = list(rows)
    table = pd.DataFrame(
        {
            name: pd.Series(
                [row.get(name, "" if name in _TEXTS else None) for row in told],
                dtype="str" if name in _TEXTS else "object",
            )
            for name in ACCUSATION_COLUMNS
        }
    )
    for name in ("lag", "n_responses"):
        table[name] = table[name].astype("Int64")
    for name in ("seen", "expected", "z", "p_adjusted"):
        table[name] = table[name].astype(float)
    return table


def moved_rows(
    data: ResponseMatrix, moved: Sequence[Moved], evidence: Sequence[Evidence]
) -> list[Row]:
    """Each block of each shifted stretch."""
    rows = []
    for each in moved:
        lag, items = each.shift.lag, data.item_ids[each.order]
        side = "right" if lag > 0 else "left"
        for block in each.blocks:
            own = evidence[block.benchmark]
            at = np.flatnonzero(own.model == each.model)
            expected = float(own.main.expected[at[0]]) if len(at) else float("nan")
            where = f"{counted(abs(lag), 'item (column)', 'items (columns)')} to the {side}"
            said = (
                f"cells {items[block.first]} to {items[block.last]} belong {where}: there they "
                f"correlate {block.agreement:.2f} with the other models, here {block.in_place:.2f}"
            )
            rows.append(
                {
                    "kind": "shifted",
                    "model_id": data.model_ids[each.model],
                    "benchmark": own.benchmark.name,
                    "lag": lag,
                    "first_item": items[block.first],
                    "last_item": items[block.last],
                    "n_responses": block.last - block.first + 1,
                    "seen": block.agreement,
                    "expected": expected,
                    "z": block.z,
                    "p_adjusted": each.search.p,
                    "explanation": said,
                }
            )
    return rows


def out_of_order(
    data: ResponseMatrix, evidence: Evidence, was_moved: Sequence[int], n_blocks: int
) -> list[Row]:
    """Blocks of a benchmark that do not agree with the main order: alone, or with each other."""
    rows = []
    alone = evidence.is_out.copy()
    for order in evidence.orders:
        alone[order.member] = False
        rows += [_member_row(data, evidence, order, k, n_blocks) for k in range(len(order.member))]
    main = evidence.main
    for at in np.flatnonzero(alone | evidence.is_inverted):
        is_inverted = bool(evidence.is_inverted[at])
        expected = float((main.unguessed if is_inverted else main.expected)[at])
        after = " after its shift is undone" if int(evidence.model[at]) in was_moved else ""
        numbers = (
            f"correlation with the other models {main.seen[at]:.3f}, expected {expected:.2f}{after}"
        )
        said = (
            f"right where wrong is expected: {numbers}"
            if is_inverted
            else f"not in the order of the other models, nor shifted: {numbers}"
        )
        z = float(main.z_inverted[at] if is_inverted else main.z[at])
        rows.append(
            {
                "kind": "inverted" if is_inverted else "misordered",
                "model_id": data.model_ids[evidence.model[at]],
                "benchmark": evidence.benchmark.name,
                "n_responses": int(evidence.n_cells[at]),
                "seen": main.seen[at],
                "expected": expected,
                "z": z,
                "p_adjusted": float(adjusted(np.asarray(norm.cdf(z)), n_blocks)),
                "explanation": said,
            }
        )
    return rows


def copied(
    data: ResponseMatrix,
    copies: Sequence[Copy],
    similarity: Similarity,
    n_pairs: int,
    *,
    is_one: bool,
) -> list[Row]:
    """Copied blocks, each named with the block most like it, and models that are there twice.

    Args:
        data: the responses.
        copies: of all benchmarks.
        similarity: of the models, over all benchmarks.
        n_pairs: pairs of blocks that were compared.
        is_one: whether all items are one benchmark: who copied that copied all there is.
    """
    by_pair: dict[tuple[int, int], list[Copy]] = {}
    for copy in copies:
        by_pair.setdefault((copy.first, copy.second), []).append(copy)
    duplicates = {
        pair for pair, found in by_pair.items() if is_one or is_duplicate(found, similarity)
    }
    blocks: dict[tuple[int, str], tuple[Copy, int]] = {}
    models: dict[int, int] = {}
    for pair, found in by_pair.items():
        for model, partner in (pair, pair[::-1]):
            if pair in duplicates:
                best = models.get(model)
                if best is None or similarity.excess_of(model, partner) > similarity.excess_of(
                    model, best
                ):
                    models[model] = partner
                continue
            for copy in found:
                known = blocks.get((model, copy.benchmark))
                if known is None or copy.log_p < known[0].log_p:
                    blocks[model, copy.benchmark] = (copy, partner)
    rows = [_copy_row(data, model, *found, n_pairs) for (model, _), found in blocks.items()]
    for model, partner in sorted(models.items()):
        found = by_pair[min(model, partner), max(model, partner)]
        rows.append(_duplicate_row(data, model, partner, found, similarity, n_pairs, is_one))
    return rows


def _member_row(
    data: ResponseMatrix, evidence: Evidence, order: Order, k: int, n_blocks: int
) -> Row:
    at, main = int(order.member[k]), evidence.main
    names = [str(data.model_ids[evidence.model[i]]) for i in order.member if i != at]
    shown = ", ".join(names[:_SHOWN_MEMBERS])
    more = f" and {len(names) - _SHOWN_MEMBERS:,} more" if len(names) > _SHOWN_MEMBERS else ""
    said = (
        f"another order of items, shared with {shown}{more}: correlation with them "
        f"{order.seen[k]:.2f}, with the other models {main.seen[at]:.3f}"
    )
    # A weak model is expected to agree with nobody for sure; what it does with its group stands in.
    return {
        "kind": "other_order",
        "model_id": data.model_ids[evidence.model[at]],
        "benchmark": evidence.benchmark.name,
        "partner_id": names[0],
        "n_responses": int(evidence.n_cells[at]),
        "seen": main.seen[at],
        "expected": max(float(main.expected[at]), float(order.seen[k])),
        "z": order.z[k],
        "p_adjusted": float(adjusted(order.p[k], n_blocks)),
        "explanation": said,
    }


def _copy_row(data: ResponseMatrix, model: int, copy: Copy, partner: int, n_pairs: int) -> Row:
    said = (
        f"{copy.seen:,.0f} of {copy.n_common:,} responses differ from {data.model_ids[partner]}, "
        f"{copy.expected:,.0f} expected: one block is a copy"
    )
    return {
        "kind": "copied",
        "model_id": data.model_ids[model],
        "benchmark": copy.benchmark,
        "partner_id": data.model_ids[partner],
        "n_responses": copy.n_common,
        "seen": copy.seen,
        "expected": copy.expected,
        "z": z_of(copy.log_p),
        "p_adjusted": float(adjusted(np.exp(copy.log_p), n_pairs)),
        "explanation": said,
    }


def _duplicate_row(
    data: ResponseMatrix,
    model: int,
    partner: int,
    copies: Sequence[Copy],
    similarity: Similarity,
    n_pairs: int,
    is_one: bool,
) -> Row:
    seen, expected = similarity.seen[model, partner], similarity.expected[model, partner]
    log_p = sum(copy.log_p for copy in copies)
    said = (
        f"the same model as {data.model_ids[partner]}: {seen:,.0f} responses differ where "
        f"{expected:,.0f} are expected"
    )
    if not is_one:
        said += ", and as few in the other benchmarks when the most alike one is left out"
    return {
        "kind": "duplicated_model",
        "model_id": data.model_ids[model],
        "partner_id": data.model_ids[partner],
        "n_responses": sum(copy.n_common for copy in copies),
        "seen": float(seen),
        "expected": float(expected),
        "z": z_of(log_p),
        "p_adjusted": float(adjusted(np.exp(log_p), n_pairs)),
        "explanation": said,
    }


def z_of(log_p: float) -> float:
    """The standard normal quantile of a small probability given by its logarithm."""
    # Newton on log Phi from its tail's approximation; exp(log_p) would be 0 beyond -745.
    z = -np.sqrt(max(-2 * log_p, 1e-12))
    for _ in range(_NEWTON_STEPS):
        value = log_ndtr(z)
        slope = np.exp(-0.5 * z * z - 0.5 * np.log(2 * np.pi) - value)
        z -= (value - log_p) / slope
    return float(z)
