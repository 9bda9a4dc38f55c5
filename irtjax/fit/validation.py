"""What a fit refuses and what it warns of, checked in NumPy before anything is traced."""

from typing import Any

import numpy as np

from irtjax.checks import counted
from irtjax.data.parts import n_parts
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec, check_spec

__all__ = ["check_responses", "check_types", "data_warnings"]


# Weights are numbers of answers. Sums of their squares must not overflow float32 (1e38), and past
# this many answers float32 cannot tell one more from none anyway.
_MOST_ANSWERS = 1e12


def check_responses(
    data: ResponseMatrix, spec: ModelSpec, *, is_confirmatory: bool = False
) -> None:
    """Refuse data from which the model cannot be estimated.

    Raises:
        InputError: fewer than two models, no items, no responses, too many dims, an exploratory
            1PL with more than one dim, weights too large to add up.
    """
    check_types(data, spec)
    if data.n_models < 2:
        raise InputError(
            f"{counted(data.n_models, 'model')} in the data; abilities are relative, so at least 2 "
            "are needed"
        )
    if data.n_items < 1 or data.n_responses < 1:
        raise InputError("no response in the data; every cell is missing")
    n_answers = data.sum_of_weights or 0.0
    if n_answers > _MOST_ANSWERS:
        raise InputError(
            f"the weights add up to {n_answers:.2g}; a weight is the number of answers that a cell "
            f"stands for, and sums past {_MOST_ANSWERS:.0e} lose their digits; divide them"
        )
    n_scored = int(np.count_nonzero(data.totals("models")[0]))
    if spec.dims >= n_scored:
        remedy = "use fewer dims" if spec.dims > 1 else "add models"
        raise InputError(
            f"{spec.dims} dims need more than {spec.dims} models with responses; there are "
            f"{n_scored}; {remedy}"
        )
    if spec.has_common_slope and spec.dims > 1 and not is_confirmatory:
        raise InputError(
            f"{spec.family} with {spec.dims} dims is not identified: with one common slope a dim "
            "only the sum of the abilities shows; use dims 1, or family 2pl"
        )
    if spec.family == "rasch" and spec.dims > 1:
        raise InputError(
            f"rasch with {spec.dims} dims has no common scale on which all slopes are 1; use "
            "family 1pl, with one common slope a dim"
        )


def check_types(data: Any, spec: Any) -> None:
    """Refuse what is no matrix or no spec, before anything is asked of it.

    Raises:
        InputError: one line says what to make of it.
    """
    check_matrix(data, "fit")
    check_spec(spec)


def data_warnings(data: ResponseMatrix) -> list[str]:
    """Sentences about data that are kept but say little; each counts and names one."""
    found = []
    for kind, ids, prior in (
        ("models", data.model_ids, "ability 0 with se 1"),
        ("items", data.item_ids, "the mean and spread of their group or prior"),
    ):
        count = data.totals(kind)[0]
        empty = np.flatnonzero(count == 0)
        if len(empty):
            found.append(
                f"{counted(len(empty), kind[:-1])} without responses (first: {ids[empty[0]]!r}) "
                f"kept at the prior's value, {prior}, flagged no_responses"
            )
    count_of_parts = n_parts(data)
    if count_of_parts > 1:
        found.append(
            f"the data fall into {count_of_parts:,} parts that share no model or item; "
            "abilities of different parts are compared by the priors alone, and models of one "
            "cannot be ranked against those of another"
        )
    return found
