"""What a fit says of itself: metadata with the name of a result, dims without signal, seeds."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec


def coin_flips(n_models: int = 12, n_items: int = 40) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (n_models, n_items))


def test_metadata_with_the_name_of_a_result_is_kept_under_another_and_reported() -> None:
    labels = [f"level {k % 3}" for k in range(40)]
    made = simulate(ModelSpec("2pl"), n_models=20, n_items=40).data
    data = made.replace(item_metadata=pd.DataFrame({"difficulty": labels, "topic": labels}))
    with pytest.warns(IrtjaxWarning, match="'input_difficulty'"):
        fitted = fit(data)
    table = fitted.item_parameters()
    assert table["input_difficulty"].tolist() == labels
    assert table["topic"].tolist() == labels
    assert table["difficulty"].dtype == np.float64
    assert table.columns[:4].tolist() == ["item_id", "input_difficulty", "topic", "difficulty"]


def test_a_dim_without_signal_is_flagged_and_warned_of() -> None:
    with pytest.warns(IrtjaxWarning, match="values mean nothing"):
        fitted = fit(ResponseMatrix.from_dense(coin_flips()))
    assert "no_signal" in fitted.report["dimensions"][0]["flags"]
    table = fitted.item_parameters()
    assert table["flags"].str.contains("weak_slope").all()
    finite = table["difficulty"].abs().to_numpy() < 1e6
    assert np.all(finite | table["difficulty"].isna().to_numpy())


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True])
def test_a_seed_out_of_range_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        fit(ResponseMatrix.from_dense(coin_flips()), seed=seed)  # type: ignore[arg-type]


def test_other_types_are_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="ResponseMatrix"):
        fit(pd.DataFrame(coin_flips()))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ModelSpec"):
        fit(ResponseMatrix.from_dense(coin_flips()), "2pl")  # type: ignore[arg-type]
