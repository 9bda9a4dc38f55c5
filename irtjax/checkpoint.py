"""Pytrees on disk: the only file that imports Orbax (its v0 interface)."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from irtjax.errors import InputError

__all__ = ["complete_steps", "latest_step", "read_metadata", "restore_arrays", "save_arrays"]

_KEPT = 2
# In each step's folder, written last: the files with their hashes. A step without it is unfinished.
# What it does not confirm is never handed to Orbax, whose background threads go on printing to
# stderr after a failed read.
_LIST = "files.json"
# In the name of a folder that Orbax has not renamed to its step yet.
_UNFINISHED = ".orbax-checkpoint-tmp"
_LONGEST_REASON = 200
_REMEDY = "save it again"


def save_arrays(folder: Path, step: int, tree: Any, metadata: dict[str, Any]) -> None:
    """Save the leaves of a pytree and JSON metadata as one step, atomically; keep the newest two.

    Args:
        folder: made if absent; holds a sub-folder a step.
        step: number of the step; a step that exists is replaced.
        tree: arrays in any pytree; they are stored by their path in it (those of size 0, which
            Orbax refuses, are made anew when the tree is restored).
        metadata: what JSON can hold.
    """
    import orbax.checkpoint as ocp

    options = ocp.CheckpointManagerOptions(
        max_to_keep=_KEPT, create=True, enable_async_checkpointing=False
    )
    _remove_unfinished(folder)
    with ocp.CheckpointManager(folder.absolute(), options=options) as manager:
        if step in manager.all_steps():
            manager.delete(step)
        manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardSave(_filled(tree)), metadata=ocp.args.JsonSave(metadata)
            ),
        )
    _write_list(folder / str(step))


def latest_step(folder: Path) -> int | None:
    """The newest complete step of a folder, None without any."""
    return max(complete_steps(folder), default=None)


def complete_steps(folder: Path) -> list[int]:
    """The steps of a folder that were saved to their end, in ascending order."""
    if not folder.is_dir():
        return []
    found = [each for each in folder.iterdir() if each.name.isdecimal()]
    return sorted(int(each.name) for each in found if (each / _LIST).is_file())


def read_metadata(folder: Path, step: int, *, remedy: str = _REMEDY) -> dict[str, Any]:
    """The metadata of a step.

    Args:
        folder: as given to `save_arrays`.
        step: as returned by `latest_step`.
        remedy: what the user can do when the step is damaged.

    Raises:
        InputError: the step is damaged.
    """
    import orbax.checkpoint as ocp

    restored = _restore(folder, step, remedy, metadata=ocp.args.JsonRestore())
    return dict(restored.metadata)


def restore_arrays(folder: Path, step: int, template: Any, *, remedy: str = _REMEDY) -> Any:
    """The pytree of a step, with the structure, shapes, types and placement of a template.

    Args:
        folder: as given to `save_arrays`.
        step: as returned by `latest_step`.
        template: arrays or `jax.ShapeDtypeStruct` (with sharding, to place them).
        remedy: what the user can do when the step is damaged or holds something else.

    Raises:
        InputError: the step is damaged, or holds other arrays.
    """
    import orbax.checkpoint as ocp

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        sharding = getattr(leaf, "sharding", None)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    target = {name: shape(leaf) for name, leaf in _filled(template).items()}
    restored = _restore(folder, step, remedy, arrays=ocp.args.StandardRestore(target)).arrays
    leaves = [
        restored[name] if leaf.size else _empty(leaf) for name, leaf in _named(template).items()
    ]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _filled(tree: Any) -> dict[str, Any]:
    """The leaves that hold a number."""
    return {name: leaf for name, leaf in _named(tree).items() if leaf.size}


def _empty(leaf: Any) -> jax.Array:
    """An array of no numbers, of the shape, type and placement of a leaf."""
    return jnp.zeros(leaf.shape, leaf.dtype, device=getattr(leaf, "sharding", None))


def _named(tree: Any) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _reading() -> Any:
    import orbax.checkpoint as ocp

    return ocp.CheckpointManagerOptions(create=False)


def _restore(folder: Path, step: int, remedy: str, **args: Any) -> Any:
    import orbax.checkpoint as ocp

    where = folder / str(step)
    damage = _damage(where)
    if damage:
        raise InputError(f"checkpoint {where} is damaged: {damage}; {remedy}")
    try:
        with ocp.CheckpointManager(folder.absolute(), options=_reading()) as manager:
            return manager.restore(step, args=ocp.args.Composite(**args))
    except Exception as error:
        # Files are as they were saved, so it is what is asked of them; Orbax, TensorStore and JAX
        # each have exceptions of their own for that.
        reason = " ".join(str(error).split()) or repr(error)
        reason = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "..."
        raise InputError(f"checkpoint {where} cannot be read: {reason}; {remedy}") from None


def _remove_unfinished(folder: Path) -> None:
    """Remove what a killed process had begun to write: Orbax would warn on stderr of each."""
    if folder.is_dir():
        for left in folder.glob(f"*{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)


def _write_list(step: Path) -> None:
    """List the files of a step with their hashes, in one move."""
    digests = {path.relative_to(step).as_posix(): _digest(path) for path in _files(step)}
    temporary = step / f".{_LIST}.tmp"
    temporary.write_text(json.dumps(digests, indent=0) + "\n", encoding="utf-8")
    os.replace(temporary, step / _LIST)


def _damage(step: Path) -> str:
    """What is wrong with the files of a step, empty when they are as they were saved."""
    try:
        listed = json.loads((step / _LIST).read_text(encoding="utf-8"))
        for name, digest in listed.items():
            if not (step / name).is_file():
                return f"{name} is missing"
            if _digest(step / name) != digest:
                return f"{name} is not as it was saved"
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    except (ValueError, AttributeError):
        return f"{_LIST}, the list of its files, is not as it was saved"
    return ""


def _files(step: Path) -> list[Path]:
    return sorted(path for path in step.rglob("*") if path.is_file())


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
