"""Features: where they come from, what is refused, and what they buy for items never answered."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.features import make_features
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Network
from tests.fit.fitting import quiet_fit


@pytest.fixture
def data():
    """4 models x 3 items with columns."""
    metadata = pd.DataFrame({"length": [1.0, 2.0, 6.0], "kind": ["a", "b", "a"]})
    return ResponseMatrix.from_dense(
        [[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]],
        item_ids=["x", "y", "z"],
        item_metadata=metadata,
    )


EXPECTED = (np.array([1.0, 2.0, 6.0]) - 3) / np.std([1.0, 2.0, 6.0])


def test_columns_frames_files_and_arrays_give_the_same(data, tmp_path):
    frame = pd.DataFrame({"item_id": ["z", "x", "y", "w"], "length": [6, 1, 2, 9]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    np.save(tmp_path / "f.npy", np.array([[1.0], [2.0], [6.0]]))
    given = ["length", ["length"], frame, np.array([1.0, 2.0, 6.0])]
    given += [str(tmp_path / name) for name in ("f.csv", "f.parquet", "f.npy")]
    for each in given:
        np.testing.assert_allclose(make_features(data, "item", each).values[:, 0], EXPECTED)


BAD = {
    "no such column": "size",
    "text": ["kind"],
    "short": np.ones(2),
    "not finite": np.array([1.0, np.nan, 2.0]),
    "no ids": pd.DataFrame({"id": ["x"], "f": [1]}),
    "missing rows": pd.DataFrame({"item_id": ["x"], "f": [1]}),
    "twice": pd.DataFrame({"item_id": ["x", "x", "y", "z"], "f": [1, 2, 3, 4]}),
    "no features": pd.DataFrame({"item_id": ["x", "y", "z"]}),
    "no names": [],
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_feature_is_refused(data, name):
    with pytest.raises(InputError, match="feature"):
        make_features(data, "item", BAD[name])


def test_features_belong_to_networks(data):
    with pytest.raises(InputError, match="item features belong to estimator psn or deep-irt"):
        quiet_fit(data, item_features="length")


def _explained(share, n_models=60, n_items=400, n_new=150, seed=0):
    """Responses to all but the last items; features explain a share of the difficulty."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, 6))
    known = features @ rng.normal(size=6)
    known /= known.std()
    difficulty = np.sqrt(share) * known + np.sqrt(1 - share) * rng.normal(size=n_items)
    ability = rng.normal(size=n_models)
    p = 1 / (1 + np.exp(-1.3 * (ability[:, None] - difficulty)))
    responses = (rng.uniform(size=p.shape) < p).astype(np.int8)
    responses[:, -n_new:] = -1
    return ResponseMatrix.from_dense(responses), features, difficulty[-n_new:]


def _on_new_items(share):
    data, features, difficulty = _explained(share)
    network = Network(batch_size=256, hidden=16, embedding=16, learning_rate=0.01, epochs=12)
    fit = quiet_fit(data, ModelSpec("2pl"), estimator="psn", network=network,
                    item_features=features)  # fmt: skip
    found = fit.item_parameters().intercept.to_numpy()[-len(difficulty) :]
    return float(np.corrcoef(-found, difficulty)[0, 1]), found


def test_items_never_answered_get_difficulties_from_their_features():
    r, found = _on_new_items(0.6)
    # Features that explain 60% of the difficulty correlate .77 with it.
    assert 0.65 < r < 0.85
    assert np.isfinite(found).all()


def test_features_that_carry_nothing_say_nothing():
    r, found = _on_new_items(0.0)
    assert abs(r) < 0.25
    assert found.std() < 0.5


@pytest.mark.parametrize("updates", ["touched", "dense"])
def test_features_may_stand_instead_of_ids(updates):
    data, features, _ = _explained(0.6)
    features = np.repeat(features[::2], 2, axis=0)  # items in pairs of the same features
    network = Network(batch_size=256, hidden=16, embedding=16, learning_rate=0.01, epochs=3,
                      lookup="models", updates=updates)  # fmt: skip
    settings = {"estimator": "psn", "item_features": features}
    instead = quiet_fit(data, ModelSpec("2pl"), network=network, **settings).item_parameters()
    for name in ("discrimination", "intercept"):
        pairs = instead[name].to_numpy().reshape(-1, 2)
        np.testing.assert_allclose(pairs[:, 0], pairs[:, 1], rtol=1e-4, atol=1e-5)
    assert instead.intercept.std() > 0.2
    beside = dataclasses.replace(network, lookup="both")
    apart = quiet_fit(data, ModelSpec("2pl"), network=beside, **settings).item_parameters()
    pairs = apart.intercept.to_numpy().reshape(-1, 2)[:100]
    assert np.abs(pairs[:, 0] - pairs[:, 1]).mean() > 0.05


@pytest.mark.parametrize(
    "lookup, side", [("models", "items"), ("items", "models"), ("none", "items")]
)
def test_a_side_without_ids_needs_features(data, lookup, side):
    with pytest.raises(InputError, match=f"leaves {side} without ids, and they have no features"):
        quiet_fit(data, estimator="psn", network=Network(lookup=lookup))
