"""Settings of networks: what is refused, and how the command line changes one."""

import dataclasses

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
    assert parse_network(Network(), "learning_rate=1e-3").learning_rate == 0.001
    assert parse_network(Network(), "stop_by=auc").stop_by == "auc"


@pytest.mark.parametrize("text", ["hidden", "width=3", "hidden=many", "validation=", "=3"])
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(InputError, match="network"):
        parse_network(Network(), text)


def test_the_published_recipe():
    published = Network.published()
    assert (published.hidden, published.learning_rate, published.weight_decay) == (64, 0.003, 1e-4)
    assert (published.batch_size, published.epochs, published.patience) == (512, 50, 4)
    assert (published.stop_by, published.validation, published.updates) == ("f1", 0.2, "dense")
    assert published.start == "near_zero"
