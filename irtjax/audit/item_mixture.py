"""How often items have which curve, estimated from all items, and each item's evidence.

The share of each curve is its own (empirical Bayes): no shape is imposed on slopes and places, and
what little is known about few items comes from a broad prior. A likelihood is two matrix products,
items x models by models x curves.
"""

import dataclasses
import functools
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit
from scipy.stats import beta, norm

from irtjax.audit.item_curves import (
    ASYMPTOTES,
    CHOSEN,
    N_FALLING,
    N_PLACES,
    N_REGULAR,
    PLACES,
    SUSPECT,
    Curves,
)

__all__ = [
    "N_FITTED",
    "ROWS",
    "Counts",
    "Evidence",
    "Mixture",
    "either_right_kind",
    "evidence_of",
    "falling_shares",
    "fitted_mixture",
    "mixture_weights",
    "shares_of_wrong_keys",
]

ROWS = 1024  # items a call: every call has this shape
N_FITTED = 4096  # items that the shares are estimated from, evenly spread
_N_STEPS = 40  # few enough that the shares stay smooth
# Prior shares of falling items and of wrong keys, and how many items they count for.
_FALLING, _WRONG_KEY, _SHARES_COUNT = 0.03, 0.01, 100.0
# Of the falling items, those that fall as steeply as others rise; in items, and their benchmark's.
_STEEP, _STEEP_COUNT = 0.1, 10.0
_BENCHMARK_COUNT = 30.0
_N_SHARE_STEPS = 100
_WEIGHT_COUNT = 50.0
_ASYMPTOTE_SHARES = np.array([0.33, 0.28, 0.2, 0.1, 0.01, 0.005, 0.06, 0.01, 0.005])
_LOG_SLOPE_SD, _INTERCEPT_SD = 0.7, 2.5
# Size-biased share of one option of many, Dirichlet(.3): a key that someone took for right is
# rarely one that nobody takes.
_CHOSEN_BETA = (1.3, 2.4)


@dataclasses.dataclass(frozen=True)
class Counts:
    """Right and wrong answers of the models to some items, float32 items x models."""

    right: np.ndarray
    wrong: np.ndarray


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Shares of the curves among regular items, and of the three kinds among all.

    Attributes:
        weight: N_REGULAR, sums to 1.
        falling: share of falling items.
        wrong_key: share of items with a wrong key.
        steep: share of the falling items that fall as steeply as others rise.
    """

    weight: np.ndarray
    falling: float
    wrong_key: float
    steep: float


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Log-likelihoods of each item under each kind, and what it says about its asymptotes.

    Attributes:
        regular: items.
        falling: items.
        wrong_key: items; NaN where it was not asked for.
        asymptotes: items x ASYMPTOTES, posterior given that the item is regular.
    """

    regular: np.ndarray
    falling: np.ndarray
    wrong_key: np.ndarray
    asymptotes: np.ndarray


def either_right_kind(items: Evidence, falling: np.ndarray) -> np.ndarray:
    """Log-likelihood of items that are regular or, with these shares, falling."""
    return np.logaddexp(np.log1p(-falling) + items.regular, np.log(falling) + items.falling)


def evidence_of(counts: Iterable[Counts], curves: Curves, mixture: Mixture) -> Evidence:
    """The evidence of items, a chunk of `ROWS` (or fewer) at a time.

    Args:
        counts: the chunks.
        curves: at the abilities of the models; without those of wrong keys where not asked for.
        mixture: shares of the curves.
    """
    log_weight = jnp.asarray(mixture_weights(mixture), curves.log_right.dtype)
    log_weight = log_weight[: curves.log_right.shape[1]]
    parts = []
    for chunk in counts:
        found = _evidence(*_padded(chunk, curves), curves, log_weight)
        parts.append([np.asarray(part, np.float64)[: len(chunk.right)] for part in found])
    return Evidence(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def fitted_mixture(samples: Iterable[tuple[Iterable[Counts], Curves]]) -> Mixture:
    """Shares of the curves by EM, from (a sample of) the items of every group of abilities.

    Args:
        samples: chunks of items and the curves at the abilities that hold for them.
    """
    start = _prior_mixture()
    parts = []
    for chunks, curves in samples:
        log_weight = jnp.zeros(curves.log_right.shape[1], curves.log_right.dtype)
        for chunk in chunks:
            found = _likelihoods(*_padded(chunk, curves), curves, log_weight)
            parts.append(np.asarray(found)[: len(chunk.right)])
    rows = np.concatenate(parts)
    size = N_FITTED if len(rows) > ROWS else ROWS  # two shapes, two compilations
    is_row = (np.arange(size) < len(rows)).astype(rows.dtype)
    rows = np.pad(rows, ((0, size - len(rows)), (0, 0)), constant_values=1)
    weight, *shares = _em(rows, is_row, jnp.asarray(start.weight, rows.dtype))
    return Mixture(np.asarray(weight, np.float64), *(float(each) for each in shares))


def falling_shares(items: Evidence, mixture: Mixture, benchmark: np.ndarray) -> np.ndarray:
    """Share of falling items in the benchmark of each item, by EM.

    Where many items of a benchmark fall, a falling one is no sign of a wrong key.

    Args:
        items: the evidence.
        mixture: shares among all items: a prior that counts for 30 of a benchmark's.
        benchmark: of each item.
    """
    n_items = np.bincount(benchmark)
    share = np.full(len(n_items), mixture.falling)
    for _ in range(_N_STEPS):
        falling = share[benchmark]
        regular = np.log1p(-falling - mixture.wrong_key) + items.regular
        others = np.logaddexp(regular, np.log(mixture.wrong_key) + items.wrong_key)
        log_falling = np.log(falling) + items.falling
        posterior = np.exp(log_falling - np.logaddexp(log_falling, others))
        found = np.bincount(benchmark, posterior) + _BENCHMARK_COUNT * mixture.falling
        # Room for the other kinds, however many fall.
        share = np.minimum(found / (n_items + _BENCHMARK_COUNT), 1 - 2 * mixture.wrong_key - 0.01)
    return share[benchmark]


def shares_of_wrong_keys(log_ratio: np.ndarray) -> tuple[np.ndarray, float]:
    """Posterior probability of a wrong key of each item, and their share, by EM.

    Args:
        log_ratio: items, log-likelihood of a wrong key against that of a right one.
    """
    share = _WRONG_KEY
    total = len(log_ratio) + _SHARES_COUNT
    for _ in range(_N_SHARE_STEPS):
        probability = expit(log_ratio + np.log(share / (1 - share)))
        share = float(np.sum(probability) + _SHARES_COUNT * _WRONG_KEY) / total
    return probability, share


def mixture_weights(mixture: Mixture) -> np.ndarray:
    """Log shares of all curves, each kind by itself summing to 1."""
    weight, steep = jnp.asarray(mixture.weight), jnp.asarray(mixture.steep)
    return np.concatenate([np.asarray(part) for part in _log_weights(weight, steep)])


def _log_weights(
    weight: Float[Array, " regular"], steep: Float[Array, ""]
) -> tuple[Float[Array, "..."], ...]:
    """Log shares of regular, falling and wrong-key curves: all have the same places."""
    place = jnp.log(jnp.sum(weight.reshape(-1, N_PLACES), axis=0))
    chosen = jnp.asarray(np.log(_chosen_shares()), weight.dtype)
    falling = jnp.concatenate([jnp.log1p(-steep) + place, jnp.log(steep) + place])
    return jnp.log(weight), falling, (chosen[:, None] + place).ravel()


def _chosen_shares() -> np.ndarray:
    density = beta.pdf(CHOSEN, *_CHOSEN_BETA)
    return density / density.sum()


def _prior_mixture() -> Mixture:
    slope, intercept = PLACES.T
    place = norm.pdf(np.log(slope), 0, _LOG_SLOPE_SD) * norm.pdf(intercept, 0, _INTERCEPT_SD)
    place *= 1 + slope  # intercepts of steeper items stand as much farther apart
    weight = (_ASYMPTOTE_SHARES[:, None] * place / place.sum()).ravel()
    return Mixture(weight, _FALLING, _WRONG_KEY, _STEEP)


def _padded(counts: Counts, curves: Curves) -> tuple[np.ndarray, np.ndarray]:
    dtype = curves.log_right.dtype
    pad = ((0, ROWS - len(counts.right)), (0, 0))
    return np.pad(counts.right.astype(dtype), pad), np.pad(counts.wrong.astype(dtype), pad)


def _log_likelihoods(
    right: Float[Array, "items models"],
    wrong: Float[Array, "items models"],
    curves: Curves,
    log_weight: Float[Array, " curves"],
) -> Float[Array, "items curves"]:
    highest = jax.lax.Precision.HIGHEST  # differences of large sums
    return (
        jnp.matmul(right, curves.log_right, precision=highest)
        + jnp.matmul(wrong, curves.log_wrong, precision=highest)
        + log_weight
    )


@jax.jit
def _likelihoods(
    right: Float[Array, "items models"],
    wrong: Float[Array, "items models"],
    curves: Curves,
    log_weight: Float[Array, " curves"],
) -> Float[Array, "items curves"]:
    """Likelihoods relative to each item's largest."""
    found = _log_likelihoods(right, wrong, curves, log_weight)
    return jnp.exp(found - jnp.max(found, axis=1, keepdims=True))


@jax.jit
def _evidence(
    right: Float[Array, "items models"],
    wrong: Float[Array, "items models"],
    curves: Curves,
    log_weight: Float[Array, " curves"],
) -> tuple[Float[Array, "..."], ...]:
    found = _log_likelihoods(right, wrong, curves, log_weight)
    regular, falling, wrong_key = jnp.split(found, [N_REGULAR, N_REGULAR + N_FALLING], axis=1)
    log_regular = jax.nn.logsumexp(regular, axis=1)
    share = jnp.exp(regular - log_regular[:, None])
    asymptotes = jnp.sum(share.reshape(len(share), len(ASYMPTOTES), N_PLACES), axis=2)
    log_wrong_key = jnp.full_like(log_regular, jnp.nan)
    if wrong_key.shape[1]:
        log_wrong_key = jax.nn.logsumexp(wrong_key, axis=1)
    return log_regular, jax.nn.logsumexp(falling, axis=1), log_wrong_key, asymptotes


@functools.partial(jax.jit, static_argnames=("n_steps",))
def _em(
    rows: Float[Array, "items curves"],
    is_row: Float[Array, " items"],
    prior: Float[Array, " regular"],
    n_steps: int = _N_STEPS,
) -> tuple[Float[Array, "..."], ...]:
    """Maximises the likelihood of the shares times their Dirichlet priors."""
    count = jnp.sum(is_row)
    # Shares of suspect asymptotes are hardly identified (11% were found where 1% is true): they
    # stay rare, so that an item has to show that it is one of them.
    is_suspect = jnp.asarray(SUSPECT)
    suspect = jnp.sum(prior.reshape(-1, N_PLACES), axis=1)

    def step(_: int, state: tuple[Float[Array, "..."], ...]) -> tuple[Float[Array, "..."], ...]:
        weight, falling, wrong_key, steep = state
        shares = jnp.log(jnp.stack([1 - falling - wrong_key, falling, wrong_key]))
        parts = zip(_log_weights(weight, steep), shares, strict=True)
        each = jnp.exp(jnp.concatenate([part + share for part, share in parts]))
        density = rows @ each
        expected = each * ((is_row / density) @ rows)
        of_regular, of_falling, of_wrong = jnp.split(expected, [N_REGULAR, N_REGULAR + N_FALLING])
        total = count + _SHARES_COUNT
        # Asymptotes and places as independent: left free, a mild slope that the places hardly have
        # becomes a steep one with low feasibility, and nine of ten such items are not ambiguous.
        total_regular = (of_regular + _WEIGHT_COUNT * prior).reshape(-1, N_PLACES)
        total_regular = total_regular / jnp.sum(total_regular)
        asymptotes, place = jnp.sum(total_regular, axis=1), jnp.sum(total_regular, axis=0)
        free = jnp.where(is_suspect, 0, asymptotes)
        free = free / jnp.sum(free) * (1 - jnp.sum(jnp.where(is_suspect, suspect, 0)))
        asymptotes = jnp.where(is_suspect, suspect, free)
        n_steep, n_falling = jnp.sum(of_falling[N_PLACES:]), jnp.sum(of_falling)
        return (
            (asymptotes[:, None] * place).ravel(),
            (n_falling + _SHARES_COUNT * _FALLING) / total,
            (jnp.sum(of_wrong) + _SHARES_COUNT * _WRONG_KEY) / total,
            (n_steep + _STEEP_COUNT * _STEEP) / (n_falling + _STEEP_COUNT),
        )

    shares = (jnp.asarray(share, prior.dtype) for share in (_FALLING, _WRONG_KEY, _STEEP))
    return jax.lax.fori_loop(0, n_steps, step, (prior, *shares))
