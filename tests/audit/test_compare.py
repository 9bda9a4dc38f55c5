"""Two models compared: against plain loops, and where the truth is known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import irtjax as ij
from irtjax.audit.compare import compare_models
from irtjax.data.demo import demo_data
from irtjax.data.splits import holdout


@pytest.fixture(scope="module")
def fitted():
    """Two abilities; `after` is `before` without what it knew of the second one."""
    rng = np.random.default_rng(0)
    n_models, n_items = 60, 400
    ability = rng.normal(size=(n_models, 2))
    ability[1] = ability[0] = 0.5, 1.0
    ability[1, 1] -= 2.5
    slope = np.zeros((n_items, 2))
    slope[:200, 0] = rng.lognormal(0.3, 0.3, 200)
    slope[200:, 1] = rng.lognormal(0.3, 0.3, 200)
    slope[390:] *= -1
    p = 1 / (1 + np.exp(-ability @ slope.T - rng.normal(0, 1, n_items)))
    responses = (rng.random(p.shape) < p).astype(float)
    responses[0, :5] = responses[1, 3:9] = np.nan
    benchmark = np.where(np.arange(n_items) < 200, "maths", "safety")
    data = ij.ResponseMatrix.from_dense(
        responses,
        model_ids=["before", "after", *(f"m{k}" for k in range(2, n_models))],
        item_metadata=pd.DataFrame({"benchmark": benchmark, "part": np.arange(n_items) % 3}),
    )
    return ij.fit(data, ij.ModelSpec("2pl", 2)), responses


def test_the_ability_that_was_lost_is_found(fitted):
    fit, _ = fitted
    found = compare_models(fit, "before", "after")
    lost = found.dims.loc[found.dims.difference.idxmin()]
    kept = found.dims.loc[found.dims.difference.idxmax()]
    assert -3.3 < lost.difference < -1.7
    assert lost.difference_low < -2.5 < lost.difference_high
    assert kept.difference_low < 0 < kept.difference_high
    assert lost.mean_difference < -0.2
    assert lost.p_adjusted < 0.01
    by = found.values.set_index("value")
    assert by.loc["safety", "p_adjusted"] < 0.001
    assert by.loc["maths", "p_adjusted"] > 0.05
    assert by.loc["safety", "expected_high"] < 0
    low, high = by.loc["safety", ["expected_low", "expected_high"]]
    assert low < by.loc["safety", "mean_difference"] < high


def test_tests_are_those_of_scipy_on_the_items_in_common(fitted):
    fit, responses = fitted
    found = compare_models(fit, "before", "after", by=["benchmark", "part"]).values
    common = ~np.isnan(responses[:2]).any(axis=0)
    assert found.n_items[0] == common.sum() == len(responses[0]) - 9
    metadata = fit.data.item_metadata
    for row in found.itertuples():
        which = common.copy()
        if row.column in metadata:
            which &= (metadata[row.column].astype(str) == row.value).to_numpy()
        a, b = responses[0, which], responses[1, which]
        expected = stats.ttest_rel(b, a)
        np.testing.assert_allclose([row.t, row.p_value], expected, rtol=1e-6)
        pooled = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
        np.testing.assert_allclose(row.cohens_d, (b.mean() - a.mean()) / pooled, rtol=1e-6)
    # Holm: rejected at a level if all smaller ones are, each against level / (number left).
    p, largest = found.p_value.to_numpy(), 0.0
    for rank, k in enumerate(np.argsort(p)):
        largest = max(largest, min(1, (len(p) - rank) * p[k]))
        np.testing.assert_allclose(found.p_adjusted[k], largest, rtol=1e-9)


def test_items_gained_and_lost_are_those_that_changed(fitted):
    fit, responses = fitted
    found = compare_models(fit, "before", "after")
    ids = fit.data.item_ids
    with np.errstate(invalid="ignore"):
        away = responses[1] - responses[0]
    assert set(found.gained.item_id) == set(ids[away == 1])
    assert set(found.lost.item_id) == set(ids[away == -1])
    for table in (found.gained, found.lost):
        assert table.chance.is_monotonic_increasing
    pairs = found.lost[["item_id"]].assign(model_id="after")
    np.testing.assert_allclose(fit.predict(pairs).probability, found.lost.probability_b)


def test_all_answers_and_all_items_are_counted(fitted):
    fit, responses = fitted
    part = pd.Series(np.where(np.arange(400) % 4 == 0, None, "x"))
    data = fit.data.replace(item_metadata=pd.DataFrame({"part": part}))
    train, cells = holdout(data, 0.3, seed=0)
    found = compare_models(
        dataclasses.replace(fit, data=train, heldout=cells), "before", "after", by=["part"]
    )
    values = found.values.set_index("value")
    is_common = np.isfinite(responses[:2]).all(axis=0)
    # What was held out of the fit has been answered all the same.
    assert values.loc["", "n_items"] == is_common.sum()
    assert values.loc["x", "n_items"] == (is_common & part.notna()).sum()
    assert values.loc["(no value)", "n_items"] == (is_common & part.isna()).sum()


def test_exchanged_models_have_the_opposite_sign(fitted):
    fit, _ = fitted
    there, back = compare_models(fit, "before", "after"), compare_models(fit, "after", "before")
    np.testing.assert_allclose(there.dims.difference, -back.dims.difference)
    np.testing.assert_allclose(there.values["t"], -back.values["t"])
    assert (there.gained.item_id.to_numpy() == back.lost.item_id.to_numpy()).all()


def test_expected_intervals_move_as_the_abilities_do(fitted):
    fit, _ = fitted
    found = compare_models(fit, "before", "after").values
    step = 1e-3
    moved = np.array(fit.parameters.ability)
    parameters = dataclasses.replace(fit.parameters, ability=moved)
    base = found.expected_difference[0]
    variance = 0.0
    for row, sign in ((0, -1), (1, 1)):
        gradient = []
        for k in range(2):
            moved[row, k] += step
            other = dataclasses.replace(fit, parameters=parameters)
            away = compare_models(other, "before", "after").values.expected_difference[0] - base
            gradient.append(sign * away / step)
            moved[row, k] -= step
        gradient = np.array(gradient)
        variance += gradient @ np.asarray(fit.parameters.ability_covariance)[row] @ gradient
    reach = (found.expected_high - found.expected_low)[0] / 2 / 1.959964
    np.testing.assert_allclose(reach, np.sqrt(variance), rtol=0.05)


def test_equal_models_have_no_difference_and_no_test():
    demo = demo_data(seed=1).data
    matrix = demo.to_dense()[:20, ::60]
    matrix = np.concatenate([matrix, matrix[:1]])
    fit = ij.fit(ij.ResponseMatrix.from_dense(matrix))
    first, last = fit.data.model_ids[[0, -1]]
    found = compare_models(fit, first, last)
    assert abs(found.dims.difference[0]) < 1e-6
    assert found.dims.p_value.isna().all()
    assert len(found.gained) == len(found.lost) == 0
    assert list(found.values.column) == ["all items"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("before", "nobody"), "model 'nobody' was not in the fit; models: before, after, m2"),
        (("before", "before"), "'before' is compared with itself"),
    ],
)
def test_models_that_cannot_be_compared_are_refused(fitted, arguments, message):
    with pytest.raises(ij.InputError, match=message):
        compare_models(fitted[0], *arguments)


def test_other_columns_and_shares_are_refused(fitted):
    with pytest.raises(ij.InputError, match="items have no column 'subject'"):
        compare_models(fitted[0], "before", "after", by="subject")
    with pytest.raises(ij.InputError, match="top_share must be a number"):
        compare_models(fitted[0], "before", "after", top_share=2)


def test_five_items_at_least_stand_for_a_dim(fitted):
    with pytest.warns(ij.IrtjaxWarning, match=r"items is 0 items; the 5 of the highest loadings"):
        found = compare_models(fitted[0], "before", "after", top_share=1e-5)
    assert (found.dims["n_items"] == 5).all()
