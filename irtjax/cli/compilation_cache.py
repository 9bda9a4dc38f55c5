"""Compiled programs kept between runs, so that the second `irtjax fit` starts at once.

Measured on 2 CPU cores: a fit of 12 models x 41,871 items in 3 dims with benchmark effects spends
10 CPU seconds on compiling, and 0.5 with the programs of an earlier run at hand (0.5 MB on disk).
"""

import hashlib
import os
import platform
from pathlib import Path

__all__ = ["use_compilation_cache"]

_LARGEST = 256 << 20  # bytes; a fit of new sizes adds about half a megabyte


def use_compilation_cache() -> None:
    """Let JAX keep compiled programs in the user's cache folder; call it before the first program.

    The folder is `irtjax/jax/<machine>` in `$XDG_CACHE_HOME` or `~/.cache`. Nothing happens where
    `JAX_COMPILATION_CACHE_DIR` names another one, which JAX uses by itself, or where the folder
    cannot be made. Several processes may use it at once: an entry that is half written does not
    unpack, and JAX compiles.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = _cache_home() / "irtjax" / "jax" / _machine()
        folder.mkdir(parents=True, exist_ok=True)
        _prune(folder)
    except (OSError, RuntimeError):  # no home, a read-only one
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _cache_home() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    return Path(named) if named else Path.home() / ".cache"


def _machine() -> str:
    """Name of this kind of machine: programs are compiled for a processor's own instructions.

    JAX does not put the processor in its keys, and a home folder can be shared by unlike machines:
    a program of another processor may stop with an illegal instruction.
    """
    known = [platform.system(), platform.machine(), platform.processor()]
    try:
        described = Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0]
        known += sorted(
            line for line in described.splitlines() if line.startswith(("model name", "flags"))
        )
    except OSError:
        known.append(platform.node())
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _prune(folder: Path) -> None:
    """Delete the oldest programs when all together are too large."""
    files = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.is_file()]
    if sum(status.st_size for status, _ in files) <= _LARGEST:
        return
    files.sort(key=lambda file: file[0].st_mtime)
    for _, path in files[: len(files) // 2 + 1]:
        os.unlink(path)
