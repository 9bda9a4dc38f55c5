"""What simple predictors reach on held-out cells: the numbers an estimator must beat."""

import dataclasses

import numpy as np

from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError

__all__ = ["BASELINES", "Rasch", "predict_baselines", "rasch_map"]

BASELINES = ("model_mean", "model_benchmark_mean", "1pl")

_DIFFICULTY_SD = 1.5
# Wide beside the spread of abilities in a Rasch model (1 to 2 logits): it only keeps all-right and
# all-wrong models finite. Theta's place is found by the difficulties, whose mean is 0.
_ABILITY_SD = 5.0
_MAX_PASSES = 100
_TOLERANCE = 1e-4  # logits; going on to 1e-6 changed the log-loss of W1 and W2 by less than 1e-8
_MAX_STEP = 3.0  # logits; Newton's step from a saturated start can overshoot by tens
_CELLS_PER_BLOCK = 1 << 17  # as fast from 2^16 to 2^19; overheads tell below, caches above


@dataclasses.dataclass(frozen=True, eq=False)
class Rasch:
    """Estimates of the 1PL `logit P = ability_i - difficulty_j`, in logits.

    Attributes:
        ability: models, float32.
        difficulty: items, float32.
        n_passes: passes over the data.
        is_converged: whether the last pass moved nothing by more than the tolerance.
    """

    ability: np.ndarray
    difficulty: np.ndarray
    n_passes: int
    is_converged: bool

    def probability(self, cells: Cells) -> np.ndarray:
        """Probability of a right answer in each cell, float64.

        In float32 a logit above 17 becomes a certain 1, and one wrong answer an infinite log-loss.
        """
        ability = self.ability[cells.model_index].astype(np.float64)
        return _sigmoid(ability - self.difficulty[cells.item_index])


def predict_baselines(
    train: ResponseMatrix, cells: Cells, group: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Predict held-out cells by three baselines.

    - `model_mean`: mean response of the model.
    - `model_benchmark_mean`: mean response of the model to the items of the cell's benchmark.
    - `1pl`: the Rasch model, `rasch_map`.

    A mean is smoothed by one imagined answer of the next wider kind, so that none is 0 or 1 and
    the log-loss stays finite: `(sum + parent) / (n + 1)`, where the parent of a model's mean on a
    benchmark is the model's mean, that of a model's mean is the overall mean, and that of the
    overall mean is 1/2. A model without answers on a benchmark so gets its own mean, and one
    without any gets the overall mean. Sums are weighted by the cells' weights.

    Args:
        train: the responses to learn from.
        cells: what to predict, by index into `train`.
        group: items, the benchmark code (0, 1, ...) of each; None takes all items for one
            benchmark, and `model_benchmark_mean` is then `model_mean`.

    Returns:
        One array of probabilities (float64, one a cell) for each of `BASELINES`.

    Raises:
        InputError: cells beyond the data's models or items, or a group of another length.

    >>> train = ResponseMatrix.from_dense([[1, 1, -1], [0, -1, 0]])
    >>> cells = ResponseMatrix.from_dense([[-1, -1, 1], [-1, 0, -1]]).cells()
    >>> predicted = predict_baselines(train, cells, None)
    >>> print(predicted["model_mean"].round(2), predicted["1pl"].round(2))
    [0.17 0.83] [0.07 0.93]
    """
    _check(train, cells, group)
    codes = np.zeros(train.n_items, np.int64) if group is None else np.asarray(group, np.int64)
    total, right = _model_group_sums(train, codes)
    overall = (right.sum() + 0.5) / (total.sum() + 1)
    model_mean = (right.sum(axis=1) + overall) / (total.sum(axis=1) + 1)
    by_group = (right + model_mean[:, None]) / (total + 1)
    of_model = model_mean[cells.model_index]
    of_group = by_group[cells.model_index, codes[cells.item_index]]
    return {
        "model_mean": of_model,
        "model_benchmark_mean": of_model if group is None else of_group,
        "1pl": rasch_map(train).probability(cells),
    }


def rasch_map(
    data: ResponseMatrix,
    *,
    difficulty_sd: float = _DIFFICULTY_SD,
    max_passes: int = _MAX_PASSES,
    tolerance: float = _TOLERANCE,
) -> Rasch:
    """Fit the 1PL by penalised joint maximum likelihood, in time that follows observed cells.

    Maximises `sum w [y log P + (1 - y) log(1 - P)] - sum_j b_j^2 / (2 sd^2) - sum_i t_i^2 / 50`
    with `logit P = t_i - b_j`: normal priors, wide for abilities. Each pass makes one Newton step
    of all difficulties, one of all abilities, and then moves both by the constant that the
    likelihood cannot see to where the priors want it: without that move it took 30 passes instead
    of 8 on 12 models, and on 100 models stopped .004 logits short. Responses may be fractions.

    Args:
        data: the responses.
        difficulty_sd: prior standard deviation of the difficulties, logits.
        max_passes: at most so many passes.
        tolerance: converged when no parameter moved by more in a pass, logits.

    Returns:
        The estimates. An item or model without responses has the prior's mode.

    >>> rasch_map(ResponseMatrix.from_dense([[1, 1, 0], [1, 0, 0]])).is_converged
    True
    """
    sums = _sums(data)
    ability = np.zeros(data.n_models, np.float32)
    difficulty = np.zeros(data.n_items, np.float32)
    item_precision, model_precision = 1 / difficulty_sd**2, 1 / _ABILITY_SD**2
    is_converged = False
    n_passes = 0
    while not is_converged and n_passes < max_passes:
        old_ability, old_difficulty = ability, difficulty
        residual, information = sums.along("items", ability, difficulty)
        difficulty = difficulty - _newton(
            residual + item_precision * difficulty, information + item_precision
        )
        residual, information = sums.along("models", ability, difficulty)
        ability = ability + _newton(
            residual - model_precision * ability, information + model_precision
        )
        shift = (item_precision * difficulty.sum() + model_precision * ability.sum()) / (
            item_precision * len(difficulty) + model_precision * len(ability)
        )
        ability, difficulty = ability - shift, difficulty - shift
        n_passes += 1
        moved = max(_largest(ability - old_ability), _largest(difficulty - old_difficulty))
        is_converged = moved < tolerance
    return Rasch(ability, difficulty, n_passes, is_converged)


@dataclasses.dataclass(frozen=True, eq=False)
class _DenseSums:
    """Sums over a dense matrix, a block of items at a time."""

    response: np.ndarray
    weight: np.ndarray | None

    def along(
        self, axis: str, ability: np.ndarray, difficulty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums of `w (y - P)` and of `w P (1 - P)`, one an item or one a model."""
        n_models, n_items = self.response.shape
        over_models = axis == "items"
        residual = np.zeros(n_items if over_models else n_models)
        information = np.zeros_like(residual)
        width = max(_CELLS_PER_BLOCK // max(n_models, 1), 1)
        for start in range(0, n_items, width):
            block = slice(start, min(start + width, n_items))
            to = block if over_models else slice(None)
            error, spread = self._block(block, ability, difficulty[block])
            residual[to] += error.sum(axis=0 if over_models else 1)
            information[to] += spread.sum(axis=0 if over_models else 1)
        return residual, information

    def _block(
        self, block: slice, ability: np.ndarray, difficulty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        response = self.response[:, block]
        p = _sigmoid(ability[:, None] - difficulty)
        weight = (response >= 0).astype(np.float32)
        if self.weight is not None:
            weight *= self.weight[:, block]
        error = response - p
        error *= weight
        weight *= p
        np.subtract(1, p, out=p)
        weight *= p
        return error, weight


@dataclasses.dataclass(frozen=True, eq=False)
class _SparseSums:
    """Sums over observed cells sorted by item, a run of cells at a time."""

    cells: Cells

    def along(
        self, axis: str, ability: np.ndarray, difficulty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums of `w (y - P)` and of `w P (1 - P)`, one an item or one a model."""
        residual = np.zeros(len(difficulty) if axis == "items" else len(ability))
        information = np.zeros_like(residual)
        for start in range(0, len(self.cells), _CELLS_PER_BLOCK):
            run = slice(start, start + _CELLS_PER_BLOCK)
            model, item = self.cells.model_index[run], self.cells.item_index[run]
            weight = self.cells.weight[run]
            p = _sigmoid(ability[model] - difficulty[item])
            error = weight * (self.cells.response[run] - p)
            spread = weight * p * (1 - p)
            # A run of cells meets few items: count from its first, not over all of them.
            first = int(item[0]) if axis == "items" else 0
            index = item - first if axis == "items" else model
            for total, value in ((residual, error), (information, spread)):
                part = np.bincount(index, value)
                total[first : first + len(part)] += part
        return residual, information


def _sums(data: ResponseMatrix) -> _DenseSums | _SparseSums:
    if data.sparse is not None:
        return _SparseSums(data.sparse)
    assert data.dense is not None
    return _DenseSums(data.dense, data.dense_weight)


def _sigmoid(logit: np.ndarray) -> np.ndarray:
    """`1 / (1 + exp(-z))`; exp overflows to inf, and 1 / inf is the right 0."""
    with np.errstate(over="ignore"):
        value = np.exp(-logit)
    value += 1
    return np.reciprocal(value, out=value)


def _largest(change: np.ndarray) -> float:
    return float(np.abs(change).max(initial=0))


def _newton(gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    return np.clip(gradient / curvature, -_MAX_STEP, _MAX_STEP).astype(np.float32)


def _model_group_sums(data: ResponseMatrix, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Models x groups: total weight of the responses, and of the right ones."""
    n_groups = int(codes.max(initial=0)) + 1
    total = np.zeros((data.n_models, n_groups))
    right = np.zeros_like(total)
    if data.dense is None or data.dense_weight is not None:
        cells = data.cells()
        key = cells.model_index * np.int64(n_groups) + codes[cells.item_index]
        weight = cells.weight.astype(np.float64)
        total.ravel()[:] = np.bincount(key, weight, total.size)
        right.ravel()[:] = np.bincount(key, weight * cells.response, right.size)
        return total, right
    bounds = np.searchsorted(np.sort(codes), np.arange(n_groups + 1))
    order = np.argsort(codes, kind="stable")
    for g in range(n_groups):
        of_group = data.dense[:, order[bounds[g] : bounds[g + 1]]]
        total[:, g] = np.count_nonzero(of_group >= 0, axis=1)
        right[:, g] = np.sum(of_group, axis=1, where=of_group >= 0, dtype=np.float64)
    return total, right


def _check(train: ResponseMatrix, cells: Cells, group: np.ndarray | None) -> None:
    for name, index, size in (
        ("model", cells.model_index, train.n_models),
        ("item", cells.item_index, train.n_items),
    ):
        if len(index) and not (index.min() >= 0 and index.max() < size):
            raise InputError(f"a cell to predict has {name} index {index.max()}, of {size} {name}s")
    if group is not None and np.shape(group) != (train.n_items,):
        raise InputError(
            f"group has shape {np.shape(group)}, not one code for {train.n_items} items"
        )
