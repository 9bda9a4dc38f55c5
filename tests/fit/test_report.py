"""What a report says of dims: one sentence a flag, however many dims have it."""

import dataclasses

import numpy as np
import pytest

from irtjax.fit.driver import Progress, Status
from irtjax.fit.report import _dim_warnings, fit_report, steps_taken
from tests.fit.fitting import fitted


def _reported(slopes, abilities):
    """The report of a two-dim fit with some slopes and abilities scaled away."""
    fit = fitted("2pl-2d")
    mean = np.array(fit.parameters.mean)
    mean[..., :2] *= slopes
    ability = np.array(fit.parameters.ability)
    for k, is_of_one in enumerate(abilities):
        ability[1:, k] *= 1e-3 if is_of_one else 1
    parameters = dataclasses.replace(fit.parameters, mean=mean, ability=ability)
    return fit_report(fit.data, parameters, Progress(status=Status.converged), {}, {})


@pytest.mark.parametrize(
    "slopes, said",
    [
        ([1, 1], []),
        ([1, 1e-4], ["dim 2 explains 0.00% of the items' variance: the data show no such ability"]),
        ([1e-4, 1e-4], ["dims 1 and 2 explain 0.00% and 0.00% of the items' variance"]),
    ],
)
def test_dims_without_signal_are_one_sentence(slopes, said):
    report = _reported(slopes, [False, False])
    assert len(report["warnings"]) == len(said)
    assert all(text in note for text, note in zip(said, report["warnings"], strict=True))
    flags = [dim["flags"] for dim in report["dimensions"]]
    assert flags == ["no_signal" if slope < 1 else "" for slope in slopes]


def test_many_dims_are_listed_in_words():
    dims = [{"explained_variance": 0.0, "flags": "no_signal"}] * 3
    (text,) = _dim_warnings(dims, [])
    assert text.startswith("dims 1, 2 and 3 explain 0.00%, 0.00% and 0.00% of the items' variance")
    alike, weak = _dim_warnings(dims, [0, 2])
    assert alike.startswith("all models have the same ability in dims 1 and 3: the data")
    assert weak.startswith("dim 2 explains 0.00% of the items' variance")


def test_one_dim_cannot_be_made_fewer():
    dim = {"explained_variance": 1e-4, "top_model": "gpt", "top_model_share": 0.76}
    (of_one,) = _dim_warnings([dim | {"flags": "one_model"}], [])
    assert of_one == (
        "dim 1 is carried by one model ('gpt', 76% of its variance): it describes that model, not "
        "an ability; check that model's responses, leave it out and compare"
    )
    for alike in ([], [0]):
        (text,) = _dim_warnings([dim | {"flags": "no_signal"}], alike)
        assert "fewer" not in text


def test_dims_of_single_models_are_one_sentence():
    report = _reported([1, 1], [False, True])
    assert report["warnings"] == [
        "dim 2 is carried by one model ('model-00', 100% of its variance): it describes that "
        "model, not an ability; check that model's responses, leave it out and compare, or use "
        "fewer dims"
    ]
    both = _reported([1, 1e-4], [True, True])
    assert [note.partition(" (")[0] for note in both["warnings"]][1] == (
        "dims 1 and 2 are each carried by one model"
    )
    assert both["dimensions"][1]["flags"] == "no_signal;one_model"


def test_a_diverged_fit_says_nothing_of_its_dims():
    fit = fitted("2pl-2d")
    mean = np.array(fit.parameters.mean)
    mean[..., 1] = 0
    parameters = dataclasses.replace(fit.parameters, mean=mean)
    ended = Progress(status=Status.diverged, reason="why")
    assert fit_report(fit.data, parameters, ended, {}, {})["warnings"] == ["diverged: why"]


@pytest.mark.parametrize(
    "report, said",
    [
        ({"n_steps": 1200}, "1,200 steps"),
        ({"n_steps": 9, "loss_curves": {"validation": [1] * 6, "refit": [1] * 2}},
         "6 epochs, 2 more of the refit"),
        ({"n_steps": 1, "loss_curves": {"validation": [1], "refit": []}}, "1 epoch"),
    ],
)  # fmt: skip
def test_a_network_has_taken_epochs(report, said):
    assert steps_taken(report) == said
