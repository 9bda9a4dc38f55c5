"""Features: where they come from, what is refused, and what they buy for items never answered."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.feature_range import constant_note, far_note
from irtjax.fit.features import make_features, new_features
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Network
from irtjax.score.unseen import items_from_features
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
    "too large": np.array([1.0, 1e300, 2.0]),
    "lists of several lengths": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [[1], [2, 3], [4]]}),
    "a row without a list": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [[1], None, [4]]}),
    "empty lists": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [[], [], []]}),
    "lists of text": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [["a"], ["b"], ["c"]]}),
    "lists as NumPy prints them": pd.DataFrame({"item_id": ["x", "y", "z"], "f": ["[1 2]"] * 3}),
    "lists of numbers as text": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [["1"]] * 3}),
    "complex": np.array([1 + 1j, 2, 3]),
    "a complex column": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [1 + 1j, 2, 3]}),
    "dates": pd.DataFrame({"item_id": ["x", "y", "z"], "f": pd.to_datetime(["2020-01-01"] * 3)}),
    "texts": np.array(["a", "b", "c"]),
    "lists of lists": pd.DataFrame({"item_id": ["x", "y", "z"], "f": [[[1]], [[2]], [[3]]]}),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_feature_is_refused(data, name):
    with pytest.raises(InputError, match="feature"):
        make_features(data, "item", BAD[name])


def test_what_is_refused_is_named(data):
    with pytest.raises(InputError, match=r"'feature1' of 'y' is 1e\+300; 1e\+30 is the most"):
        make_features(data, "item", BAD["too large"])
    with pytest.raises(InputError, match="column 'f' of the item features has lists of 1 to 2"):
        make_features(data, "item", BAD["lists of several lengths"])
    with pytest.raises(InputError, match="neither an item column"):
        make_features(data, "item", "size")
    with pytest.raises(InputError, match=r"^item feature 'kind' is text \('a' of 'x'\); write it"):
        make_features(data, "item", "kind")
    some = pd.DataFrame({"item_id": ["z", "x", "y"], "f": ["?", "1.5", ""]})
    with pytest.raises(InputError, match=r"'f' is text in 1 row \('\?' of 'z'\); write numbers"):
        make_features(data, "item", some)
    some.loc[0, "f"] = "2"
    with pytest.raises(InputError, match="'f' of 'y' is no finite number; 1 such value: fill"):
        make_features(data, "item", some)
    with pytest.raises(InputError, match=r"no row for 1 item of the responses \(first: 'y'\); add"):
        make_features(data, "item", some.drop(2))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "values", [[True, False, True], ["True", "false", " TRUE"], [[1], [0], [1]]]
)
def test_true_and_false_are_numbers(data, values, suffix, tmp_path):
    frame = pd.DataFrame({"item_id": ["x", "y", "z"], "f": values})
    path = tmp_path / f"f.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    for given in (frame, path):
        found = make_features(data, "item", given)
        assert found.mean == pytest.approx(2 / 3)
        assert found.low.tolist() + found.high.tolist() == [0, 1]


def test_rows_of_items_without_responses_are_counted(data):
    frame = pd.DataFrame({"item_id": ["v", "x", "y", "z", "w"], "f": ["text", 1, 2, 6, 3]})
    found = make_features(data, "item", frame)
    np.testing.assert_allclose(found.values[:, 0], EXPECTED)
    assert found.unused == (
        "the item features have rows of 2 items that the responses do not have (first: 'v'): they "
        "are not used"
    )
    fit = quiet_fit(data, estimator="psn", item_features=frame, network=Network(epochs=1))
    assert found.unused in fit.report["warnings"]
    assert make_features(data, "item", frame[1:4]).unused is None


@pytest.mark.parametrize("scale", [1e-150, 1e25])
def test_units_do_not_matter(data, scale):
    found = make_features(data, "item", scale * np.array([1.0, 2.0, 6.0]))
    np.testing.assert_allclose(found.values[:, 0], EXPECTED)


def test_lists_are_columns(data, tmp_path):
    lists = [[6.0, 0.0], [1.0, 1.0], [2.0, 5.0]]
    frame = pd.DataFrame({"item_id": ["z", "x", "y"], "emb": lists, "more": [1, 2, 3]})
    frame.to_parquet(tmp_path / "f.parquet")
    frame.to_csv(tmp_path / "f.csv", index=False)
    for given in (frame, str(tmp_path / "f.parquet"), str(tmp_path / "f.csv")):
        found = make_features(data, "item", given)
        assert found.names == ("emb[1]", "emb[2]", "more")
        np.testing.assert_allclose(found.values[:, 0], EXPECTED)
        ids, values = new_features(given, "item", found.names)
        assert ids.tolist() == ["z", "x", "y"]
        np.testing.assert_array_equal(values[:, :2], lists)


def test_constant_features_say_nothing(data):
    one = make_features(data, "item", np.ones((3, 1)))
    assert constant_note(one.names, one.scale, "item") == (
        "item feature 'feature1' is the same for all items with responses: nothing is learnt from "
        "that, and nothing can be told of a new item"
    )
    two = make_features(data, "item", np.array([[1, 2, 3], [1, 2, 4], [1, 2, 5]]))
    told = constant_note(two.names, two.scale, "item")
    assert told.startswith("item features 'feature1', 'feature2' are the same")
    assert "nothing can be told" not in told
    assert constant_note(("a",), np.array([2.0]), "item") == ""


def test_far_outside_is_said():
    told = {"names": ["a", "b", "c"], "low": [0, 0, 1], "high": [2, 4, 1], "scale": [1, 1, 0]}
    inside = np.array([[-1.0, 6.0, 9.0], [3.0, -2.0, -9.0]])
    assert far_note(inside, told, "item") is None
    assert far_note(inside, {"names": ["a"]}, "item") is None
    note = far_note(np.vstack([inside, [[1e6, 1, 1], [4, 1, 1]]]), told, "item")
    assert note.startswith("2 of 4 items without responses have features far outside")
    assert "'a' up to 1e+06 (fitted 0 to 2, 2 rows); what" in note


def test_new_items_far_outside_are_warned_of_and_keep_their_numbers(data):
    lengths = np.array([1.0, 2.0, 6.0]) * 1e-20
    fit = quiet_fit(data, estimator="psn", item_features=lengths, network=Network(epochs=1))
    new = pd.DataFrame({"item_id": ["x", "new"], "feature1": [1e-18, 5e-20]})
    assert np.isfinite(items_from_features(fit, new).intercept).all()  # x was in the fit
    new["feature1"] = [1e-20, 1e-14]
    with pytest.warns(IrtjaxWarning, match="1 of 1 item without .* 'feature1' up to 1e-14"):
        far = items_from_features(fit, new)
    assert np.isfinite(far.intercept).all()
    new["feature1"] = [1e-20, 1e30]
    with (
        pytest.warns(IrtjaxWarning, match="extrapolated"),
        pytest.raises(InputError, match="item 'new' are so far"),
    ):
        items_from_features(fit, new)


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
