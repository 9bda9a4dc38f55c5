"""The picture of a training shows what happened, also to one that diverged."""

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from irtjax.report.loss_curves import _draw, write_loss_curves

GOOD = {"training": [0.7, 0.6], "validation": [0.65, 0.61], "refit": [0.7]}
NONE = {"training": [], "validation": [], "refit": []}


def _axes(curves, note=None):
    axes = Figure().subplots()
    _draw(axes, curves, note)
    return axes


def test_losses_alike_have_a_plain_axis_and_the_best_epoch_marked():
    axes = _axes(GOOD)
    assert axes.get_yscale() == "linear"
    assert [text.get_text() for text in axes.texts] == ["best: epoch 2, 0.61"]
    assert axes.get_title(loc="left") == ""


def test_losses_of_several_orders_have_a_log_axis():
    axes = _axes(GOOD | {"validation": [5.9e7, 1337.0]}, "lower network learning_rate")
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left") == "lower network learning_rate"


def test_without_an_epoch_the_picture_says_so():
    axes = _axes(NONE, "The training diverged in epoch 1.")
    assert "nothing to draw" in axes.texts[0].get_text()


@pytest.mark.parametrize("curves", [GOOD, NONE])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_written(curves, suffix, tmp_path):
    path = tmp_path / f"loss.{suffix}"
    write_loss_curves(curves, path, note="a sentence " * 30)
    assert path.stat().st_size > 2000
    if suffix == "png":
        assert matplotlib.image.imread(path).std() > 0
