"""How often clean blocks are accused, and from which size on faults are found.

    python -m benchmarks integrity

Clean matrices of the shape of PSN-IRT's (12 models x 41,871 items in 11 benchmarks), and others,
are drawn in many ways and audited; what is accused is a false alarm. Then one fault of each kind
is planted in the second of four benchmarks (the others have 1,000, 1,000 and 500 items) of 12
models, two of them weak; `part_filled` is 40% of the block, of 0 and of 1 in turn.
"""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from irtjax.audit.integrity.check import audit_data
from irtjax.data.responses import ResponseMatrix

__all__ = ["CASES", "FAULTS", "run", "table"]

PSN_IRT = (295, 6511, 3000, 198, 1319, 10042, 164, 5000, 500, 14042, 800)
_THIRTY = (30,) * 44
_MIXED = (30, 100, 300, 1000, 30, 100, 300, 1000)
SIZES = (50, 100, 200, 400, 800, 1600, 3200)
FAULTS = ("misordered", "inverted", "other_order", "copied", "filled", "part_filled", "shifted")
_FILLED_PART = 0.4
_REPLICATIONS = 20
_OTHERS = (1000, 1000, 500)
_LAG = 7
_ORDER_MEMBERS = (1, 3, 5)
_FAULTY, _ORIGINAL = 3, 4
_ITEMS_A_SUBJECT = 150
_MODELS_A_FAMILY = 3
_N_OPTIONS = 4
_N_TRIES = 5


@dataclasses.dataclass(frozen=True)
class Case:
    """How clean data are drawn.

    Attributes:
        n_models: rows.
        sizes: items of each benchmark.
        dims: abilities.
        guessing: right answers of who knows nothing, in 60% of the benchmarks.
        n_weak: models 1.5 to 3.5 standard deviations below the others.
        is_varied: benchmarks' mean easiness is uniform(-4, 4), else normal(0, .7).
        effect_sd: of model x benchmark effects, logits.
        subject_sd: of model x subject effects, 150 items a subject.
        family_sd: of what three models at a time have in common at each item.
        n_constant: models that answer the same option everywhere.
        missing: share of the cells.
        easiness_sd: of items within a benchmark.
        negative_share: of the items' slopes.
        is_fraction: means of 5 tries.
    """

    n_models: int = 12
    sizes: tuple[int, ...] = PSN_IRT
    dims: int = 1
    guessing: float = 0.0
    n_weak: int = 0
    is_varied: bool = False
    effect_sd: float = 0.0
    subject_sd: float = 0.0
    family_sd: float = 0.0
    n_constant: int = 0
    missing: float = 0.0
    easiness_sd: float = 1.5
    negative_share: float = 0.05
    is_fraction: bool = False


_HARD = Case(dims=2, guessing=0.25, n_weak=5, effect_sd=1.0, is_varied=True)
CASES: dict[str, Case] = {
    "one ability": Case(),
    "two abilities": Case(dims=2),
    "three abilities, 20% falling items": Case(dims=3, negative_share=0.2),
    "guessing, four weak models": Case(guessing=0.25, n_weak=4),
    "easy and hard benchmarks": Case(is_varied=True, effect_sd=0.7),
    "six of twelve models weak": Case(n_weak=6, effect_sd=1.0),
    "two abilities, guessing, weak, easy and hard": _HARD,
    "44 benchmarks of 30 items": Case(sizes=_THIRTY),
    "44 of 30 items, guessing, weak, easy and hard": dataclasses.replace(
        _HARD, sizes=_THIRTY, dims=1
    ),
    "subjects": Case(subject_sd=1.0, guessing=0.25, n_weak=3),
    "families of models": Case(family_sd=1.5, dims=2),
    "close families, weak models": Case(family_sd=2.5, n_weak=4, guessing=0.25),
    "four models answer one option": Case(guessing=0.25, n_constant=4, n_weak=5),
    "half of the cells missing": Case(missing=0.5, dims=2, is_varied=True),
    "nine of ten cells missing": Case(missing=0.9),
    "fractions": Case(is_fraction=True, dims=2, guessing=0.25),
    "items alike, 30% falling": Case(easiness_sd=0.3, dims=2, negative_share=0.3),
    "100 models": dataclasses.replace(_HARD, n_models=100, sizes=_MIXED, n_weak=30),
    "4 models": Case(n_models=4, dims=2, is_varied=True),
    "3 models": Case(n_models=3, is_varied=True, effect_sd=1.0, guessing=0.25),
}


def drawn(case: Case, seed: int) -> ResponseMatrix:
    """Clean responses."""
    rng = np.random.default_rng(seed)
    n, n_groups = case.n_models, len(case.sizes)
    group = np.repeat(np.arange(n_groups), case.sizes)
    logit = _ability(case, rng) @ _slope(case, rng, group).T
    level = rng.uniform(-4, 4, n_groups) if case.is_varied else rng.normal(0, 0.7, n_groups)
    logit += level[group] + rng.normal(0, case.easiness_sd, len(group))
    logit += rng.normal(0, case.effect_sd, (n, n_groups))[:, group]
    subject = np.arange(len(group)) // _ITEMS_A_SUBJECT
    logit += rng.normal(0, case.subject_sd, (n, subject.max() + 1))[:, subject]
    family = np.arange(n) // _MODELS_A_FAMILY
    if case.family_sd:
        logit += rng.normal(0, case.family_sd, (family.max() + 1, len(group)))[family]
    floor = np.where(rng.random(n_groups) < 0.6, case.guessing, 0.0)[group]
    p = floor + (1 - floor) / (1 + np.exp(-logit))
    if case.is_fraction:
        response = rng.binomial(_N_TRIES, p).astype(np.float32) / _N_TRIES
    else:
        response = (rng.random(p.shape) < p).astype(np.int8)
    key = rng.integers(0, _N_OPTIONS, len(group))
    for model in range(case.n_constant):
        response[model] = np.where(floor > 0, key == model % _N_OPTIONS, response[model])
    if case.missing:
        response = np.where(rng.random(p.shape) < case.missing, -1, response)
    return _matrix(response, group)


def planted(fault: str, size: int, seed: int) -> tuple[ResponseMatrix, set[tuple[str, str]]]:
    """Data with one fault, and the blocks that have it."""
    case = Case(
        sizes=(_OTHERS[0], size, *_OTHERS[1:]), dims=2, n_weak=2, effect_sd=0.5, is_varied=False
    )
    clean = drawn(case, seed)
    response, rng = clean.to_dense().copy(), np.random.default_rng(seed)
    block = slice(_OTHERS[0], _OTHERS[0] + size)
    models = [_FAULTY]
    mine = response[_FAULTY, block].copy()
    order = rng.permutation(size)
    match fault:
        case "misordered":
            response[_FAULTY, block] = mine[order]
        case "inverted":
            response[_FAULTY, block] = 1 - mine
        case "other_order":
            models = list(_ORDER_MEMBERS)
            for model in models:
                response[model, block] = response[model, block][order]
        case "copied":
            models = [_FAULTY, _ORIGINAL]
            response[_FAULTY, block] = response[_ORIGINAL, block]
        case "filled":
            response[_FAULTY, block] = 0
        case "part_filled":
            start = block.start + int(rng.integers(0, int((1 - _FILLED_PART) * size)))
            response[_FAULTY, start : start + int(_FILLED_PART * size)] = seed % 2
        case "shifted":
            response[_FAULTY, block] = response[_FAULTY, block.start + _LAG : block.stop + _LAG]
    blocks = {(f"model-{model}", "b1") for model in models}
    return _matrix(response, np.repeat(np.arange(len(case.sizes)), case.sizes)), blocks


def false_alarms(case: Case, n_runs: int) -> dict[str, Any]:
    """Blocks, and how many of them are accused of what."""
    start, n_blocks = time.process_time(), 0
    kinds: dict[str, int] = {}
    n_accused = 0
    for seed in range(n_runs):
        audit = audit_data(drawn(case, 1000 + seed))
        n_blocks += len(audit.blocks)
        n_accused += int((audit.blocks["accused_of"] != "").sum())
        for kind, count in audit.accusations["kind"].value_counts().items():
            kinds[str(kind)] = kinds.get(str(kind), 0) + int(count)
    seconds = time.process_time() - start
    return {"blocks": n_blocks, "accused": n_accused, "kinds": kinds, "cpu_seconds": seconds}


def power(fault: str, size: int, n_runs: int) -> dict[str, float]:
    """Share of the faulty blocks found, and of others accused (per run)."""
    found = others = 0.0
    for seed in range(n_runs):
        data, blocks = planted(fault, size, seed)
        told = audit_data(data).accusations
        right = told[told["kind"] == fault.removeprefix("part_")]
        named = set(zip(right["model_id"], right["benchmark"], strict=True))
        accused = set(zip(told["model_id"], told["benchmark"], strict=True))
        found += len(named & blocks) / len(blocks)
        others += len(accused - blocks)
    return {"found": found / n_runs, "others": others / n_runs}


def run(n_runs: int = 0) -> dict[str, Any]:
    """Both tables; `n_runs` matrices of each kind instead of 20."""
    n_runs = n_runs or _REPLICATIONS
    clean = {name: false_alarms(case, n_runs) for name, case in CASES.items()}
    found = {fault: {str(size): power(fault, size, n_runs) for size in SIZES} for fault in FAULTS}
    return {"false_alarms": clean, "power": found, "replications": n_runs}


def table(measured: Mapping[str, Any]) -> Table:
    """False alarms, and below them the shares of faults that are found."""
    shown = Table(title="clean blocks accused; faulty blocks found, by items in the benchmark")
    shown.add_column("data")
    for name in ("blocks", "accused", "of what"):
        shown.add_column(name, justify="right")
    rows = measured["false_alarms"]
    for name, row in rows.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in row["kinds"].items())
        shown.add_row(name, f"{row['blocks']:,}", str(row["accused"]), kinds)
    n_blocks = sum(row["blocks"] for row in rows.values())
    shown.add_row("all", f"{n_blocks:,}", str(sum(row["accused"] for row in rows.values())), "")
    for fault, by_size in measured["power"].items():
        found = ", ".join(f"{size}: {each['found']:.2f}" for size, each in by_size.items())
        shown.add_row(f"{fault}, found", "", "", found)
    return shown


def _ability(case: Case, rng: np.random.Generator) -> np.ndarray:
    ability = rng.normal(size=(case.n_models, case.dims))
    ability[case.n_models - case.n_weak :] -= rng.uniform(1.5, 3.5, (case.n_weak, 1))
    return ability


def _slope(case: Case, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
    """Each item's major slope lognormal(0, .5); by benchmark in half of the matrices, else free."""
    shape = (len(group), case.dims)
    slope = 0.35 * rng.lognormal(0, 0.5, shape) * np.where(rng.random(shape) < 0.3, -1, 1)
    by_group = rng.random() < 0.5
    major = group % case.dims if by_group else rng.integers(0, case.dims, len(group))
    sign = np.where(rng.random(len(group)) < case.negative_share, -1, 1)
    slope[np.arange(len(group)), major] = rng.lognormal(0, 0.5, len(group)) * sign
    return slope


def _matrix(response: np.ndarray, group: np.ndarray) -> ResponseMatrix:
    names = pd.DataFrame({"benchmark": [f"b{k}" for k in group]})
    return ResponseMatrix.from_dense(response, item_metadata=names)
