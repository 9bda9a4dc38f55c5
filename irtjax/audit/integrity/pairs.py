"""How far each two models agree on one benchmark, from products of blocks of columns."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm

from irtjax.audit.integrity.blocks import Benchmark, Columns, without_trend
from irtjax.data.checks import MISSING

__all__ = ["FEWEST_CELLS", "Pairs", "compare_models", "standardised", "totals"]

# Below, a correlation's standard error exceeds any correlation of two models' answers.
FEWEST_CELLS = 20
_FLOOR_QUANTILE = 0.05
_FURTHEST_SHARE = 1e-3


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Models that answered a benchmark, and what each two of them have in common there.

    Attributes:
        benchmark: the items.
        model: rows of the matrix, those with enough cells.
        n_cells: observed cells of each.
        share: mean response of each.
        spread: standard deviation of its responses.
        n_common: cells that both answered.
        correlation: of responses without local trend, 0 on the diagonal and where not known.
        difference: sum of squared differences, for 0/1 the number of cells that differ.
    """

    benchmark: Benchmark
    model: Int[np.ndarray, " models"]
    n_cells: Float[np.ndarray, " models"]
    share: Float[np.ndarray, " models"]
    spread: Float[np.ndarray, " models"]
    n_common: Float[np.ndarray, "models models"]
    correlation: Float[np.ndarray, "models models"]
    difference: Float[np.ndarray, "models models"]

    @property
    def floor(self) -> float:
        """The highest plausible guessing rate: the accuracy of the weakest models.

        Whoever guesses on all items agrees with nobody, as a misordered block does. So nobody is
        expected to agree on what guessing at the rate of the weakest would explain.
        """
        if len(self.share) == 0:
            return 0.0
        return float(np.quantile(self.share, _FLOOR_QUANTILE, method="lower"))

    def steepness(self, floor: float = 0.0) -> Float[np.ndarray, " models"]:
        """What one unit of a common latent easiness moves a response, in its standard deviations.

        `(1 - c) phi(Phi^-1(p*)) / sd` with `p* = (p - c) / (1 - c)`: two models' correlation is the
        product of theirs times a number that no longer depends on how much they get right.
        """
        known = (self.share - floor) / max(1 - floor, _FURTHEST_SHARE)
        known = np.clip(known, 0, 1)
        height = np.where((known > 0) & (known < 1), norm.pdf(norm.ppf(known)), 0)
        return (1 - floor) * height / np.where(self.spread > 0, self.spread, np.inf)

    @property
    def is_known(self) -> np.ndarray:
        """Pairs of different models with enough cells in common and answers that vary."""
        varies = self.spread > 0
        known = (self.n_common >= FEWEST_CELLS) & varies[:, None] & varies[None, :]
        np.fill_diagonal(known, False)
        return known


def compare_models(columns: Columns, benchmark: Benchmark) -> Pairs:
    """All pairs of the models that answered enough of a benchmark."""
    n_cells, total, squares = totals(columns, benchmark)
    model = np.flatnonzero(n_cells >= FEWEST_CELLS)
    n_cells, share = n_cells[model], total[model] / n_cells[model]
    spread = np.sqrt(np.maximum(squares[model] / n_cells - share**2, 0))
    spread[spread < 1e-6] = 0
    size = (len(model), len(model))
    is_complete = bool(np.all(n_cells == len(benchmark.items)))
    common, product, gram, own = (np.zeros(size, np.float32) for _ in range(4))
    for _, block in columns.chunks(benchmark.items):
        response = block[model]
        is_observed = response != MISSING
        x = without_trend(standardised(response, share, spread), is_observed)
        product += x @ x.T
        answered = np.where(is_observed, response, 0)
        gram += answered @ answered.T
        if not is_complete:
            mask = is_observed.astype(np.float32)
            common += mask @ mask.T
            own += np.square(answered) @ mask.T
    if is_complete:
        common[:] = len(benchmark.items)
        own[:] = squares[model][:, None]
    correlation = _correlation(product, common)
    return Pairs(
        benchmark, model, n_cells, share, spread, common, correlation, own + own.T - 2 * gram
    )


def standardised(
    response: Float[np.ndarray, "models items"],
    share: Float[np.ndarray, " models"],
    spread: Float[np.ndarray, " models"],
) -> Float[np.ndarray, "models items"]:
    """Responses in standard deviations from their model's mean; 0 where missing or constant."""
    scale = np.where(spread > 0, spread, np.inf)
    x = (response - share[:, None]) / scale[:, None]
    return np.where(response == MISSING, 0, x).astype(np.float32)


def totals(columns: Columns, benchmark: Benchmark) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of cells, sum and sum of squares of each model's responses, float64."""
    n_cells, total, squares = (np.zeros(columns.shape[0]) for _ in range(3))
    for _, block in columns.chunks(benchmark.items):
        is_observed = block != MISSING
        n_cells += is_observed.sum(axis=1)
        total += np.sum(block, axis=1, where=is_observed, dtype=np.float64)
        squares += np.sum(np.square(block), axis=1, where=is_observed, dtype=np.float64)
    return n_cells, total, squares


def _correlation(product: np.ndarray, common: np.ndarray) -> np.ndarray:
    mean = product / np.maximum(common, 1)
    scale = np.sqrt(np.maximum(np.diag(mean), 0))
    scale[scale == 0] = np.inf
    correlation = np.clip(mean / np.outer(scale, scale), -1, 1)
    np.fill_diagonal(correlation, 0)
    return np.where(common >= FEWEST_CELLS, correlation, 0)
