"""Pytrees on disk: the only file that imports Orbax (its v0 interface)."""

from pathlib import Path
from typing import Any

import jax

from irtjax.errors import InputError

__all__ = ["latest_step", "read_metadata", "restore_arrays", "save_arrays"]

_KEPT = 2


def save_arrays(folder: Path, step: int, tree: Any, metadata: dict[str, Any]) -> None:
    """Save the leaves of a pytree and JSON metadata as one step, atomically; keep the newest two.

    Args:
        folder: made if absent; holds a sub-folder a step.
        step: number of the step; a step that exists is replaced.
        tree: arrays in any pytree; they are stored by their path in it.
        metadata: what JSON can hold.
    """
    import orbax.checkpoint as ocp

    options = ocp.CheckpointManagerOptions(
        max_to_keep=_KEPT, create=True, enable_async_checkpointing=False
    )
    with ocp.CheckpointManager(folder.absolute(), options=options) as manager:
        if step in manager.all_steps():
            manager.delete(step)
        manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardSave(_named(tree)), metadata=ocp.args.JsonSave(metadata)
            ),
        )


def latest_step(folder: Path) -> int | None:
    """The newest complete step of a folder, None without any."""
    import orbax.checkpoint as ocp

    if not folder.is_dir():
        return None
    with ocp.CheckpointManager(folder.absolute(), options=_reading()) as manager:
        return manager.latest_step()


def read_metadata(folder: Path, step: int) -> dict[str, Any]:
    """The metadata of a step.

    Raises:
        InputError: the step cannot be read.
    """
    import orbax.checkpoint as ocp

    restored = _restore(folder, step, metadata=ocp.args.JsonRestore())
    return dict(restored.metadata)


def restore_arrays(folder: Path, step: int, template: Any) -> Any:
    """The pytree of a step, with the structure, shapes, types and placement of a template.

    Args:
        folder: as given to `save_arrays`.
        step: as returned by `latest_step`.
        template: arrays or `jax.ShapeDtypeStruct` (with sharding, to place them).

    Raises:
        InputError: the step cannot be read, or holds other arrays.
    """
    import orbax.checkpoint as ocp

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        sharding = getattr(leaf, "sharding", None)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    target = {name: shape(leaf) for name, leaf in _named(template).items()}
    restored = _restore(folder, step, arrays=ocp.args.StandardRestore(target)).arrays
    return jax.tree.unflatten(jax.tree.structure(template), [restored[name] for name in target])


def _named(tree: Any) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _reading() -> Any:
    import orbax.checkpoint as ocp

    return ocp.CheckpointManagerOptions(create=False)


def _restore(folder: Path, step: int, **args: Any) -> Any:
    import orbax.checkpoint as ocp

    try:
        with ocp.CheckpointManager(folder.absolute(), options=_reading()) as manager:
            return manager.restore(step, args=ocp.args.Composite(**args))
    except (ValueError, KeyError, OSError, TypeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise InputError(f"checkpoint {folder}/{step} cannot be read: {reason}") from None
