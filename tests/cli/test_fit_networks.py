"""`irtjax fit --estimator psn`: what is refused before anything is read, and the help."""

import pytest


@pytest.mark.parametrize(
    "options, message",
    [
        (("--anchors", "absent"), "anchors do not go with estimator psn"),
        (("--network", "batch_size=few"), "network batch_size must be a whole number, not 'few'"),
        (("--network", "learning_rate=0"), "network learning_rate must be above 0"),
    ],
)
def test_what_no_network_takes_is_refused_before_anything_is_read(
    irtjax, options, message, tmp_path
):
    done = irtjax("fit", "nowhere.csv", "--estimator", "psn", *options, "--out", "run")
    assert done.code == 2
    assert message in done.err
    assert len(done.error_lines) == 1
    assert not (tmp_path / "run").exists()
