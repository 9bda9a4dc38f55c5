"""Pytrees on disk: what was saved comes back, whole steps only, damage is said in a line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.checkpoint import (
    complete_steps,
    latest_step,
    read_metadata,
    restore_arrays,
    save_arrays,
)
from irtjax.errors import InputError
from irtjax.model.pytree import pytree_dataclass, static_field


@pytree_dataclass
class Tree:
    """Arrays of several types, an absent one, and a static field."""

    numbers: jax.Array
    nested: dict
    absent: jax.Array | None = None
    name: str = static_field(default="tree")


def _tree(scale=1.0):
    return Tree(
        jnp.asarray([1.5, -np.inf, np.nan]) * scale,
        {"mask": jnp.asarray([True, False]), "count": jnp.asarray(7, jnp.int32)},
    )


def test_a_tree_comes_back_to_the_last_bit(tmp_path):
    save_arrays(tmp_path, 3, _tree(), {"note": "x", "values": [1, 2.5, None]})
    assert latest_step(tmp_path) == 3
    assert read_metadata(tmp_path, 3) == {"note": "x", "values": [1, 2.5, None]}
    restored = restore_arrays(tmp_path, 3, _tree(0.0))
    assert jax.tree.structure(restored) == jax.tree.structure(_tree())
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(_tree()), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert restored.name == "tree"
    assert restored.absent is None


def test_arrays_of_no_numbers_come_back_too(tmp_path):
    tree = {"none": jnp.zeros((0, 3), jnp.int32), "some": jnp.arange(2.0), "no": {}}
    save_arrays(tmp_path, 1, tree, {})
    for template in (tree, jax.eval_shape(lambda: tree)):
        restored = restore_arrays(tmp_path, 1, template)
        assert jax.tree.structure(restored) == jax.tree.structure(tree)
        assert (restored["none"].shape, restored["none"].dtype) == ((0, 3), jnp.int32)
        np.testing.assert_array_equal(restored["some"], tree["some"])
    with pytest.raises(InputError):
        restore_arrays(tmp_path, 1, {"none": jnp.zeros(1, jnp.int32), "some": jnp.zeros(2)})


def test_the_newest_two_steps_are_kept_and_a_step_is_replaced(tmp_path):
    for step in (1, 2, 3):
        save_arrays(tmp_path, step, _tree(), {"step": step})
    save_arrays(tmp_path, 3, _tree(), {"step": "again"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]
    assert latest_step(tmp_path) == 3
    assert read_metadata(tmp_path, 3) == {"step": "again"}


def test_there_is_no_step_in_an_absent_or_empty_folder(tmp_path):
    assert latest_step(tmp_path / "none") is None
    assert latest_step(tmp_path) is None


def test_an_unfinished_step_is_not_the_latest(tmp_path):
    save_arrays(tmp_path, 1, _tree(), {})
    # What a killed process leaves: a folder that was not renamed to its step yet.
    (tmp_path / "2.orbax-checkpoint-tmp-17").mkdir()
    assert latest_step(tmp_path) == 1


def test_what_a_killed_process_left_is_removed_without_a_word(tmp_path, capfd):
    (tmp_path / "3.orbax-checkpoint-tmp" / "arrays.orbax-checkpoint-tmp").mkdir(parents=True)
    (tmp_path / "2.orbax-checkpoint-tmp").mkdir()
    save_arrays(tmp_path, 3, _tree(), {})
    assert [each.name for each in tmp_path.iterdir()] == ["3"]
    assert complete_steps(tmp_path) == [3]
    assert capfd.readouterr().err == ""


def test_other_arrays_and_damage_are_refused_in_one_line(tmp_path):
    save_arrays(tmp_path, 1, _tree(), {})
    with pytest.raises(InputError, match="cannot be read"):
        restore_arrays(tmp_path, 1, {"other": jnp.zeros(2)})
    with pytest.raises(InputError, match="cannot be read"):
        restore_arrays(tmp_path, 2, _tree())
    with pytest.raises(InputError, match=r"cannot be read: .*; fit again") as caught:
        restore_arrays(tmp_path, 1, {"numbers": jnp.zeros(9)}, remedy="fit again")
    assert "\n" not in str(caught.value)


def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_damaged_file_is_named_and_nothing_else_is_printed(tmp_path, capfd):
    save_arrays(tmp_path, 1, _tree(), {})
    for path in _files(tmp_path):
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", b"damaged", None):
            if damaged == whole:
                continue
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            for read in (
                lambda: restore_arrays(tmp_path, 1, _tree()),
                lambda: read_metadata(tmp_path, 1),
            ):
                with pytest.raises(InputError, match=f"1 is damaged: .*{path.name}") as caught:
                    read()
                assert "\n" not in str(caught.value)
            path.write_bytes(whole)
    assert restore_arrays(tmp_path, 1, _tree()).name == "tree"
    assert capfd.readouterr() == ("", "")


def test_a_step_whose_files_are_not_listed_is_unfinished(tmp_path):
    for step in (1, 2):
        save_arrays(tmp_path, step, _tree(), {})
    (tmp_path / "2" / "files.json").unlink()
    assert latest_step(tmp_path) == 1
    assert complete_steps(tmp_path) == [1]
    save_arrays(tmp_path, 2, _tree(), {})
    assert complete_steps(tmp_path) == [1, 2]


def test_arrays_are_placed_as_the_template(tmp_path):
    save_arrays(tmp_path, 1, {"a": jnp.arange(4.0)}, {})
    device = jax.devices()[-1]
    template = jax.device_put(jnp.zeros(4), device)
    restored = restore_arrays(tmp_path, 1, {"a": template})["a"]
    assert restored.devices() == {device}


def test_another_shape_is_refused(tmp_path):
    save_arrays(tmp_path, 1, {"a": jnp.arange(4.0)}, {})
    with pytest.raises(InputError):
        restore_arrays(tmp_path, 1, {"a": jnp.zeros(5)})
