"""Frozen dataclasses that are pytrees, without the constructor on unflatten."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

__all__ = ["pytree_dataclass", "static_field"]

_T = TypeVar("_T")


def static_field(**kwargs: Any) -> Any:
    """A field that is part of the tree's structure (hashable, never traced)."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static_field))
def pytree_dataclass(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass and a pytree of its non-static fields.

    Unflatten skips `__init__` and `__post_init__`: `jax.register_dataclass` and
    `flax.struct.dataclass` re-run validation there, which breaks under `vmap` and
    `tree_map(lambda _: None, ...)`, where the leaves are not arrays.
    """
    cls = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    static = tuple(f.name for f in fields if f.metadata.get("static", False))
    traced = tuple(f.name for f in fields if f.name not in static)

    def flatten_with_keys(tree: Any) -> Any:
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(tree, name)) for name in traced)
        return children, tuple(getattr(tree, name) for name in static)

    def flatten(tree: Any) -> Any:
        return tuple(getattr(tree, name) for name in traced), tuple(
            getattr(tree, name) for name in static
        )

    def unflatten(structure: Any, children: Any) -> Any:
        tree = object.__new__(cls)
        tree.__dict__.update(zip(static, structure, strict=True))
        tree.__dict__.update(zip(traced, children, strict=True))
        return tree

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls
