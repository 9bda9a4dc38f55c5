"""`score_models`: abilities of new models by the items of a fit, which stay as they are."""

import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from irtjax.checks import check_text, counted, named_ids, shown
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.seen import Seen, seen_answers, warn_of_seen
from irtjax.fit.tables import FEW_RESPONSES
from irtjax.score.bank import ItemBank, item_bank, population_frame
from irtjax.score.cells import batches
from irtjax.score.effects import fitted_effect_prior
from irtjax.score.known import check_fit, known_cells
from irtjax.score.mode import find_mode
from irtjax.score.posterior import expected_latent

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["METHODS", "UNCERTAINTIES", "score_models"]

METHODS = ("eap", "map", "wle")
UNCERTAINTIES = ("items", "none")
_REASON = {
    "eap": "no answers: mean and sd of the fit's population of models",
    "map": "no answers: mean and sd of the fit's population of models",
    "wle": "no answers: without a prior nothing is known of the ability",
}
# Standard deviations of the fit's models. Curves of uncertain items level off before 0 and 1, so
# that without a prior a few answers can leave an estimate anywhere out there.
_FARTHEST = 6.0
_FITTED = "the fit's own estimate from the same answers"


def score_models(
    fit: "FitResult",
    responses: ResponseMatrix,
    *,
    method: str = "eap",
    uncertainty: str = "items",
) -> pd.DataFrame:
    """Abilities of models that the fit need not have seen, from any of its items.

    The items keep their fitted parameters. Where the fit has benchmark effects, a new model's are
    unknown: they are integrated out, with the distribution that the fitted models' have.

    Args:
        fit: the fit whose items were answered.
        responses: the answers; items that the fit does not know are left out with a warning.
        method: `eap`, the posterior's mean and sd; `map`, its mode and curvature; `wle`, Warm's
            weighted likelihood estimate, which needs no prior of abilities. All are finite where
            all answers are right, or all wrong.
        uncertainty: `items` averages each item's curve over its posterior, so that what the fit
            does not know of the items widens the errors and pulls less; `none` takes the items'
            posterior means for the truth.

    Returns:
        One row a model: `model_id`, its metadata, `dim1_ability`.. and `dim1_ability_se`.. on the
        fit's scale, `n_responses` and `p_correct` over the fit's items, `flags` (`no_responses`,
        `few_responses`, `all_right`, `all_wrong`; `far_out`: by `wle`, more than 6 standard
        deviations from the fit's models, where no item says how far; `in_fit`: the fit's own
        estimate, of a model that was fitted to the very same answers, by `eap`; `counted_twice`:
        the fit has some of these
        answers of this model, so that the items know them; `differs_from_fit`: the fit has others),
        and `reason`: why an estimate is none, or the fit's own. Warns of `far_out` and of the last
        two flags.

    Raises:
        InputError: none of the items is in the fit; an unknown method.

    >>> from irtjax.data.simulate import simulate
    >>> from irtjax.fit.api import fit
    >>> from irtjax.model.spec import ModelSpec
    >>> data = simulate(ModelSpec(), n_models=20, n_items=50, seed=0).data
    >>> fitted = fit(data, ModelSpec())
    >>> new = ResponseMatrix.from_dense([[1, 0, 1]], item_ids=data.item_ids[:3])
    >>> score_models(fitted, new)["n_responses"].tolist()
    [3]
    """
    check_fit(fit, "score_models")
    method, uncertainty = checked_method(method), checked_uncertainty(uncertainty)
    cells = known_cells(fit, responses, "score_models")
    bank = item_bank(fit, fitted_effect_prior(fit), is_uncertain=uncertainty == "items")
    ability, covariance = latent_scores(bank, cells, responses.n_models, method, fit.spec.dims)
    is_far = (method == "wle") & np.any(np.abs(ability) > _FARTHEST, axis=1)
    _warn_of_far(responses.model_ids[is_far])
    frame = population_frame(fit)
    ability = ability @ frame[:-1, :-1].T + frame[:-1, -1]
    covariance = np.einsum("ka,iab,lb->ikl", frame[:-1, :-1], covariance, frame[:-1, :-1])
    seen = seen_answers(fit, responses.model_ids, cells)
    if method != "eap":
        seen = seen.as_new()
    warn_of_seen(seen, responses.model_ids, "scored")
    fitted = seen.is_fitted
    ability[fitted] = np.asarray(fit.parameters.ability, np.float64)[seen.row[fitted]]
    covariance[fitted] = np.asarray(fit.parameters.ability_covariance, np.float64)[seen.row[fitted]]
    return _table(responses, cells, ability, covariance, method, seen, is_far)


def _warn_of_far(model_ids: np.ndarray) -> None:
    if len(model_ids):
        warnings.warn(
            f"{counted(len(model_ids), 'model')} more than {_FARTHEST:g} standard deviations from "
            f"those of the run: {named_ids(model_ids)}; no item says how far out they are (flagged "
            "far_out); use method eap or map, which have a prior",
            IrtjaxWarning,
            stacklevel=3,
        )


def checked_method(method: Any) -> str:
    """Refuse an unknown method of scoring.

    Raises:
        InputError: one line names those there are.
    """
    if check_text("method", method) not in METHODS:
        raise InputError(f"method {shown(method)} is not known; use one of {', '.join(METHODS)}")
    return str(method)


def checked_uncertainty(uncertainty: Any) -> str:
    """Refuse an unknown way to treat the items' errors.

    Raises:
        InputError: one line names those there are.
    """
    if check_text("uncertainty", uncertainty) not in UNCERTAINTIES:
        raise InputError(
            f"uncertainty {shown(uncertainty)} is not known; use one of {', '.join(UNCERTAINTIES)}"
        )
    return str(uncertainty)


def latent_scores(
    bank: ItemBank, cells: Cells, n_models: int, method: str, dims: int
) -> tuple[Float[np.ndarray, "models dims"], Float[np.ndarray, "models dims dims"]]:
    """Estimates and covariances of the first `dims` latent coordinates, float64."""
    ability = np.zeros((n_models, dims))
    covariance = np.zeros((n_models, dims, dims))
    n_weighted = dims if method == "wle" else 0
    variance: Any = bank.effect_variance
    found = []
    for batch in batches(bank, cells, n_models):
        if method == "eap":
            result = expected_latent(batch.answers, batch.items, variance)
        else:
            mode = find_mode(batch.answers, batch.items, variance, n_weighted=n_weighted)
            result = _mode_and_curvature(mode)
        found.append((batch.rows, result))
    for rows, result in found:
        n = rows.stop - rows.start
        ability[rows] = np.asarray(result[0], np.float64)[:n, :dims]
        covariance[rows] = np.asarray(result[1], np.float64)[:n, :dims, :dims]
    return ability, covariance


@jax.jit
def _mode_and_curvature(mode: Any) -> tuple[Array, Array]:
    return mode.latent, jax.numpy.linalg.inv(mode.information)


def _table(
    responses: ResponseMatrix,
    cells: Cells,
    ability: np.ndarray,
    covariance: np.ndarray,
    method: str,
    seen: Seen,
    is_far: np.ndarray,
) -> pd.DataFrame:
    count, share = answered(cells, responses.n_models)
    error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    is_empty = count == 0
    if method == "wle":
        ability, error = (np.where(is_empty[:, None], np.nan, part) for part in (ability, error))
    columns: dict[str, Any] = {"model_id": responses.model_ids}
    columns |= {str(name): responses.model_metadata[name] for name in responses.model_metadata}
    columns |= {f"dim{k + 1}_ability": ability[:, k] for k in range(ability.shape[1])}
    columns |= {f"dim{k + 1}_ability_se": error[:, k] for k in range(ability.shape[1])}
    columns |= {
        "n_responses": count,
        "p_correct": share,
        "flags": flags(count, share, seen, is_far),
    }
    columns["reason"] = np.where(is_empty, _REASON[method], np.where(seen.is_fitted, _FITTED, ""))
    return pd.DataFrame(columns).reset_index(drop=True)


def answered(cells: Cells, n_models: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of answers of each model and the (weighted) share right, NaN without answers."""
    count = np.bincount(cells.model_index, minlength=n_models)
    weight = np.bincount(cells.model_index, cells.weight, n_models)
    right = np.bincount(cells.model_index, cells.weight * cells.response, n_models)
    return count, right / np.where(count > 0, weight, np.nan)


def flags(
    count: np.ndarray, share: np.ndarray, seen: Seen, is_far: np.ndarray | None = None
) -> np.ndarray:
    """Names of the flags of each model, semicolon-separated."""
    claims = {
        "no_responses": count == 0,
        "few_responses": (count > 0) & (count <= FEW_RESPONSES),
        "all_right": share == 1,
        "all_wrong": share == 0,
        "far_out": np.zeros(len(count), bool) if is_far is None else is_far,
        "in_fit": seen.is_fitted,
        "counted_twice": seen.is_counted_twice,
        "differs_from_fit": seen.is_different,
    }
    rows = [[name for name, holds in claims.items() if holds[i]] for i in range(len(count))]
    return np.array([";".join(row) for row in rows], object)
