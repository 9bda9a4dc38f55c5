"""Items and models that were not in a fit, from their features: parameters and predictions."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.feature_range import far_note
from irtjax.fit.features import Side, new_features
from irtjax.fit.result import FitResult
from irtjax.fit.tables import difficulty_and_discrimination
from irtjax.nets.unseen import feature_names, unseen_abilities, unseen_items

__all__ = ["items_from_features", "models_from_features", "predict_unseen"]


def items_from_features(fit: FitResult, features: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Parameters of items that nobody has answered, from their features.

    Args:
        fit: by `psn` or `deep-irt` with `item_features`.
        features: a data frame or a CSV, Parquet or JSON Lines file with `item_id` and the columns
            of the fit's features (`feature1`, ... where these were an array).

    Returns:
        `item_id`, `difficulty`, `discrimination`, `guessing`, `feasibility`, `intercept`,
        `dim1_slope`, ...: a row an item, in the frame of `fit.item_parameters()`. They are what
        items with these features are like; how far a single item is from it no column says.

    Raises:
        InputError: the fit has learnt from no item features, or one is missing or no number,
            or so far from theirs that nothing can be computed. Warns (`IrtjaxWarning`) of features
            far outside those.

    >>> import numpy as np, pandas as pd, irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec("1pl"), n_models=60, n_items=60).data
    >>> lengths = np.arange(60.0)
    >>> fit = ij.fit(data, ij.ModelSpec("1pl"), estimator="psn", item_features=lengths)
    >>> new = pd.DataFrame({"item_id": ["new"], "feature1": [7.0]})
    >>> items_from_features(fit, new)["item_id"].tolist()
    ['new']
    """
    ids, values = _features(fit, features, "item")
    found = unseen_items(fit, values)
    _check_finite(ids, found["slope"] + found["intercept"][:, None], "item")
    difficulty, discrimination = difficulty_and_discrimination(
        found["slope"], found["intercept"], fit.ability_correlations()
    )
    columns = {"item_id": ids, "difficulty": difficulty, "discrimination": discrimination}
    columns |= {name: found[name] for name in ("guessing", "feasibility", "intercept")}
    return pd.DataFrame(columns | _by_dim("slope", found["slope"]))


def models_from_features(fit: FitResult, features: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Abilities of models that were never seen, from their features.

    Args:
        fit: by `psn` or `deep-irt` with `model_features`.
        features: as `items_from_features` takes them, with `model_id`.

    Returns:
        `model_id`, `dim1_ability`, ...: a row a model, in the frame of `fit.abilities()`.

    Raises:
        InputError: the fit has learnt from no model features, or one is missing or no number,
            or so far from theirs that nothing can be computed. Warns (`IrtjaxWarning`) of features
            far outside those.
    """
    ids, values = _features(fit, features, "model")
    abilities = unseen_abilities(fit, values)
    _check_finite(ids, abilities, "model")
    return pd.DataFrame({"model_id": ids} | _by_dim("ability", abilities))


def predict_unseen(
    fit: FitResult,
    pairs: pd.DataFrame,
    *,
    items: pd.DataFrame | None = None,
    models: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Probabilities of pairs whose items or models need not have been in the fit.

    Args:
        fit: by `psn` or `deep-irt`.
        pairs: columns `model_id` and `item_id`.
        items: of `items_from_features`; an id that was in the fit keeps the fit's parameters.
        models: of `models_from_features`, likewise.

    Returns:
        `model_id`, `item_id`, `probability` in the order of the pairs; those of the fit's own
        pairs are `fit.predict`'s.

    Raises:
        InputError: an id that is neither in the fit nor in the tables.
    """
    known_items, known_models = set(fit.data.item_ids), set(fit.data.model_ids)
    is_known = pairs["item_id"].isin(known_items) & pairs["model_id"].isin(known_models)
    probability = np.empty(len(pairs))
    if is_known.any():
        probability[is_known] = fit.predict(pairs[is_known])["probability"]
    new = pairs[~is_known]
    of_item = _rows(new["item_id"], "item", fit.item_parameters(), items)
    of_model = _rows(new["model_id"], "model", fit.abilities(), models)
    dims = range(1, fit.spec.dims + 1)
    slope = of_item[[f"dim{k}_slope" for k in dims]].to_numpy(float)
    ability = of_model[[f"dim{k}_ability" for k in dims]].to_numpy(float)
    logit = np.sum(slope * ability, axis=1) + of_item["intercept"].to_numpy(float)
    low, high = (of_item[name].to_numpy(float) for name in ("guessing", "feasibility"))
    probability[~is_known] = low + (high - low) * 0.5 * (1 + np.tanh(0.5 * logit))
    ids = pairs[["model_id", "item_id"]].reset_index(drop=True)
    return ids.assign(probability=probability)


def _features(fit: FitResult, given: Any, side: Side) -> tuple[np.ndarray, np.ndarray]:
    """Ids and features; warns where they lie far outside what the fit has learnt from."""
    ids, values = new_features(given, side, feature_names(fit, side))
    known = fit.data.item_ids if side == "item" else fit.data.model_ids
    is_new = ~np.isin(ids.astype(str), known.astype(str))
    note = far_note(values[is_new], fit.report["features"][side], side)
    if note:
        warnings.warn(note, IrtjaxWarning, stacklevel=3)
    return ids, values


def _check_finite(ids: np.ndarray, values: np.ndarray, side: Side) -> None:
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            f"the features of {side} {str(ids[bad][0])!r} are so far from those that the fit has "
            "learnt from that the network overflows; leave it out, or check their units"
        )


def _rows(
    ids: pd.Series, side: Side, known: pd.DataFrame, unseen: pd.DataFrame | None
) -> pd.DataFrame:
    """Parameters of each id: the fit's, else the table's."""
    key = f"{side}_id"
    table = known if unseen is None else pd.concat([known, unseen[~unseen[key].isin(known[key])]])
    places = pd.Index(table[key]).get_indexer(pd.Index(ids))
    if (places < 0).any():
        missing: Any = ids.to_numpy()[places < 0]
        raise InputError(
            f"{side} {str(missing[0])!r} was neither in the fit nor in the {side} features; "
            f"{len(missing):,} such row{'s' if len(missing) > 1 else ''}"
        )
    return table.iloc[places]


def _by_dim(what: str, values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"dim{k + 1}_{what}": values[:, k] for k in range(values.shape[1])}
