"""Published scores beside the data's: what is accused, what is not known, what is refused."""

import numpy as np
import pandas as pd
import pytest

from irtjax.audit.integrity.check import audit_data
from irtjax.audit.integrity.published import check_published
from irtjax.data.merge import with_cells
from irtjax.data.splits import holdout
from irtjax.errors import InputError, IrtjaxWarning
from tests.audit.integrity.cases import clean, of_kind, with_rows

N_ITEMS = 300


def scores(values, benchmark="b0"):
    """Scores of the first models."""
    names = [f"m{k}" for k in range(len(values))]
    return pd.DataFrame({"model_id": names, "benchmark": benchmark, "score": values})


def answered(share):
    """Clean responses to 300 items, of which each model answered a random share."""
    data, rng = clean(5, sizes=(N_ITEMS, 300)), np.random.default_rng(1)
    is_gone = rng.random(data.dense.shape) >= share
    return data, with_rows(data, np.where(is_gone, -1, data.dense))


def test_all_items_answered_leave_the_tolerance_and_the_rounding():
    data = clean(5, sizes=(N_ITEMS, 300))
    mean = data.dense[:, :N_ITEMS].mean(axis=1)
    # Of 300 items 10 points are 30 responses: no sampling error explains them.
    score = np.round(100 * mean[:5] + [0, 2.9, -3.2, 10, -10], 1)
    audit = audit_data(data, published=scores(score))
    assert of_kind(audit.accusations, "contradicts_published") == [
        ("m2", "b0"), ("m3", "b0"), ("m4", "b0")
    ]  # fmt: skip
    table = audit.published
    np.testing.assert_allclose(table["threshold"], 0.03 + 0.0005, rtol=1e-9)
    assert (table["standard_error"] == 0).all()
    assert (table["n_items"] == N_ITEMS).all()
    assert table["p"].tolist() == [1, 1, 0, 0, 0]
    row = audit.accusations.iloc[1]
    assert "10.0 points apart, more than 3.05 is accused" in row["explanation"]
    assert np.isnan(row["p_adjusted"])
    assert not of_kind(
        audit_data(data, published=scores(score), tolerance=0.15).accusations,
        "contradicts_published",
    )


def test_a_sample_of_the_items_has_the_error_of_a_finite_population():
    data, sample = answered(0.5)
    mean = data.dense[:, :N_ITEMS].mean(axis=1)
    table = audit_data(sample, published=scores(mean), tolerance=0.0).published
    n = table["n_responses"].to_numpy()
    p = table["p_correct"].to_numpy()
    expected = np.sqrt(p * (1 - p) / (n - 1) * (1 - n / N_ITEMS))
    np.testing.assert_allclose(table["standard_error"], expected)
    # The definition: errors of averages of samples without replacement.
    rng, block = np.random.default_rng(0), data.dense[0, :N_ITEMS]
    draws = [block[rng.permutation(N_ITEMS)[: n[0]]].mean() for _ in range(4000)]
    assert np.std(draws) == pytest.approx(expected[0], rel=0.06)


def test_samples_are_accused_in_one_of_a_hundred_matrices():
    n_accused = 0
    for seed in range(30):
        data, rng = clean(seed, sizes=(N_ITEMS, 300)), np.random.default_rng(seed)
        mean = data.dense[:, :N_ITEMS].mean(axis=1)
        is_gone = rng.random(data.dense.shape) >= 0.4
        sample = with_rows(data, np.where(is_gone, -1, data.dense))
        found = audit_data(sample, published=scores(mean), tolerance=0.0).accusations
        n_accused += len(of_kind(found, "contradicts_published"))
    assert n_accused <= 2
    shifted = audit_data(sample, published=scores(np.minimum(mean + 0.25, 1))).accusations
    assert len(of_kind(shifted, "contradicts_published")) >= 3


def test_rounding_is_that_of_the_file():
    def rounding(values):
        return float(check_published(scores(values))["rounding"].iloc[0])

    assert rounding([91.2, 88.0]) == pytest.approx(0.0005)
    assert rounding([91, 88]) == pytest.approx(0.005)
    assert rounding([0.912, 0.1 + 0.2]) == pytest.approx(0.0005)
    assert rounding([0.9, 0.5]) == pytest.approx(0.005)
    assert rounding([1 / 3]) < 1e-6


def test_what_the_data_lack_is_said_and_kept():
    data = clean(5, sizes=(N_ITEMS, 300))
    declared = pd.DataFrame(
        {
            "model_id": ["nobody", "m0", "m1"],
            "benchmark": ["b0", "b9", "b1"],
            "score": [50.0, 50.0, 100 * data.dense[1, N_ITEMS:].mean()],
        }
    )
    with pytest.warns(IrtjaxWarning, match="2 published scores of 3 .* 'nobody'; .* 'b9'"):
        audit = audit_data(data, published=declared)
    assert audit.not_found == ("nobody in b0", "m0 in b9")
    assert audit.published["n_responses"].tolist() == [0, 0, 300]
    assert audit.published["p_correct"].isna().tolist() == [True, True, False]
    assert audit.accusations.empty
    with pytest.raises(InputError, match=r"no published score .* 'b9'.* are 'b0', 'b1'"):
        audit_data(data, published=declared.iloc[:2])


def test_cells_held_out_of_a_fit_count():
    data = clean(5, sizes=(N_ITEMS, 300))
    train, cells = holdout(data, 0.2, seed=0)
    np.testing.assert_array_equal(with_cells(train, cells).to_dense(), data.to_dense())
    assert with_cells(data, cells) is data


@pytest.mark.parametrize(
    "published, said",
    [
        ({"model_id": ["m0"], "score": [0.5]}, "benchmark"),
        ({"model_id": ["m0"], "benchmark": ["b0"], "score": [140]}, "'m0' in 'b0' is 140"),
        ({"model_id": ["m0"], "benchmark": ["b0"], "score": ["good"]}, "'good'"),
        ({"model_id": ["m0"] * 2, "benchmark": ["b0"] * 2, "score": [0.5, 0.6]}, "twice"),
        (
            {"model_id": ["m0", "m1", "m2"], "benchmark": ["b0"] * 3, "score": [0.5, 45, 0.6]},
            "1 of the 3 .* above 1 .that of 'm1' in 'b0' is 45.*, most others below: give all",
        ),
    ],
)
def test_bad_published_scores_are_refused(published, said):
    with pytest.raises(InputError, match=said):
        audit_data(clean(0, sizes=(50,)), published=pd.DataFrame(published))


def test_a_tolerance_is_a_share():
    with pytest.raises(InputError, match="tolerance must be a number from 0 to 1"):
        audit_data(clean(0, sizes=(50,)), published=scores([0.5]), tolerance=3)
