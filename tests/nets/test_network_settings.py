"""Settings of networks: what is refused, and how the command line changes one."""

import dataclasses

import numpy as np
import pytest

from irtjax.errors import InputError
from irtjax.nets.settings import Network, parse_network

BAD = {
    "hidden": 0,
    "layers": 1.5,
    "batch_size": True,
    "learning_rate": 0,
    "weight_decay": -1,
    "validation": 1.0,
    "stop_by": "brier",
    "updates": "sparse",
    "schedule": None,
    "start": "zero",
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_setting_out_of_range_is_refused_by_name(name):
    with pytest.raises(InputError, match=f"network {name} must"):
        Network(**{name: BAD[name]})


def test_the_command_line_changes_one_setting():
    assert parse_network(Network(), "hidden=32") == dataclasses.replace(Network(), hidden=32)
    assert parse_network(Network(), "batch_size=64").batch_size == 64
    assert parse_network(Network(), "learning_rate=1e-3").learning_rate == 0.001
    assert parse_network(Network(), "stop_by=auc").stop_by == "auc"


@pytest.mark.parametrize(
    "text", ["hidden", "width=3", "hidden=many", "batch_size=many", "validation=", "=3"]
)
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(InputError, match="network"):
        parse_network(Network(), text)


def test_the_published_recipe():
    published = Network.published()
    assert (published.hidden, published.learning_rate, published.weight_decay) == (64, 0.003, 1e-4)
    assert (published.batch_size, published.epochs, published.patience) == (512, 50, 4)
    assert (published.stop_by, published.validation, published.updates) == ("f1", 0.2, "dense")
    assert published.start == "near_zero"


def test_few_responses_get_smaller_batches_and_shorter_steps():
    found = [Network().for_responses(n).steps for n in (10, 1_023, 2_048, 16_383, 16_384, 10**9)]
    assert [size for size, _ in found] == [32, 32, 64, 256, 512, 512]
    assert found[-2:] == [(512, 0.003)] * 2  # of the published numbers: exactly so
    rates = [rate for _, rate in found]
    assert rates == sorted(rates)
    chosen = Network(batch_size=7, learning_rate=0.5)
    assert chosen.for_responses(100) == chosen
    assert Network(batch_size=2048).for_responses(100).learning_rate == 0.003
    assert Network.published().for_responses(10) == Network.published()


def test_numbers_of_numpy_are_numbers():
    network = Network(batch_size=np.int64(64), learning_rate=np.float32(0.5))
    assert (network.batch_size, network.learning_rate) == (64, 0.5)
    assert type(network.batch_size) is int
    assert type(network.learning_rate) is float
    assert network == Network(batch_size=64, learning_rate=0.5)
