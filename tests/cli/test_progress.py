"""The progress bar: on a terminal only, of fits and of folds."""

import io
import sys

from irtjax.cli.progress import shown_folds, shown_parts, shown_progress
from irtjax.fit.driver import Progress, Trace


class Terminal(io.StringIO):
    """Standard error as a terminal has it."""

    def isatty(self):
        return True


def terminal_of(monkeypatch):
    """A terminal as standard error; no fixture, since pytest sets its own once these are made."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_nothing_is_shown_when_quiet_or_where_nobody_looks(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with shown_progress(quiet=True) as on_look, shown_folds(1, 2, quiet=True) as on_fold:
        assert on_look is None
        assert on_fold is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown_progress(quiet=False) as on_look, shown_folds(1, 2, quiet=False) as on_fold:
        assert on_look is None
        assert on_fold is None
    assert terminal.getvalue() == ""


def test_a_fit_shows_its_step_objective_and_move(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with shown_progress(quiet=False) as on_look:
        on_look(Progress(Trace((-20.0, -12.5), (0.5, 0.03))))
    assert "step 2" in terminal.getvalue()
    assert "objective -12.5, largest move 0.03" in terminal.getvalue()


def test_folds_show_which_fit_they_are_of(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with shown_folds(1, 2, quiet=False) as on_fold:
        on_fold("fit", 2, 0)
        on_fold("fit", 2, 1)
    assert "fit, dims 2: fold 2" in terminal.getvalue()


def test_an_audit_shows_its_part(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with shown_parts(quiet=False) as on_part:
        on_part("Dimensions", 3, 11)
    assert "Dimensions" in terminal.getvalue()
    assert "part 4 of 11" in terminal.getvalue()
    with shown_parts(quiet=True) as on_part:
        assert on_part is None
