"""PSN-IRT's Table 6: the published recipe on the published parameters gives the published tau.

Zhou et al. (2026), arXiv 2505.15055. The recipe scores models with the responses that the
parameters were fitted to; what is left of it without that is in benchmarks/selection_honest.py.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kendalltau, rankdata

from benchmarks.selection_honest import RANKS
from irtjax.model.curves import item_curves
from irtjax.model.information import item_information
from irtjax.select.quotas import Quotas
from irtjax.select.ranked import best_first

WEAK = ("Mistral-7B", "Qwen2.5-3B", "Vicuna-7B", "Gemma-2B")


@pytest.fixture(scope="module")
def published(shared_dir):
    with np.load(shared_dir / "data" / "psn_irt.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def published_information(published):
    """Of each item at the highest ability; 0 where the published formula says so."""
    parameters = ("discrimination", "difficulty", "guessing", "feasibility")
    slope, difficulty, guessing, feasibility = (
        published[f"pub_{name}"].astype(float) for name in parameters
    )
    top = float(published["pub_ability"].max())
    curves = item_curves(slope[:, None], -slope * difficulty, guessing, feasibility)
    found = np.asarray(item_information(curves, jnp.full((1, 1), top)), float)[0]
    p = guessing + (feasibility - guessing) / (1 + np.exp(-slope * (top - difficulty)))
    return np.where((p <= guessing) | (p >= feasibility), 0, found)


def tau(published, items, *, with_weak):
    """Kendall's tau of the ranks by accuracy on the items with the reference ranks."""
    answers = np.ma.masked_less(published["responses"][:, items], 0)
    accuracy = np.round(answers.mean(axis=1).filled(np.nan), 4)
    chosen = [
        k for k, name in enumerate(published["models"])
        if name in RANKS and (with_weak or name not in WEAK)
    ]  # fmt: skip
    reference = [RANKS[published["models"][k]] for k in chosen]
    return kendalltau(rankdata(-accuracy[chosen], method="min"), reference).statistic


@pytest.mark.shared
@pytest.mark.parametrize(
    "n_items, with_weak, expected",
    [
        (1000, False, 0.9048),
        (400, False, 0.7143),
        (None, False, 0.2381),
        (1000, True, 0.6889),
        (None, True, 0.6444),
    ],
)
def test_the_published_recipe_gives_the_published_tau(published, n_items, with_weak, expected):
    value = published_information(published)
    n_all = len(value)
    budget = n_items or n_all
    open_quota = Quotas("", np.zeros(n_all, int), [""], np.zeros(1, int), np.array([n_all]))
    items = best_first(value, open_quota, budget)
    found = tau(published, items, with_weak=with_weak)
    assert round(found, 4) == expected
