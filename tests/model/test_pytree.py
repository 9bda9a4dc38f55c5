"""A frozen dataclass that is a pytree and does not rebuild itself on unflatten."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from irtjax.model.pytree import pytree_dataclass, static_field


@pytree_dataclass
class Point:
    """Two traced fields around a static one, and a constructor that refuses what is no array."""

    x: jax.Array
    name: str = static_field()
    y: jax.Array | None = None

    def __post_init__(self):
        if self.x is None:
            raise ValueError("x is not an array")


def test_leaves_are_the_traced_fields():
    point = Point(jnp.ones(2), "p", jnp.zeros(3))
    assert [leaf.shape for leaf in jax.tree.leaves(point)] == [(2,), (3,)]
    assert jax.tree.map(lambda leaf: leaf + 1, point).name == "p"
    assert jax.tree.structure(point) != jax.tree.structure(dataclasses.replace(point, name="q"))


def test_unflatten_skips_the_constructor():
    emptied = jax.tree.map(lambda _: None, Point(jnp.ones(2), "p"))
    assert emptied.x is None
    with pytest.raises(ValueError, match="x is not an array"):
        Point(None, "p")


def test_vmap_jit_and_paths():
    points = Point(jnp.arange(3.0), "p", jnp.arange(3.0))
    moved = jax.jit(jax.vmap(lambda p: dataclasses.replace(p, x=p.x * p.y)))(points)
    assert moved.x.tolist() == [0, 1, 4]
    named, _ = jax.tree_util.tree_flatten_with_path(points)
    assert [jax.tree_util.keystr(path) for path, _ in named] == [".x", ".y"]


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(jnp.ones(1), "p").x = jnp.zeros(1)
