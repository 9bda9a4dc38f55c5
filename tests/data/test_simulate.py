"""Simulated responses against their own truth, by an independent float64 formula."""

import numpy as np
import pytest
from scipy.special import expit

from irtjax.data.simulate import simulate
from irtjax.data.truth import Truth
from irtjax.errors import InputError
from irtjax.model.spec import FAMILIES, ModelSpec
from tests.tolerances import close


def _oracle(truth):
    """Models x items probabilities in float64, one item at a time."""
    probability = np.empty((truth.n_models, truth.n_items))
    for j in range(truth.n_items):
        logit = truth.theta.astype(float) @ truth.slope[j].astype(float) + float(truth.intercept[j])
        if truth.effects is not None:
            logit = logit + truth.effects[:, truth.item_benchmark[j]]
        low, high = float(truth.guessing[j]), float(truth.feasibility[j])
        probability[:, j] = low + (high - low) * expit(logit)
    return probability


@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.parametrize("effect_sd", [0.0, 0.7])
def test_responses_follow_the_truth(family, dims, effect_sd):
    made = simulate(
        ModelSpec(family, dims),
        n_models=60,
        n_items=700,
        n_benchmarks=3,
        effect_sd=effect_sd,
        seed=1,
    )
    expected = _oracle(made.truth)
    cells = made.data.cells()
    got = made.truth.cell_probability(cells)
    close(got, expected[cells.model_index, cells.item_index], dtype=np.float32)
    residual = made.data.to_dense() - expected
    variance = expected * (1 - expected)
    for axis in (None, 0, 1):
        z = residual.sum(axis=axis) / np.sqrt(variance.sum(axis=axis))
        assert np.abs(z).max() < 4.5
    squared = residual**2 / variance  # mean 1 when each cell has its own probability
    assert squared.mean() == pytest.approx(1, abs=4.5 * squared.std() / np.sqrt(squared.size))


def test_family_fixes_what_it_fixes():
    made = {f: simulate(ModelSpec(f, 2), n_models=3, n_items=50).truth for f in FAMILIES}
    assert np.all(made["1pl"].slope == 1)
    assert len(np.unique(made["2pl"].slope)) == 100
    for family in ("1pl", "2pl"):
        assert np.all(made[family].guessing == 0)
    for family in ("1pl", "2pl", "3pl"):
        assert np.all(made[family].feasibility == 1)
    for family in ("3pl", "4pl"):
        assert np.all(made[family].guessing > 0)
    assert np.all(made["4pl"].feasibility < 1)
    assert np.all(made["4pl"].feasibility > made["4pl"].guessing)


def test_shared_asymptotes_are_one_a_benchmark():
    truth = simulate(
        ModelSpec("4pl"), n_models=3, n_items=60, n_benchmarks=4, shared_asymptotes=True
    ).truth
    for values in (truth.guessing, truth.feasibility):
        assert len(np.unique(values)) == 4
        assert all(len(np.unique(values[truth.item_benchmark == g])) == 1 for g in range(4))


def test_a_benchmark_has_one_major_dim_and_some_negative_slopes():
    truth = simulate(
        ModelSpec(dims=2), n_models=3, n_items=20_000, n_benchmarks=4, negative_share=0.1
    ).truth
    for g in range(4):
        slope = truth.slope[truth.item_benchmark == g]
        major, minor = slope[:, g % 2], slope[:, 1 - g % 2]
        assert np.median(np.abs(major)) == pytest.approx(1, abs=0.04)
        assert np.median(np.abs(minor)) == pytest.approx(0.35, abs=0.02)
        assert np.mean(major < 0) == pytest.approx(0.1, abs=0.02)
        assert np.mean(minor < 0) == pytest.approx(0.3, abs=0.03)


def test_one_benchmark_mixes_the_dims():
    slope = np.abs(simulate(ModelSpec(dims=2), n_models=2, n_items=5_000).truth.slope)
    assert np.mean(slope[:, 0] > slope[:, 1]) == pytest.approx(0.5, abs=0.04)


def test_ids_and_metadata():
    made = simulate(ModelSpec(), n_models=11, n_items=7, n_benchmarks=2)
    assert made.data.model_ids[[0, 10]].tolist() == ["model-00", "model-10"]
    assert made.data.item_ids.tolist() == [f"benchmark-0/{k}" for k in range(4)] + [
        f"benchmark-1/{k}" for k in range(3)
    ]
    codes, names = made.data.groups("benchmark")
    assert names == ["benchmark-0", "benchmark-1"]
    np.testing.assert_array_equal(codes, made.truth.item_benchmark)
    assert made.truth.item_ids.tolist() == made.data.item_ids.tolist()
    assert made.truth.model_ids.tolist() == made.data.model_ids.tolist()


@pytest.mark.parametrize("missing", [0.3, 0.9])
def test_missing_cells_leave_the_others_as_they_were(missing):
    sizes = {"n_models": 40, "n_items": 900, "n_benchmarks": 3, "seed": 2}
    whole = simulate(ModelSpec(), **sizes).data.to_dense()
    thinned = simulate(ModelSpec(), **sizes, missing=missing).data
    assert (thinned.sparse is not None) == (missing > 0.8)
    matrix = thinned.to_dense()
    observed = matrix >= 0
    sd = np.sqrt(missing * (1 - missing) / whole.size)
    assert 1 - observed.mean() == pytest.approx(missing, abs=4 * sd)
    np.testing.assert_array_equal(matrix[observed], whole[observed])


@pytest.mark.parametrize("missing", [0.4, 0.85])
def test_missing_blocks_are_whole_and_leave_no_one_without_any(missing):
    data = simulate(
        ModelSpec(dims=2),
        n_models=30,
        n_items=400,
        n_benchmarks=20,
        missing=missing,
        missing_pattern="blocks",
    ).data
    observed = (data.to_dense() >= 0).reshape(30, 20, 20)
    is_whole, is_empty = observed.all(axis=2), ~observed.any(axis=2)
    assert np.all(is_whole | is_empty)
    assert is_empty.sum() == round(missing * 600)
    assert is_whole.any(axis=0).all()
    assert is_whole.any(axis=1).all()


def test_block_size_does_not_matter(monkeypatch):
    options = {"n_models": 20, "n_items": 333, "n_benchmarks": 3, "missing": 0.2, "effect_sd": 0.5}
    spec = ModelSpec("4pl", 2)
    whole = simulate(spec, **options).data.to_dense()
    monkeypatch.setattr("irtjax.data.truth._CELLS_PER_BLOCK", 20 * 50)
    np.testing.assert_array_equal(simulate(spec, **options).data.to_dense(), whole)


def test_seed_decides():
    first, again, other = (
        simulate(ModelSpec(), n_models=9, n_items=99, seed=s).data.to_dense() for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


@pytest.mark.parametrize("effect_sd", [0.0, 1.0])
def test_truth_is_the_same_after_save_and_load(tmp_path, effect_sd):
    truth = simulate(
        ModelSpec("4pl", 2), n_models=5, n_items=30, n_benchmarks=2, effect_sd=effect_sd
    ).truth
    truth.save(tmp_path / "truth.npz")
    loaded = Truth.load(tmp_path / "truth.npz")
    for name, value in vars(truth).items():
        if value is None:
            assert getattr(loaded, name) is None
        else:
            np.testing.assert_array_equal(getattr(loaded, name), value, strict=True)


def test_another_npz_is_not_a_truth(tmp_path):
    np.savez(tmp_path / "other.npz", theta=np.zeros((2, 1)))
    with pytest.raises(InputError, match=r"other\.npz is not a truth .* slope, intercept"):
        Truth.load(tmp_path / "other.npz")
    with pytest.raises(InputError, match="does not exist"):
        Truth.load(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("theta,slope")
    with pytest.raises(InputError, match="is not an NPZ file"):
        Truth.load(tmp_path / "text.npz")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_models": 0}, "n_models must be a whole number of at least 1, not 0"),
        ({"n_models": 3.0}, "n_models must be a whole number of at least 1, not 3.0"),
        ({"missing": "0.1"}, "missing must be a number, not '0.1'"),
        ({"effect_sd": float("nan")}, "effect_sd must be a number, not nan"),
        ({"spec": "2pl"}, "the spec must be a ModelSpec, not '2pl'"),
        ({"n_benchmarks": 99}, "n_benchmarks must be a whole number from 1 to 20, not 99; every"),
        ({"missing": 1.0}, r"missing must be a share in \[0, 1\)"),
        ({"missing_pattern": "rows"}, "missing_pattern 'rows' is not known"),
        ({"negative_share": -0.1}, "negative_share"),
        ({"effect_sd": -1.0}, "effect_sd"),
        ({"missing": 0.9, "missing_pattern": "blocks"}, "at most"),
    ],
)
def test_refuses(changes, message):
    options = {"spec": ModelSpec(), "n_models": 10, "n_items": 20, "n_benchmarks": 2} | changes
    with pytest.raises(InputError, match=message):
        simulate(**options)
