"""The picture of a training shows what happened, also to one that diverged."""

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from irtjax.report.loss_curves import _draw, write_loss_curves

GOOD = {"training": [0.7, 0.6], "validation": [0.65, 0.61], "refit": [0.7]}
NONE = {"training": [], "validation": [], "refit": []}


def _panels(curves, note=None, stopping=None):
    figure = Figure(layout="constrained")
    _draw(figure, curves, stopping, note)
    return figure, figure.axes


def _named(axes):
    return axes.get_legend_handles_labels()[1]


def test_losses_alike_have_a_plain_axis_and_the_best_epoch_marked():
    _, [axes] = _panels(GOOD)
    assert axes.get_yscale() == "linear"
    assert "best: epoch 2, 0.61" in _named(axes)
    assert axes.get_title(loc="left") == ""


def test_losses_of_several_orders_have_a_log_axis():
    _, [axes] = _panels(GOOD | {"validation": [5.9e7, 1337.0]}, "lower network learning_rate")
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left") == "lower network learning_rate"


def test_the_epoch_best_by_another_score_is_marked_beside_that_score():
    stopping = {"by": "f1", "scores": [0.8, 0.7], "epoch": 1}
    _, [losses, scores] = _panels(GOOD, stopping=stopping)
    assert _named(scores) == ["best: epoch 1, 0.8"]
    assert len(_named(losses)) == 3
    assert scores.get_ylabel() == "F1 of the validation responses"
    for axes in (losses, scores):
        assert [1, 1] in [list(line.get_xdata()) for line in axes.lines]


def test_no_epoch_is_marked_where_none_was_kept():
    _, [axes] = _panels(GOOD, stopping={"by": "log_loss", "scores": [-0.65, -0.61], "epoch": 0})
    assert len(axes.lines) == len(_named(axes)) == 3


def test_an_epoch_alone_has_a_whole_tick_and_the_legend_is_outside():
    figure, [axes] = _panels({name: values[:1] for name, values in GOOD.items()})
    figure.canvas.draw()
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]
    assert figure.legends[0].get_window_extent().y1 < axes.get_window_extent().y0


def test_without_an_epoch_the_picture_says_so():
    _, [axes] = _panels(NONE, "The training diverged in epoch 1.")
    assert "nothing to draw" in axes.texts[0].get_text()


@pytest.mark.parametrize("curves", [GOOD, NONE])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_written(curves, suffix, tmp_path):
    path = tmp_path / f"loss.{suffix}"
    write_loss_curves(curves, path, note="a sentence " * 30)
    assert path.stat().st_size > 2000
    if suffix == "png":
        assert matplotlib.image.imread(path).std() > 0
