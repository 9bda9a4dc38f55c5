"""What the status and the reason of a training are, by its curves."""

import dataclasses

import numpy as np
import pytest

from irtjax.fit.driver import Progress, Status
from irtjax.nets.ending import Training, ended
from irtjax.nets.settings import Network
from irtjax.nets.whole import Whole, whole

LOSSES = [0.6, 0.5, 0.51, 0.52]
NETWORK = Network(patience=2, epochs=9).for_responses(2_000)
GOOD = Whole(-50.0, 0.5, {"the mean": 0.69, "each model's mean": 0.68}, 0.55, 0.551, 0.01)
MEANS = ((-0.69, 0.69), (-0.68, 0.68), (-0.685, 0.685))


def _training(losses=LOSSES, **changes):
    best = losses.index(min(losses)) + 1
    scores = [-loss for loss in losses]
    network = changes.pop("network", NETWORK)
    refit = losses[:best] if network.refit else []
    one = Training(network, best, losses, losses, refit, scores, (-0.7, 0.7), MEANS, 900, GOOD)
    return dataclasses.replace(one, **changes)


def _told(training, status=Status.converged):
    found = ended(training, Progress(status=status, reason="the driver's"))
    return found.status, found.reason


FEW = dataclasses.replace(NETWORK, epochs=4)
F1 = dataclasses.replace(NETWORK, stop_by="f1")
KEPT = dataclasses.replace(NETWORK, refit=False)
OF_F1 = ((0.6, 0.69), (0.65, 0.68), (0.62, 0.69))
CASES = {
    "patience": (_training(), "converged", "no better in the 2 since (patience)"),
    "cap": (
        _training([0.6, 0.55, 0.5, 0.45], network=FEW),
        "max_steps",
        "after epoch 4, the last that network epochs allows, and gained up to it (trained again",
    ),
    "cap within its patience": (
        _training([0.6, 0.55, 0.45, 0.5], network=FEW),
        "max_steps",
        "after epoch 3, and the 4 that network epochs allows are over before its patience (2) is",
    ),
    "fewer than its patience": (
        _training([0.6, 0.5], network=dataclasses.replace(FEW, epochs=2)),
        "max_steps",
        "raise network epochs",
    ),
    "settled at the cap": (
        _training([0.6, 0.5, 0.501, 0.4999], network=FEW),
        "converged",
        "hardly gained in the last 2 of 4",
    ),
    "the driver's end": (_training([0.6, 0.5]), "converged", "the driver's"),
    "worse than the mean": (
        _training([0.72, 0.71, 0.73, 0.74]),
        "stalled",
        "no better than each model's mean does: log-loss 0.71 at best, 0.69 by the mean, 0.68 by "
        "each model's mean, 0.685 by each item's mean, 0.7 before the training; log-loss 0.71 in "
        "the refit. Try a smaller network batch_size (32), ",
    ),
    "worse than the models' means only": (
        _training([0.6, 0.5, 0.51, 0.52], means=((-0.69, 0.69), (-0.48, 0.48), (-0.6, 0.6))),
        "stalled",
        "no better than each model's mean",
    ),
    "worse than the items' means only": (
        _training([0.6, 0.5, 0.51, 0.52], means=((-0.69, 0.69), (-0.6, 0.6), (-0.48, 0.48))),
        "stalled",
        "no better than each item's mean",
    ),
    "no worse than the items' means but by chance": (
        _training([0.6, 0.5, 0.51, 0.52], means=((-0.69, 0.69), (-0.6, 0.6), (-0.495, 0.495))),
        "converged",
        "best after epoch 2",
    ),
    "better than the mean by chance": (
        _training([0.689, 0.688, 0.69, 0.69], means=((-0.69, 0.69),) * 3),
        "stalled",
        "hardly better than the mean",
    ),
    "thrown about": (_training([200.0, 183.0, 190.0, 190.0]), "diverged", "lower network learning"),
    "thrown about by weight decay": (
        _training(
            [200.0, 183.0, 190.0, 190.0], network=dataclasses.replace(NETWORK, weight_decay=50)
        ),
        "diverged",
        "lower network weight_decay (50), else network learning_rate",
    ),
    "lost in the refit": (_training(refit=[0.6, 5.0]), "diverged", "5 in the refit"),
    "no better by F1": (
        _training(network=F1, scores=[0.5, 0.64, 0.5, 0.5], means=OF_F1),
        "stalled",
        "than each model's mean does: F1 0.64 at best, 0.6 by the mean, 0.65 by each model's mean",
    ),
    "better by F1": (
        _training(network=F1, scores=[0.5, 0.66, 0.5, 0.5], means=OF_F1),
        "converged",
        "The validation F1 was best after epoch 2",
    ),
    "biased after the refit": (
        _training(whole=dataclasses.replace(GOOD, predicted=0.49)),
        "stalled",
        "After 2 epochs of refit the network's predictions are 0.490 on average where 0.550 of "
        "the responses are right, more than chance explains. Try a smaller",
    ),
    "off by no more than chance": (
        _training(whole=dataclasses.replace(GOOD, predicted=0.49, error=0.02)),
        "converged",
        "best after epoch 2",
    ),
    "no better than the mean in the end": (
        _training(network=KEPT, whole=dataclasses.replace(GOOD, log_loss=0.685)),
        "stalled",
        "After the training the network predicts all responses no better than each model's mean "
        "does: log-loss 0.685, 0.68 by each model's mean.",
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_status_is_what_the_curves_show(name):
    training, status, reason = CASES[name]
    found, told = _told(training)
    assert found.name == status
    assert reason in told


def test_not_finite_names_the_epoch_what_it_was_and_what_is_kept():
    for training, where, kept in (
        (_training([0.6, 0.5], refit=[]), "epoch 3:", "epoch 2, the best until then;"),
        (_training(refit=[]), "epoch 1 of the refit:", "epoch 2, the best until then;"),
        (_training(), "epoch 3 of the refit:", "epoch 2 of the refit;"),
    ):
        status, reason = _told(training, Status.diverged)
        assert status is Status.diverged
        assert f"diverged in {where} its loss was not finite" in reason
        assert f"are of {kept} lower network learning_rate" in reason


@pytest.mark.parametrize(
    "names, said",
    [
        (("weights.item_tower['out']['bias']", "best.item_table"), "the items' tower was not"),
        (
            ("weights.model_table", "weights.item_table"),
            "the models' rows and the items' rows were",
        ),
        (("moments.rest[1].mu.model_table",), "Adam's moments were not"),
    ],
)
def test_not_finite_is_said_in_words(names, said):
    progress = Progress(status=Status.diverged, not_finite=names)
    assert f"epoch 1 of the refit: {said}" in ended(_training(refit=[]), progress).reason


def test_the_whole_is_of_sums_by_item():
    rng = np.random.default_rng(1)
    p, y = rng.uniform(0.1, 0.9, (2, 40))
    weight = rng.integers(1, 4, 40)
    of_each = np.array([np.ones(40), y, p, p * (1 - p), y * np.log(p) + (1 - y) * np.log(1 - p)])
    sums = (weight * of_each).reshape(5, 8, 5).sum(axis=2)
    n, right = sums[:2].reshape(2, 2, 4).sum(axis=2)
    models = np.array([np.append(n, 0), np.append(right, 0)])
    found = whole(sums, models)
    average = {"weights": weight}
    assert found.log_loss == pytest.approx(-np.average(of_each[4], **average))
    assert found.log_likelihood == pytest.approx(np.sum(weight * of_each[4]))
    assert found.response == pytest.approx(np.average(y, **average))
    assert found.predicted == pytest.approx(np.average(p, **average))
    assert found.error == pytest.approx(np.sqrt(np.sum(weight * p * (1 - p))) / weight.sum())

    def by(n, right):
        p = (right + 0.5) / (n + 1)
        return -np.sum(right * np.log(p) + (n - right) * np.log(1 - p)) / n.sum()

    # Items have some 10 answers: too few.
    assert list(found.by_means) == ["the mean", "each model's mean"]
    assert found.by_means["the mean"] == pytest.approx(by(weight.sum(), np.sum(weight * y)))
    assert found.by_means["each model's mean"] == pytest.approx(by(n, right))


def test_a_limit_of_steps_is_the_drivers():
    assert _told(_training(), Status.max_steps) == (Status.max_steps, "the driver's")
