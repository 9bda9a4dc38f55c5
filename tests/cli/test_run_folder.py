"""The folder of a run: replaced on request, never more than a run, never half-written."""

from pathlib import Path

import pytest

from irtjax.cli.run_folder import RunFolder
from irtjax.errors import InputError
from irtjax.fit.result import FitResult


def fake_run(folder: Path, content: str = "old") -> None:
    """What `FitResult.save` writes, as far as the folder is concerned."""
    (folder / "checkpoint" / "result" / "0").mkdir(parents=True)
    for name in ("items.csv", "models.csv", "responses.npz"):
        (folder / name).write_text(content)
    (folder / "fit.json").write_text(f'{{"versions": {{"irtjax": "{content}"}}}}')


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.*")}


def test_parents_are_made_and_nothing_else_is_left(tmp_path):
    run = tmp_path / "a" / "b" / "run"
    RunFolder(run).write(fake_run)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert run.stat().st_mode == run.parent.stat().st_mode


def test_force_replaces_a_run_and_keeps_what_is_not_its(tmp_path):
    run = tmp_path / "run"
    fake_run(run)
    (run / "notes.txt").write_text("mine")
    (run / "checkpoint" / "steps" / "5").mkdir(parents=True)
    RunFolder(run, force=True).write(lambda folder: fake_run(folder, "new"))
    found = contents(run)
    assert found.pop("notes.txt") == "mine"
    assert all("new" in text for text in found.values())
    assert not (run / "checkpoint" / "steps").exists()


def test_the_old_run_stays_until_the_new_one_is_there(tmp_path):
    run = tmp_path / "run"
    fake_run(run)
    before = contents(run)

    def fail(folder):
        fake_run(folder, "new")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError):
        RunFolder(run, force=True).write(fail)
    assert contents(run) == before


def test_saving_states_makes_way_first_and_the_states_stay(tmp_path):
    run = tmp_path / "run"
    fake_run(run)
    (run / "checkpoint" / "steps" / "5").mkdir(parents=True)
    folder = RunFolder(run, force=True)
    folder.start_saving()
    assert not contents(run)
    assert not folder.steps.exists()
    (folder.steps / "10").mkdir(parents=True)
    folder.write(lambda each: fake_run(each, "new"))
    assert (folder.steps / "10").exists()
    assert "new" in (run / "fit.json").read_text()


def test_an_unfinished_run_may_be_replaced_and_resumed(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoint" / "steps" / "5").mkdir(parents=True)
    with pytest.raises(InputError, match="--resume"):
        RunFolder(run)
    RunFolder(run, resume=True).write(fake_run)
    assert (run / "checkpoint" / "steps" / "5").exists()
    (run / "fit.json").unlink()
    RunFolder(run, force=True).write(fake_run)
    assert not (run / "checkpoint" / "steps").exists()


@pytest.mark.parametrize("name", ["fit.json", "items.csv", "models.csv", "responses.npz"])
def test_a_crash_while_moving_leaves_nothing_that_looks_finished(tmp_path, monkeypatch, name):
    run = tmp_path / "run"
    fake_run(run)
    replace = Path.replace

    def crash(self, target):
        if self.name == name:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        RunFolder(run, force=True).write(lambda folder: fake_run(folder, "new"))
    with pytest.raises(InputError, match=r"fit\.json|responses\.npz"):
        FitResult.load(run)
    monkeypatch.undo()
    RunFolder(run, force=True).write(lambda folder: fake_run(folder, "newer"))
    assert "newer" in (run / "fit.json").read_text()


def test_what_a_killed_process_left_in_the_folder_goes(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoint" / "steps" / "5").mkdir(parents=True)
    fake_run(run / ".run.abc.tmp" / "new")
    RunFolder(run, resume=True).write(fake_run)
    RunFolder(run, force=True).write(fake_run)
    assert sorted(path.name for path in run.iterdir()) == [
        "checkpoint",
        "fit.json",
        "items.csv",
        "models.csv",
        "responses.npz",
    ]


def test_a_full_disk_is_one_line(tmp_path):
    def full(folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"cannot write .*run: No space left"):
        RunFolder(tmp_path / "run").write(full)
    assert not list(tmp_path.iterdir())


def test_force_on_a_real_run(irtjax, responses, tmp_path):
    assert irtjax("fit", responses, "--out", "run", "--seed", 1, "--quiet").code == 0
    outcome = irtjax("fit", responses, "--out", "run", "--seed", 2, "--quiet", "--force")
    assert (outcome.code, outcome.err) == (0, "")
    assert FitResult.load(tmp_path / "run").report["seed"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
