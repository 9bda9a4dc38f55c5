"""What scoring knows of a fit: its items' posteriors and the distribution of new models."""

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from irtjax.fit.packed import mixture_moments, pair_index, unpack_index
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes
from irtjax.score.effects import EffectPrior

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = [
    "ItemBank",
    "item_bank",
    "item_posteriors",
    "population_frame",
    "taken",
    "without_effects",
]


@pytree_dataclass
class ItemBank:
    """Items as a new model meets them, items first.

    The model's latent vector is standard normal: its abilities, moved and scaled to those of the
    fit's (first) population, and what its benchmark effects have in common. `mean` and `covariance`
    (packed) are of an item's slopes on the latent vector and its intercept, a mixture with `share`.
    Each group has an effect with mean 0 and `effect_variance` beside (None: no effects).
    """

    mean: Float[Array, "items components coordinates"]
    covariance: Float[Array, "items components pairs"]
    share: Float[Array, "items components"]
    asymptotes: Asymptotes | None
    group: Int[Array, " items"]
    effect_variance: Float[Array, " groups"] | None

    @property
    def n_latent(self) -> int:
        """Length of the latent vector."""
        return self.mean.shape[2] - 1


def item_bank(fit: "FitResult", effects: EffectPrior | None, *, is_uncertain: bool) -> ItemBank:
    """The bank of a fit, host arrays.

    Args:
        fit: the fit.
        effects: what is known of a new model's effects, None without.
        is_uncertain: keep the items' posterior covariances (with what the abilities' errors add);
            else each item is known to be at its posterior mean.
    """
    fitted = fit.parameters
    to_latent = population_frame(fit)
    mean, packed, share = item_posteriors(fit)
    if not is_uncertain:
        mean = mixture_moments(mean, packed, share)[0][:, None]
        packed, share = np.zeros_like(packed[:, :1]), np.ones_like(share[:, :1])
    size = mean.shape[2]
    covariance = np.einsum(
        "ka,jckl,lb->jcab", to_latent, packed[..., unpack_index(size)], to_latent, optimize=True
    )
    mean = mean @ to_latent
    group, variance = np.zeros(len(mean), np.int32), None
    if effects is not None:
        group, variance = effects.group, effects.variance
        mean, covariance = _with_common(mean, covariance, effects.loading[group])
    rows, columns = pair_index(mean.shape[2])
    asymptotes = None
    if fit.spec.has_asymptotes:
        asymptotes = Asymptotes.from_natural(fitted.guessing, fitted.feasibility)
    dtype = np.asarray(fitted.mean).dtype
    held: Any = None if variance is None else variance.astype(dtype)
    given: Any = (
        mean.astype(dtype),
        covariance[..., rows, columns].astype(dtype),
        share.astype(dtype),
        asymptotes,
        group,
        held,
    )
    return ItemBank(*given)


def item_posteriors(fit: "FitResult") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a fit knows of its items' slopes and intercepts: a mixture of normals each, float64.

    Covariances have what the abilities' errors add. An error that is not known (`no_error`) counts
    as none: the estimate is all there is.

    Returns:
        Means (items x components x coordinates), packed covariances, shares.
    """
    fitted = fit.parameters
    packed = np.asarray(fitted.covariance, np.float64)
    if fitted.item_spread is not None:
        packed = packed + np.asarray(fitted.item_spread, np.float64)[:, None]
    packed = np.nan_to_num(packed, posinf=0, neginf=0)
    return np.asarray(fitted.mean, np.float64), packed, np.asarray(fitted.share, np.float64)


def population_frame(fit: "FitResult") -> np.ndarray:
    """Matrix with `(ability, 1) = matrix (latent, 1)`, of the first population."""
    mean = np.asarray(fit.parameters.population_mean[0], np.float64)
    covariance = np.asarray(fit.parameters.population_covariance[0], np.float64)
    frame = np.eye(len(mean) + 1)
    frame[:-1, :-1] = np.linalg.cholesky(covariance)
    frame[:-1, -1] = mean
    return frame


def taken(bank: ItemBank, order: np.ndarray) -> ItemBank:
    """Some items of a bank, in an order."""
    asymptotes = jax.tree.map(lambda leaf: np.asarray(leaf)[order], bank.asymptotes)
    kept: Any = {
        name: np.asarray(getattr(bank, name))[order]
        for name in ("mean", "covariance", "share", "group")
    }
    return dataclasses.replace(bank, asymptotes=asymptotes, **kept)


def without_effects(bank: ItemBank, dims: int) -> ItemBank:
    """The same items for a model without benchmark effects, nothing in common among them."""
    size = bank.mean.shape[2]
    kept = [*range(dims), size - 1]
    rows, columns = pair_index(dims + 1)
    position = unpack_index(size)[np.ix_(kept, kept)][rows, columns]
    return dataclasses.replace(
        bank,
        mean=bank.mean[..., kept],
        covariance=bank.covariance[..., position],
        effect_variance=None,
    )


def _with_common(
    mean: np.ndarray, covariance: np.ndarray, loading: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One more latent coordinate before the intercept, on which items load as their group does."""
    n_items, n_components, size = mean.shape
    column = np.broadcast_to(loading[:, None, None], (n_items, n_components, 1))
    wide = np.zeros((n_items, n_components, size + 1, size + 1))
    kept = [*range(size - 1), size]
    wide[..., np.ix_(kept, kept)[0], np.ix_(kept, kept)[1]] = covariance
    return np.concatenate([mean[..., :-1], column, mean[..., -1:]], axis=2), wide
