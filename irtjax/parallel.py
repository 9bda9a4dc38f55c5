"""Where blocks live: an `items` mesh of devices; one device is the mesh of one."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from irtjax.checks import shown
from irtjax.errors import InputError

__all__ = [
    "BLOCKED",
    "REPLICATED",
    "items_mesh",
    "map_over_items",
    "place",
    "sum_over_items",
    "varying_over_items",
]

_T = TypeVar("_T")
_AXIS = "items"

BLOCKED = PartitionSpec(_AXIS)
REPLICATED = PartitionSpec()


def items_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A one-axis mesh over which blocks of items are spread; all local devices without.

    Raises:
        InputError: something else than devices, or none.
    """
    if not isinstance(devices, Sequence | None):
        raise InputError(f"devices must be a list of jax.Device, not {shown(devices)}")
    chosen = jax.local_devices() if devices is None else list(devices)
    wrong = [each for each in chosen if not isinstance(each, jax.Device)]
    if wrong or not chosen:
        found = shown(wrong[0]) if wrong else "an empty list"
        raise InputError(f"devices must be jax.Device, as in jax.devices(), not {found}")
    # `jax.make_mesh` would default to Explicit axes, which forbid the plain matrix products here.
    return Mesh(np.array(chosen), (_AXIS,), axis_types=(AxisType.Auto,))


def place(tree: _T, mesh: Mesh, spec: PartitionSpec) -> _T:
    """Put a pytree of arrays on the mesh, split by its first axis or replicated."""
    return jax.device_put(tree, NamedSharding(mesh, spec))


def map_over_items(
    function: Callable[..., Any], in_specs: Any, out_specs: Any
) -> Callable[..., Any]:
    """Run a function on each device's own blocks, on the mesh of the surrounding `jax.set_mesh`."""
    return jax.shard_map(function, in_specs=in_specs, out_specs=out_specs)


def sum_over_items(tree: _T) -> _T:
    """Sum over the devices of the mesh, inside `map_over_items`."""
    return jax.lax.psum(tree, _AXIS)


def varying_over_items(tree: _T) -> _T:
    """Mark a constant as one value a device, inside `map_over_items` (a scan's start)."""
    return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, (_AXIS,), to="varying"), tree)
