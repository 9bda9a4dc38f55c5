"""Compiled programs are kept in the user's cache folder, where there is one, unless told not to."""

import os
from pathlib import Path

from irtjax.cli import compilation_cache

# Compiles something under the cache and says where its programs went.
PROGRAM = """
from irtjax.cli.compilation_cache import use_compilation_cache
use_compilation_cache()
import jax
jax.jit(lambda x: x + 1)(1.0)
print(jax.config.jax_compilation_cache_dir)
"""


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_programs_are_kept_and_used(process, tmp_path):
    home = tmp_path / "cache"
    for _ in range(2):
        outcome = process("-c", PROGRAM, XDG_CACHE_HOME=str(home), JAX_COMPILATION_CACHE_DIR=None)
        assert outcome.code == 0, outcome.err
        assert Path(outcome.out.strip()).parent == home / "irtjax" / "jax"
        assert files(home)


def test_the_users_own_cache_is_left_to_jax(process, tmp_path):
    home, own = tmp_path / "cache", str(tmp_path / "own")
    outcome = process("-c", PROGRAM, XDG_CACHE_HOME=str(home), JAX_COMPILATION_CACHE_DIR=own)
    assert outcome.out.strip() == own
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_no_error(process, tmp_path):
    (tmp_path / "file").write_text("")
    outcome = process(
        "-c", PROGRAM, XDG_CACHE_HOME=str(tmp_path / "file"), JAX_COMPILATION_CACHE_DIR=None
    )
    assert (outcome.code, outcome.out.strip(), outcome.err) == (0, "None", "")


def test_it_can_be_switched_off(irtjax, responses, monkeypatch):
    used = []
    monkeypatch.setattr("irtjax.cli.fit.use_compilation_cache", lambda: used.append(1))
    settings = ["fit", responses, "--max-steps", 1, "--quiet", "--out"]
    assert irtjax(*settings, "off-by-environment").code == 0
    monkeypatch.delenv("IRTJAX_NO_CACHE")
    assert irtjax(*settings, "off-by-flag", "--no-cache").code == 0
    assert not used
    assert irtjax(*settings, "on").code == 0
    assert used


def test_the_oldest_programs_go_when_all_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_LARGEST", 100)
    for k in range(4):
        (tmp_path / f"{k}").write_bytes(b"x" * 30)
        os.utime(tmp_path / f"{k}", (k, k))
    compilation_cache._prune(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["3"]
    compilation_cache._prune(tmp_path)
    assert len(files(tmp_path)) == 1
