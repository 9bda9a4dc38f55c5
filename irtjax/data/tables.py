"""LSAT 6 and LSAT 7: the two classical tables on which item response software is compared."""

import numpy as np
import pandas as pd

from irtjax.data.responses import Provenance, ResponseMatrix

__all__ = ["LSAT6_PATTERNS", "LSAT7_PATTERNS", "lsat6", "lsat7"]

# Number of the 1,000 test takers with each pattern of answers to the five items ("01011": items
# 2, 4 and 5 right). Patterns without a count were not seen.

# R. D. Bock & M. Lieberman (1970), Fitting a response model for n dichotomously scored items,
# Psychometrika 35, 179-197, table 1: Law School Admission Test, section 6.
LSAT6_PATTERNS = {
    "00000": 3, "00001": 6, "00010": 2, "00011": 11, "00100": 1, "00101": 1,
    "00110": 3, "00111": 4, "01000": 1, "01001": 8, "01011": 16, "01101": 3,
    "01110": 2, "01111": 15, "10000": 10, "10001": 29, "10010": 14, "10011": 81,
    "10100": 3, "10101": 28, "10110": 15, "10111": 80, "11000": 16, "11001": 56,
    "11010": 21, "11011": 173, "11100": 11, "11101": 61, "11110": 28, "11111": 298,
}  # fmt: skip

# R. D. Bock & M. Aitkin (1981), Marginal maximum likelihood estimation of item parameters:
# application of an EM algorithm, Psychometrika 46, 443-459, from Bock & Lieberman (1970):
# Law School Admission Test, section 7.
LSAT7_PATTERNS = {
    "00000": 12, "00001": 19, "00010": 1, "00011": 7, "00100": 3, "00101": 19,
    "00110": 3, "00111": 17, "01000": 10, "01001": 5, "01010": 3, "01011": 7,
    "01100": 7, "01101": 23, "01110": 8, "01111": 28, "10000": 7, "10001": 39,
    "10010": 11, "10011": 34, "10100": 14, "10101": 51, "10110": 15, "10111": 90,
    "11000": 6, "11001": 25, "11010": 7, "11011": 35, "11100": 18, "11101": 136,
    "11110": 32, "11111": 308,
}  # fmt: skip


def lsat6() -> ResponseMatrix:
    """Responses of 1,000 test takers to the 5 items of LSAT section 6, in pattern order.

    Source: Bock & Lieberman (1970), table 1. Here the test takers are the models (rows).

    >>> lsat6().n_models, lsat6().n_items
    (1000, 5)
    """
    return _expanded(LSAT6_PATTERNS, "LSAT6", "Bock & Lieberman (1970)")


def lsat7() -> ResponseMatrix:
    """Responses of 1,000 test takers to the 5 items of LSAT section 7, in pattern order.

    Source: Bock & Aitkin (1981). Here the test takers are the models (rows).

    >>> lsat7().totals("items")[1].round(3).tolist()
    [0.828, 0.658, 0.772, 0.606, 0.843]
    """
    return _expanded(LSAT7_PATTERNS, "LSAT7", "Bock & Aitkin (1981)")


def _expanded(patterns: dict[str, int], name: str, source: str) -> ResponseMatrix:
    rows = np.array([[int(answer) for answer in pattern] for pattern in patterns], np.int8)
    responses = np.repeat(rows, list(patterns.values()), axis=0)
    n_takers, n_items = responses.shape
    return ResponseMatrix.from_dense(
        responses,
        model_ids=[f"taker-{k + 1:04d}" for k in range(n_takers)],
        item_ids=[f"{name}/{k + 1}" for k in range(n_items)],
        item_metadata=pd.DataFrame({"benchmark": [name] * n_items}),
        provenance=Provenance(choices={"source": source}),
    )
