"""`irtjax fit --rotation`: oblique dims from the command line, the same as from Python."""

import json

import numpy as np
import pandas as pd
import pytest

import irtjax as ij


def test_an_oblique_frame_is_the_one_that_python_gives(irtjax, responses, tmp_path):
    plain = ("fit", responses, "--dims", "2", "--max-steps", "10", "--quiet", "--out")
    assert irtjax(*plain, "plain").code == 0
    done = irtjax(*plain, "run", "--rotation", "geomin")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "run" / "fit.json").read_text())
    assert report["rotation"]["method"] == "geomin"
    expected = ij.rotate(ij.FitResult.load(tmp_path / "plain"), "geomin")
    np.testing.assert_allclose(
        report["ability_correlations"], expected.ability_correlations(), atol=1e-6
    )
    written = pd.read_csv(tmp_path / "run" / "models.csv")["dim2_ability"]
    np.testing.assert_allclose(written, expected.abilities()["dim2_ability"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--dims", "2", "--rotation", "promax"), "--rotation promax is not known; use one of"),
        (("--rotation", "geomin"), "--rotation needs --dims 2 or more, without --loadings"),
    ],
)
def test_what_cannot_be_rotated_is_refused_before_anything_is_read(
    irtjax, options, message, tmp_path
):
    done = irtjax("fit", "nowhere.csv", *options, "--out", "run")
    assert done.code == 2
    assert message in done.err
    assert len(done.error_lines) == 1
    assert not (tmp_path / "run").exists()
