"""The items mesh: one device is the mesh of one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.parallel import (
    BLOCKED,
    REPLICATED,
    items_mesh,
    map_over_items,
    place,
    sum_over_items,
    varying_over_items,
)


def _summed(mesh, values):
    """Sum of each device's scan over its own blocks."""

    def on_device(blocks):
        def add(total, block):
            return total + block.sum(), block * 2

        total, doubled = jax.lax.scan(add, varying_over_items(jnp.zeros(())), blocks)
        return sum_over_items(total), doubled

    with jax.set_mesh(mesh):
        run = jax.jit(map_over_items(on_device, BLOCKED, (REPLICATED, BLOCKED)))
        return run(place(values, mesh, BLOCKED))


def test_one_device_is_a_mesh_of_one():
    mesh = items_mesh(jax.devices()[:1])
    assert mesh.size == 1
    assert mesh.axis_names == ("items",)
    total, doubled = _summed(mesh, jnp.arange(6.0).reshape(3, 2))
    assert float(total) == 15
    np.testing.assert_array_equal(doubled, 2 * np.arange(6.0).reshape(3, 2))


def test_without_a_choice_all_local_devices_are_taken():
    assert items_mesh().size == jax.local_device_count()


@pytest.mark.devices
def test_four_devices_share_the_blocks():
    mesh = items_mesh(jax.devices()[:4])
    values = jnp.arange(16.0).reshape(8, 2)
    placed = place({"a": values}, mesh, BLOCKED)["a"]
    assert len(placed.sharding.device_set) == 4
    assert {shard.data.shape for shard in placed.addressable_shards} == {(2, 2)}
    total, doubled = _summed(mesh, values)
    assert float(total) == 120
    np.testing.assert_array_equal(doubled, 2 * values)
    everywhere = place(jnp.ones(3), mesh, REPLICATED)
    assert {shard.data.shape for shard in everywhere.addressable_shards} == {(3,)}
