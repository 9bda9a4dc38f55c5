"""Items and models that a fit has not seen get what ids without responses got in it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.scale_change import ScaleChange
from irtjax.model.spec import ModelSpec
from irtjax.score.unseen import items_from_features, models_from_features, predict_unseen
from tests.fit.conformance import NETWORK
from tests.fit.fitting import quiet_fit

N_MODELS, N_ITEMS, N_NEW = 30, 120, 20
SHORT = dataclasses.replace(NETWORK, epochs=3)


def _table(side, ids, values):
    columns = {f"{side}_trait{k}": values[:, k] for k in range(values.shape[1])}
    return pd.DataFrame({f"{side}_id": ids} | columns)


@pytest.fixture(scope="module", params=[("4pl", 1), ("2pl", 2), ("rasch", 1)])
def fitted(request):
    """A fit in which the last items and the last models have no responses; all have features."""
    family, dims = request.param
    drawn = simulate(ModelSpec("2pl"), n_models=N_MODELS, n_items=N_ITEMS, seed=2).data.to_dense()
    responses = np.array(drawn, np.int8)
    responses[:, -N_NEW:] = -1
    responses[-2:] = -1
    data = ResponseMatrix.from_dense(responses)
    rng = np.random.default_rng(0)
    items = _table("item", data.item_ids, rng.normal(1e4, 30, (N_ITEMS, 3)))
    models = _table("model", data.model_ids, rng.normal(size=(N_MODELS, 2)))
    fit = quiet_fit(
        data,
        ModelSpec(family, dims),
        estimator="psn",
        network=SHORT,
        item_features=items,
        model_features=models,
    )
    return fit, items, models


def test_features_alone_give_what_items_without_responses_have(fitted):
    fit, items, _ = fitted
    new = items.tail(N_NEW).assign(item_id=[f"new{k}" for k in range(N_NEW)], note="x")
    found = items_from_features(fit, new)
    own = fit.item_parameters().tail(N_NEW)
    assert found["item_id"].tolist() == new["item_id"].tolist()
    for name in found.columns[1:]:
        np.testing.assert_allclose(found[name], own[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_features_alone_give_what_models_without_responses_have(fitted):
    fit, _, models = fitted
    found = models_from_features(fit, models.tail(2))
    own = fit.abilities().tail(2)
    for name in found.columns[1:]:
        np.testing.assert_allclose(found[name], own[name], atol=2e-4, err_msg=name)


def test_pairs_of_new_and_known_are_predicted_as_without_responses(fitted):
    fit, items, models = fitted
    new_items = items_from_features(fit, items.tail(2).assign(item_id=["p", "q"]))
    new_models = models_from_features(fit, models.tail(1).assign(model_id=["m"]))
    item, model = fit.data.item_ids, fit.data.model_ids
    pairs = [(model[0], item[0]), (model[0], "q"), ("m", item[3]), ("m", "p")]
    twins = [(model[0], item[0]), (model[0], item[-1]), (model[-1], item[3]), (model[-1], item[-2])]
    named = ["model_id", "item_id"]
    found = predict_unseen(
        fit, pd.DataFrame(pairs, columns=named), items=new_items, models=new_models
    )
    expected = fit.predict(pd.DataFrame(twins, columns=named))
    assert found[named].to_numpy().tolist() == [list(pair) for pair in pairs]
    np.testing.assert_allclose(found["probability"], expected["probability"], atol=2e-4)
    assert found["probability"][0] == expected["probability"][0]


def test_a_loaded_run_gives_the_same(fitted, tmp_path):
    fit, items, models = fitted
    fit.save(tmp_path / "run")
    again = FitResult.load(tmp_path / "run")
    for found, table in ((items_from_features, items), (models_from_features, models)):
        pd.testing.assert_frame_equal(found(again, table), found(fit, table))


def test_they_move_with_the_scale_of_the_fit(fitted):
    fit, items, models = fitted
    if fit.spec.family == "rasch":
        pytest.skip("its slopes are 1 on its own scale only")
    dims = fit.spec.dims
    change = ScaleChange(np.eye(dims) * 1.7 + 0.3 * np.tri(dims, k=-1), np.full(dims, 0.4))
    moved = dataclasses.replace(fit, parameters=change.apply_to_fit(fit.parameters))
    found = items_from_features(moved, items.tail(3))
    own = moved.item_parameters().tail(3)
    for name in ("intercept", "dim1_slope", f"dim{dims}_slope", "difficulty"):
        np.testing.assert_allclose(found[name], own[name], rtol=2e-3, atol=2e-4, err_msg=name)
    found, own = models_from_features(moved, models.tail(2)), moved.abilities().tail(2)
    for name in found.columns[1:]:
        np.testing.assert_allclose(found[name], own[name], atol=4e-4, err_msg=name)


def test_what_cannot_be_known_is_refused(fitted, tmp_path):
    fit, items, _ = fitted
    with pytest.raises(InputError, match="need a column 'item_trait1', as the fit had"):
        items_from_features(fit, items.drop(columns="item_trait1"))
    with pytest.raises(InputError, match="several rows for"):
        items_from_features(fit, pd.concat([items, items]))
    with pytest.raises(InputError, match="must be a data frame or a file with item_id, not list"):
        items_from_features(fit, [1.0])
    with pytest.raises(InputError, match=r"none\.csv"):
        items_from_features(fit, tmp_path / "none.csv")
    pairs = pd.DataFrame({"model_id": [fit.data.model_ids[0]], "item_id": ["p"]})
    with pytest.raises(InputError, match="item 'p' was neither in the fit nor in the item"):
        predict_unseen(fit, pairs)


def test_a_fit_without_features_says_so():
    data = simulate(ModelSpec("2pl"), n_models=N_MODELS, n_items=N_ITEMS, seed=2).data
    fit = quiet_fit(data)
    with pytest.raises(InputError, match="has learnt from no item features"):
        items_from_features(fit, pd.DataFrame({"item_id": ["p"], "x": [1.0]}))
