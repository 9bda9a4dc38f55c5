"""All responses of a fit: those it learnt from, and those held out to judge it."""

from irtjax.data.merge import with_cells
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult

__all__ = ["all_responses"]


def all_responses(fit: FitResult) -> ResponseMatrix:
    """The data of a fit with the held-out cells in their places.

    What compares responses with each other, and not with a prediction, takes all of them.
    """
    return fit.data if fit.heldout is None else with_cells(fit.data, fit.heldout)
