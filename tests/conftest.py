"""What the markers mean when a test starts, and the fixtures that every folder shares."""

import gc
import os
from pathlib import Path

import hypothesis
import jax
import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
IN_CI = bool(os.environ.get("CI"))
N_VIRTUAL_DEVICES = 4
MOST_MEMORY_MAPS = 25_000

hypothesis.settings.register_profile(
    "irtjax",
    deadline=None,  # the first example of a shape compiles
    derandomize=IN_CI,
    database=None if IN_CI else hypothesis.settings.default.database,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("irtjax")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("devices") and jax.device_count() < N_VIRTUAL_DEVICES:
        pytest.skip(
            f"needs {N_VIRTUAL_DEVICES} devices; "
            f"set XLA_FLAGS=--xla_force_host_platform_device_count={N_VIRTUAL_DEVICES}"
        )
    if item.get_closest_marker("compilations") and jax.config.jax_compilation_cache_dir:
        pytest.skip("counts compilations; unset JAX_COMPILATION_CACHE_DIR")
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip(f"reads {SHARED}, which is absent")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Drop compiled programs before the process runs out of memory maps.

    Each program takes several of the 65,530 that Linux gives a process; past them, after some
    thousand programs, XLA aborts where it loads or stores one.
    """
    if _n_memory_maps() > MOST_MEMORY_MAPS:
        jax.clear_caches()
        gc.collect()


def _n_memory_maps() -> int:
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:  # no Linux: no such limit
        return 0


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder `shared` beside the repository; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"reads {SHARED}, which is absent")
    return SHARED
