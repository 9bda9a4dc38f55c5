"""Virtual environments of the peers, made when first needed: `.cache/peers/NAME`.

They don't resolve together (girth's 3PL needs a NumPy and SciPy of 2023), so each has its own, from
`benchmarks/peers/NAME.txt`. A line `# no-deps: PACKAGE==VERSION` there is installed last, without
its dependencies: of packages that ask for versions that this Python has not, or for far more than
a fit needs.
"""

import hashlib
import subprocess
import venv
from pathlib import Path

__all__ = ["PEERS", "PeerFailed", "peer_python", "requirements"]

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("py-irt", "dynamirt", "torch-measure", "mirt", "theta-irt", "girth", "catsim")
_FOLDER = ROOT / ".cache" / "peers"
_NO_DEPENDENCIES = "# no-deps:"
_INSTALL_SECONDS = 1800
_LAST_LINES = 3


class PeerFailed(Exception):
    """A peer could not be installed or did not finish; the message is the row's reason."""


def requirements(peer: str) -> tuple[Path, list[str]]:
    """The requirements file of a peer, and what to install without dependencies after it."""
    path = ROOT / "benchmarks" / "peers" / f"{peer}.txt"
    lines = path.read_text().splitlines()
    marked = [line for line in lines if line.startswith(_NO_DEPENDENCIES)]
    return path, [line.removeprefix(_NO_DEPENDENCIES).strip() for line in marked]


def peer_python(peer: str, folder: Path = _FOLDER) -> Path:
    """Python of the peer's environment, which is made, or made anew when the requirements changed.

    Args:
        peer: one of `PEERS`.
        folder: where environments are.

    Raises:
        PeerFailed: pip did not install it; the last lines of what it said.
    """
    path, alone = requirements(peer)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    home = folder / peer
    python, stamp = home / "bin" / "python", home / "requirements.sha256"
    if stamp.is_file() and stamp.read_text() == digest:
        return python
    venv.create(home, with_pip=True, clear=True)
    _pip(python, "-r", str(path))
    if alone:
        _pip(python, "--no-deps", *alone)
    stamp.write_text(digest)
    return python


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise PeerFailed(f"pip took more than {_INSTALL_SECONDS} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()][-_LAST_LINES:]
        raise PeerFailed("not installed: " + " / ".join(said))
