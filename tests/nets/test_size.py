"""Networks that no machine holds are refused in a line, before anything is allocated."""

import dataclasses
import math

import jax
import pytest

from irtjax.data.simulate import simulate
from irtjax.errors import InputError
from irtjax.fit.request import make_request
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Network
from irtjax.nets.size import n_parameters
from irtjax.nets.towers import TowerShape, tower


@pytest.mark.parametrize("n_features", [0, 5])
@pytest.mark.parametrize("layers", [1, 3])
def test_parameters_are_counted_as_they_are_made(n_features, layers):
    shape = TowerShape(7, n_features, 4, 6, 9, layers)
    made = jax.eval_shape(lambda: tower(shape, jax.random.key(0), 1.0))
    count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(made))
    assert n_parameters(shape) == count


@pytest.mark.parametrize(
    "changes, lower",
    [
        ({"hidden": 10**9}, "embedding, hidden or layers"),
        ({"embedding": 10**9}, "embedding, hidden or layers"),
        ({"hidden": 40_000, "layers": 3}, "embedding, hidden or layers"),
        ({"batch_size": 10**9}, "batch_size"),
    ],
)
def test_too_large_a_network_is_refused(changes, lower):
    data = simulate(ModelSpec("2pl"), n_models=4, n_items=5).data
    network = dataclasses.replace(Network(), **changes)
    with pytest.raises(InputError, match=f"lower network {lower}$") as caught:
        make_request(data, ModelSpec("2pl"), estimator="psn", network=network)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["layers", "epochs", "hidden", "batch_size", "patience"])
def test_every_size_has_a_most(name):
    with pytest.raises(InputError, match=f"network {name} must be .* from 1 to 1?[60]"):
        Network(**{name: 10**12})


def test_where_memory_is_not_told_only_the_count_is_refused(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    data = simulate(ModelSpec("2pl"), n_models=4, n_items=5).data
    make_request(data, ModelSpec("2pl"), estimator="psn", network=Network(hidden=40_000, layers=1))
    with pytest.raises(InputError, match=r"the most, and its training needs [0-9,]+ GiB; lower"):
        make_request(data, ModelSpec("2pl"), estimator="psn", network=Network(hidden=10**9))
