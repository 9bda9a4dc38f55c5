"""Items and populations as one vector, there and back."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.item_step import ItemModel
from irtjax.fit.models_vector import ModelsParameters, Moving, from_vector, to_vector
from irtjax.fit.populations import Populations
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit import models_reference as reference
from tests.fit.fitting import leaves
from tests.fit.models_bridge import item_parameters
from tests.tolerances import close

N_ITEMS, N_POPULATIONS, N_NODES = 5, 2, 7
MOVING = [Moving(False, False), Moving(True, False), Moving(True, True), Moving(False, True)]
FAMILIES = ("2pl", "3pl", "4pl")


def random_parameters(rng, family, dims):
    problem = reference.random_problem(rng, family, dims=dims, n_items=N_ITEMS)
    log_weight = np.log(rng.dirichlet(np.ones(N_NODES), N_POPULATIONS))
    populations = Populations(
        *(jnp.asarray(value) for value in (problem.mean, problem.factor, log_weight))
    )
    return ModelsParameters(item_parameters(family, problem.items, dims), populations)


@pytest.mark.oracle
@pytest.mark.parametrize("family, dims", list(itertools.product(FAMILIES, (1, 2))))
@pytest.mark.parametrize("moving", MOVING, ids=str)
@pytest.mark.parametrize("prior", [Normal(0, 10), LogNormal(0, 0.5)], ids=str)
def test_there_and_back(family, dims, moving, prior):
    rng = np.random.default_rng(3)
    model = ItemModel(ModelSpec(family, dims), Priors(slope=prior))
    parameters = random_parameters(rng, family, dims)
    vector = to_vector(model, parameters, moving)
    assert np.all(np.isfinite(vector))
    back = leaves(from_vector(model, parameters, vector, moving))
    for name, value in leaves(parameters).items():
        close(back[name], value, kind="reduction", scale=0.1)


def test_what_does_not_move_is_that_of_the_start():
    rng = np.random.default_rng(3)
    model = ItemModel(ModelSpec("2pl"), Priors())
    start, other = (random_parameters(rng, "2pl", 1) for _ in range(2))
    vector = to_vector(model, other, Moving(False, False))
    assert vector.shape == (2 * N_ITEMS,)
    found = from_vector(model, start, vector, Moving(False, False))
    np.testing.assert_array_equal(found.items.slope, other.items.slope)
    np.testing.assert_array_equal(found.populations.mean, start.populations.mean)


def test_weights_are_normalised():
    rng = np.random.default_rng(3)
    model = ItemModel(ModelSpec("2pl"), Priors())
    parameters = random_parameters(rng, "2pl", 1)
    vector = to_vector(model, parameters, MOVING[2]).at[-1].add(2.0)
    weight = jnp.exp(from_vector(model, parameters, vector, MOVING[2]).populations.log_weight)
    np.testing.assert_allclose(jnp.sum(weight, axis=1), 1, rtol=1e-6)
