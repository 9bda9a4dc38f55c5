"""The picture of a training."""

import pytest

from irtjax.report.loss_curves import write_loss_curves

CURVES = {"training": [0.6, 0.5, 0.45], "validation": [0.55, 0.5, 0.52], "refit": [0.6, 0.5]}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_is_drawn_with_the_best_epoch(tmp_path, suffix):
    path = tmp_path / f"loss.{suffix}"
    write_loss_curves(CURVES, path)
    assert path.stat().st_size > 2000
    if suffix == "png":
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_training_that_ended_at_once_is_an_empty_picture(tmp_path):
    write_loss_curves({"training": [], "validation": [], "refit": []}, tmp_path / "loss.png")
    assert (tmp_path / "loss.png").stat().st_size > 1000
