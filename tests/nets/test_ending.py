"""What the status and the reason of a training are, by its curves."""

import dataclasses

import pytest

from irtjax.fit.driver import Progress, Status
from irtjax.nets.ending import Training, ended
from irtjax.nets.settings import Network

LOSSES = [0.6, 0.5, 0.51, 0.52]
NETWORK = Network(patience=2, epochs=9)


def _training(losses=LOSSES, **changes):
    best = losses.index(min(losses)) + 1
    scores = [-loss for loss in losses]
    network = changes.pop("network", NETWORK)
    one = Training(network, best, losses, losses, losses[:best], scores, (-0.7, 0.7), (-0.69, 0.69))
    return dataclasses.replace(one, **changes)


def _told(training, status=Status.converged):
    found = ended(training, Progress(status=status, reason="the driver's"))
    return found.status, found.reason


FEW = dataclasses.replace(NETWORK, epochs=4)
CASES = {
    "patience": (_training(), "converged", "no better in the 2 since (patience)"),
    "cap": (
        _training([0.6, 0.55, 0.5, 0.45], network=FEW),
        "max_steps",
        "4 are the most: the last still gained; raise network epochs",
    ),
    "fewer than its patience": (
        _training([0.6, 0.5], network=dataclasses.replace(FEW, epochs=2)),
        "max_steps",
        "raise network epochs",
    ),
    "settled at the cap": (
        _training([0.6, 0.5, 0.501, 0.4999], network=FEW),
        "converged",
        "hardly rose in the last 2 of 4",
    ),
    "the driver's end": (_training([0.6, 0.5]), "converged", "the driver's"),
    "worse than the mean": (
        _training([0.72, 0.71, 0.73, 0.74]),
        "stalled",
        "0.71 at best, 0.69 by the mean, 0.7 before the training, 0.71 after the refit",
    ),
    "thrown about": (_training([200.0, 183.0, 190.0, 190.0]), "diverged", "lower network learning"),
    "lost in the refit": (_training(refit=[0.6, 5.0]), "diverged", "5 after the refit"),
    "no better by F1": (
        _training(
            network=dataclasses.replace(NETWORK, stop_by="f1"),
            scores=[0.5, 0.6, 0.5, 0.5],
            mean=(0.6, 0.69),
        ),
        "stalled",
        "Change network learning_rate",
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_status_is_what_the_curves_show(name):
    training, status, reason = CASES[name]
    found, told = _told(training)
    assert found.name == status
    assert reason in told


def test_not_finite_names_the_epoch_and_what_is_kept():
    for training, where, kept in (
        (_training([0.6, 0.5], refit=[]), "epoch 3:", "epoch 2, the best until then;"),
        (_training(refit=[]), "epoch 1 of the refit:", "epoch 2, the best until then;"),
        (_training(), "epoch 3 of the refit:", "epoch 2 of the refit;"),
    ):
        status, reason = _told(training, Status.diverged)
        assert status is Status.diverged
        assert f"diverged in {where}" in reason
        assert f"are of {kept} lower network learning_rate (0.003)" in reason


def test_a_limit_of_steps_is_the_drivers():
    assert _told(_training(), Status.max_steps) == (Status.max_steps, "the driver's")
