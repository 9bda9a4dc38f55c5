"""New models' answers against the items of a fit: matched by id, what is unknown is reported."""

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtjax.checks import counted, named_ids
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError, IrtjaxWarning

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["check_fit", "known_cells", "known_items"]


def check_fit(fit: object, taker: str) -> None:
    """Refuse what is no fit.

    Raises:
        InputError: one line says how to get one.
    """
    from irtjax.fit.result import FitResult

    if not isinstance(fit, FitResult):
        raise InputError(
            f"{taker} takes a FitResult, not {type(fit).__name__}; make one with irtjax.fit or "
            "FitResult.load"
        )


def known_cells(fit: "FitResult", responses: ResponseMatrix, taker: str) -> Cells:
    """The answers to items of the fit, `item_index` into the fit's; a warning names the others.

    Raises:
        InputError: no response matrix, or none of its items is in the fit.
    """
    position = known_items(fit, responses, taker)
    cells = responses.cells()
    cells = cells.taken(position[cells.item_index] >= 0)
    return dataclasses.replace(cells, item_index=position[cells.item_index].astype(np.int32))


def known_items(fit: "FitResult", responses: ResponseMatrix, taker: str) -> np.ndarray:
    """Where each item of the responses stands in the fit, -1 where not; a warning names those.

    Raises:
        InputError: no response matrix, or none of its items is in the fit.
    """
    check_matrix(responses, taker)
    position = pd.Index(fit.data.item_ids).get_indexer(pd.Index(responses.item_ids))
    unknown = responses.item_ids[position < 0]
    if len(unknown) == responses.n_items:
        raise InputError(
            f"none of {counted(responses.n_items, 'item')} of the responses is in the run "
            f"(the first: {named_ids(unknown, 1)}; the run's first: "
            f"{named_ids(fit.data.item_ids, 1)}); "
            "check the item ids"
        )
    if len(unknown):
        warnings.warn(
            f"{counted(len(unknown), 'item')} of {responses.n_items:,} not in the run, their "
            f"answers are left out: {named_ids(unknown)}",
            IrtjaxWarning,
            stacklevel=4,
        )
    return np.asarray(position)
