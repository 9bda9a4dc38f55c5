"""Which models a fit has seen: whose answers its items' posteriors know already."""

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from irtjax.checks import counted, named_ids
from irtjax.data.cells import Cells
from irtjax.errors import IrtjaxWarning

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["Seen", "seen_answers", "warn_of_seen"]

# Models of whose answers a larger share differs from the fit's are others of the same id.
_CORRECTED = 0.2


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What a fit knows of the answers of some models, by the models' ids.

    Attributes:
        row: the fit's row of each model that it has with the very same answers; -1 of all others.
        n_shared: answers that the fit has of the model too, and the same.
        n_different: answers to items that the model answered otherwise in the fit.
    """

    row: Int[np.ndarray, " models"]
    n_shared: Int[np.ndarray, " models"]
    n_different: Int[np.ndarray, " models"]

    @property
    def is_fitted(self) -> Bool[np.ndarray, " models"]:
        """Models whose estimate is the fit's own."""
        return self.row >= 0

    @property
    def is_counted_twice(self) -> Bool[np.ndarray, " models"]:
        """Models that are scored by items that know some of their answers.

        Not where many differ: another model of the same id agrees by chance.
        """
        is_same = self.n_different <= _CORRECTED * (self.n_shared + self.n_different)
        return (self.n_shared > 0) & is_same & ~self.is_fitted

    @property
    def is_different(self) -> Bool[np.ndarray, " models"]:
        """Models that answered otherwise than in the fit."""
        return self.n_different > 0

    def as_new(self) -> "Seen":
        """Where no estimate of the fit stands in for a model's own."""
        return dataclasses.replace(self, row=np.full_like(self.row, -1))


def seen_answers(fit: "FitResult", model_ids: np.ndarray, cells: Cells) -> Seen:
    """Compare answers with those that the fit has of the same models.

    The estimate of a model with the very same answers is the fit's own: the items' posteriors have
    seen these answers, and to score by them would count the answers twice. With ten models that
    moves abilities by .3 sd, where dims are hardly supported by far more; with 300 by .02.

    Args:
        fit: the fit.
        model_ids: of the models.
        cells: their answers, `item_index` into the fit's.
    """
    n_models = len(model_ids)
    row = pd.Index(fit.data.model_ids).get_indexer(pd.Index(model_ids))
    count = np.bincount(cells.model_index, minlength=n_models)
    nothing = np.zeros(n_models, np.int64)
    theirs = fit.data.cells()
    theirs = theirs.taken(np.isin(theirs.model_index, row[(row >= 0) & (count > 0)]))
    if len(theirs) == 0:
        return Seen(np.full(n_models, -1), nothing, nothing)
    mine = cells.taken(row[cells.model_index] >= 0)
    n_fitted = np.int64(fit.data.n_models)
    # In the order in which a matrix has its cells: sorting three million took .4 s.
    keys = theirs.item_index * n_fitted + theirs.model_index
    wanted = mine.item_index * n_fitted + row[mine.model_index]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_there = keys[at] == wanted
    is_same = is_there & (theirs.response[at] == mine.response) & (theirs.weight[at] == mine.weight)
    shared, different = (
        np.bincount(mine.model_index[which], minlength=n_models)
        for which in (is_same, is_there & ~is_same)
    )
    total = np.where(row >= 0, fit.data.totals("models")[0][row], -1)
    is_whole = (shared > 0) & (shared == count) & (shared == total)
    return Seen(np.where(is_whole, row, -1), shared, different)


def warn_of_seen(seen: Seen, model_ids: np.ndarray, doing: str) -> None:
    """One warning each, with their number and the first ids, of what makes estimates doubtful.

    Args:
        seen: of these models.
        model_ids: of the models.
        doing: what is done with the models, say `scored`.
    """
    twice, different = model_ids[seen.is_counted_twice], model_ids[seen.is_different]
    if len(twice):
        warnings.warn(
            f"{counted(len(twice), 'model')} {doing} by answers that the run was fitted to: "
            f"{named_ids(twice)}; the items' parameters know these answers, which count twice and "
            "put the abilities too far from the mean (flagged counted_twice); the run has its own "
            "estimates in models.csv",
            IrtjaxWarning,
            stacklevel=3,
        )
    if len(different):
        n_cells = int(seen.n_different.sum())
        warnings.warn(
            f"{counted(len(different), 'model')} with {counted(n_cells, 'answer')} other than the "
            f"run has under the same ids: {named_ids(different)} (flagged differs_from_fit); give "
            "other models ids of their own, or fold corrected answers in with irtjax update "
            "--replace",
            IrtjaxWarning,
            stacklevel=3,
        )
