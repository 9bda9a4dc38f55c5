"""The public names, and that the example in the package's docstring is what they do."""

import importlib.metadata
import os

import jax
import pytest

import irtjax as ij

NAMES = {
    "Cells",
    "Checkpoints",
    "CrossValidation",
    "FitResult",
    "InputError",
    "IrtjaxWarning",
    "ModelSpec",
    "Priors",
    "ResponseMatrix",
    "Selection",
    "cross_validate",
    "fit",
    "holdout",
    "lsat6",
    "lsat7",
    "read_responses",
    "select_items",
    "simulate",
    "write_responses",
}


def test_every_public_name_is_there_and_documented():
    assert set(ij.__all__) >= NAMES
    for name in ij.__all__:
        value = getattr(ij, name)
        if not isinstance(value, str):
            assert value.__doc__, name
            assert value.__module__.startswith("irtjax."), name


def test_a_star_import_gives_the_public_names_and_dir_lists_them():
    given = {}
    exec("from irtjax import *", given)
    assert set(given) - {"__builtins__"} == set(ij.__all__)
    assert set(ij.__all__) <= set(dir(ij))
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = ij.fitt


def test_fit_is_the_function_and_its_folder_can_be_imported():
    from irtjax.fit.driver import Status

    assert callable(ij.fit)
    assert Status.converged.value


def test_the_version_is_that_of_the_installation():
    assert ij.__version__ == importlib.metadata.version("irtjax")


def test_errors_are_of_the_usual_kinds():
    assert issubclass(ij.InputError, ValueError)
    assert issubclass(ij.IrtjaxWarning, UserWarning)


def test_x64_is_not_switched_on_by_import():
    # STYLE: never set jax_enable_x64; the process decides.
    asked = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true")
    assert jax.config.jax_enable_x64 == asked
