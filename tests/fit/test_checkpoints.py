"""Interrupted and resumed is uninterrupted, to the last bit; another fit is refused by name."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.checkpoints import Checkpoints, _check_same, fingerprint
from irtjax.fit.report import plain_settings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets.psn import Psn
from irtjax.nets.settings import Network
from tests.fit.conformance import MEMBERS, NETWORK, fitted_member
from tests.fit.fitting import KINDS, assert_same_bits, fitted, quiet_fit, simulated

KIND = "2pl-2d"


def _fit(data=None, spec=None, **settings):
    more = KINDS[KIND][1] | settings
    return quiet_fit(simulated(KIND).data if data is None else data, spec or KINDS[KIND][0], **more)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The folder of a fit that was stopped after 15 steps, saved every 10."""
    folder = tmp_path_factory.mktemp("steps")
    stopped = _fit(checkpoints=Checkpoints(folder, every=10), max_steps=15)
    assert stopped.status == "max_steps"
    assert sorted(int(path.name) for path in folder.iterdir()) == [10]
    return folder


def _copy(folder, target):
    for path in folder.rglob("*"):
        if path.is_file():
            to = target / path.relative_to(folder)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
    return target


def test_resumed_is_uninterrupted(interrupted, tmp_path):
    resumed = _fit(checkpoints=Checkpoints(_copy(interrupted, tmp_path), every=0, resume=True))
    whole = fitted(KIND)
    assert resumed.report["n_steps"] == whole.report["n_steps"] > 15
    assert resumed.report["trace"] == whole.report["trace"]
    assert resumed.status == whole.status
    assert_same_bits(resumed.parameters, whole.parameters)


SETTINGS = {"dense": {"updates": "dense", "refit": False}, "f1": {"stop_by": "f1"}}


@pytest.mark.parametrize(
    "name", ["models-empirical", "joint-2pl", "psn-2pl", "deep-irt", "psn-dense", "psn-f1"]
)
def test_every_estimator_resumes(name, tmp_path):
    member, _, kind = MEMBERS.get(name, MEMBERS["psn-2pl"]), *name.split("-")
    more = {"network": dataclasses.replace(NETWORK, **SETTINGS[kind])} if kind in SETTINGS else {}
    whole = fitted_member(name) if name in MEMBERS else member.fit(**more)
    n_steps = whole.report["n_steps"] - 1
    member.fit(**more, checkpoints=Checkpoints(tmp_path, every=2), max_steps=n_steps)
    resumed = member.fit(**more, checkpoints=Checkpoints(tmp_path, resume=True))
    assert resumed.report["trace"] == whole.report["trace"]
    assert (resumed.status, resumed.report["reason"]) == (whole.status, whole.report["reason"])
    assert_same_bits(resumed.parameters, whole.parameters)


def test_a_killed_process_leaves_what_can_be_resumed(tmp_path):
    script = f"""
        import os, signal
        from pathlib import Path
        from irtjax.fit.checkpoints import Checkpoints
        from tests.fit.test_checkpoints import _fit

        def kill(progress):
            if progress.n_steps >= 20:
                os.kill(os.getpid(), signal.SIGKILL)

        _fit(checkpoints=Checkpoints(Path({str(tmp_path)!r}), every=5), on_look=kill)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    resumed = _fit(checkpoints=Checkpoints(tmp_path, every=5, resume=True))
    assert_same_bits(resumed.parameters, fitted(KIND).parameters)
    assert resumed.report["trace"] == fitted(KIND).report["trace"]


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(InputError, match="nothing to resume"):
        _fit(checkpoints=Checkpoints(tmp_path / "none", resume=True))


def _changed_cell():
    data = simulated(KIND).data
    dense = data.to_dense().copy()
    dense[0, 0] = 1 - max(dense[0, 0], 0)
    return ResponseMatrix.from_dense(
        dense,
        model_ids=data.model_ids.tolist(),
        item_ids=data.item_ids.tolist(),
        item_metadata=data.item_metadata,
    )


def _renamed_item():
    data = simulated(KIND).data
    ids = data.item_ids.copy()
    ids[3] = "another"
    return data.replace(item_ids=ids)


def _other_benchmarks():
    data = simulated(KIND).data
    names = data.item_metadata["benchmark"].to_numpy().copy()
    names[:20] = "benchmark-3"
    return data.replace(item_metadata=pd.DataFrame({"benchmark": names}))


@pytest.mark.parametrize(
    "change, name",
    [
        ({"data": _changed_cell}, "data"),
        ({"data": _renamed_item}, "data"),
        ({"data": _other_benchmarks}, "data"),
        ({"seed": 3}, "seed is 0, now 3;"),
        ({"priors": Priors(trace_penalty=0.03)}, "priors: trace_penalty is 0.005, now 0.03;"),
        ({"spec": ModelSpec("4pl", 2)}, "family"),
        ({"group": None}, "group"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused_by_name(interrupted, change, name):
    settings = {key: value() if callable(value) else value for key, value in change.items()}
    with pytest.raises(InputError, match=f"is of another fit: its {name}") as caught:
        _fit(**settings, checkpoints=Checkpoints(interrupted, resume=True))
    assert "--force" in str(caught.value)


def test_of_parts_within_parts_only_those_that_differ_are_named():
    network = Network(epochs=25, batch_size=64)
    now = dataclasses.replace(network, epochs=24, stop_by="auc")
    saved, other = ({"settings": plain_settings(Psn(each))} for each in (network, now))
    with pytest.raises(InputError) as caught:
        _check_same(saved, other, Path("run"))
    assert str(caught.value) == (
        "checkpoint run is of another fit: its settings: network epochs is 25, now 24, network "
        "stop_by is 'log_loss', now 'auc'; use the same data and settings, or --force to start anew"
    )
    _check_same(saved, saved, Path("run"))


def test_a_damaged_step_is_named_with_the_one_before_it(tmp_path, capfd):
    _fit(checkpoints=Checkpoints(tmp_path, every=5), max_steps=20)
    array = next((tmp_path / "18" / "arrays").rglob("d/*"))
    array.write_bytes(array.read_bytes()[:9])
    with pytest.raises(InputError, match=r"/18 is damaged: .*from step 13, or .*--force"):
        _fit(checkpoints=Checkpoints(tmp_path, resume=True))
    assert capfd.readouterr().err == ""
    shutil.rmtree(tmp_path / "18")
    assert _fit(checkpoints=Checkpoints(tmp_path, resume=True)).status == "converged"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"folder": None}, "the folder of the checkpoints must be a path, not None"),
        ({"folder": "x", "every": 2.5}, "every must be a whole number of at least 0, not 2.5"),
        ({"folder": "x", "every": -1}, "not -1"),
    ],
)
def test_checkpoints_that_cannot_be_meant(given, message):
    with pytest.raises(InputError, match=message):
        Checkpoints(**given)
    assert Checkpoints("x").folder == Path("x")


def test_only_the_newest_two_are_kept(tmp_path):
    _fit(checkpoints=Checkpoints(tmp_path, every=5), max_steps=20)
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == [
        13,
        18,
    ]  # the first look is at 8


def test_the_fingerprint_sees_every_part_of_the_data():
    dense = np.array([[1, 0, -1], [0, 1, 1]], np.int8)
    base = ResponseMatrix.from_dense(dense)
    marks = [fingerprint(base, {}, np.array(codes))["data"] for codes in ([0, 0, 1], [0, 1, 1])]
    marks += [
        fingerprint(data, {})["data"]
        for data in (
            base,
            ResponseMatrix.from_dense(dense, model_ids=["a", "b"]),
            ResponseMatrix.from_dense(dense, item_ids=["a", "b", "c"]),
            ResponseMatrix.from_dense(1 - np.maximum(dense, 0)),
            ResponseMatrix.from_dense(dense, weight=np.full(dense.shape, 2.0)),
        )
    ]
    assert len(set(marks)) == len(marks)
    assert fingerprint(ResponseMatrix.from_dense(dense.copy()), {})["data"] == marks[2]
