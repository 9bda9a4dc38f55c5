"""The estimator's own promises: what a NaN in its state does, what its settings are."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.driver import Look, Progress, Status, drive
from irtjax.fit.marginal_items import MarginalItems
from irtjax.model.priors import Priors
from tests.fit.fitting import (
    KINDS,
    N_ITEMS,
    assert_same_bits,
    fitted,
    leaves,
    placed_blocks,
    simulated,
)


def _poisoned(state, where):
    """The state with one NaN."""
    if where == "ability":
        bad = dataclasses.replace(state.outer, ability=state.outer.ability.at[3].set(jnp.nan))
        return dataclasses.replace(state, outer=bad)
    items = dataclasses.replace(state.items, mean=state.items.mean.at[0, 0, 1, 7].set(jnp.nan))
    return dataclasses.replace(state, items=items)


@pytest.mark.parametrize("where", ["ability", "items"])
def test_case_13_a_nan_in_the_state_stops_there_and_names_the_parameters(where):
    spec, _ = KINDS["2pl"]
    blocks, _, mesh = placed_blocks(simulated("2pl").data)
    estimator = MarginalItems()
    with jax.set_mesh(mesh):
        state = estimator.init(blocks, spec, Priors(), jax.random.key(0))
        state, progress = drive(estimator, blocks, state, look=Look(max_steps=10))
        assert progress.n_steps == 10
        bad = _poisoned(state, where)
        kept, after = drive(estimator, blocks, bad, look=Look(), progress=Progress(progress.trace))
    assert after.status is Status.diverged
    # It stopped at that step: nothing was added to the trace, and the state is the one given.
    assert after.trace == progress.trace
    assert_same_bits(kept, bad)
    assert "Not finite: " in after.reason
    assert "outer.ability" in after.reason
    assert "items.mean" in after.reason
    assert "last good step" in after.reason


def test_nothing_but_what_may_be_is_infinite_or_nan():
    for kind in KINDS:
        for name, value in leaves(fitted(kind).parameters).items():
            if "clustered" not in name:
                assert np.isfinite(value).all(), (kind, name)


def test_the_report_is_json_and_says_what_was_done():
    for kind, (spec, settings) in KINDS.items():
        report = json.loads(json.dumps(fitted(kind).report))
        assert report["family"] == spec.family
        assert report["dims"] == spec.dims
        assert report["group"] == settings.get("group")
        assert report["estimator"] == "marginal-items"
        why = "group 'benchmark'" if "group" in settings else "with 240 items and 24 models"
        assert report["estimator_reason"].startswith(f"auto: {why}")
        assert report["integrated"] == fitted(kind).integrated == "items"
        assert report["status"] in {status.name for status in Status}
        assert report["reason"] == Status[report["status"]].value
        assert report["n_steps"] == len(report["trace"]["objective"])
        assert report["log_likelihood"] == report["trace"]["objective"][-1]
        assert report["log_likelihood_is"] == "elbo"
        assert set(report["versions"]) >= {"irtjax", "jax", "jaxlib", "numpy", "python"}
        assert len(report["dimensions"]) == spec.dims
        share = [dim["explained_variance"] for dim in report["dimensions"]]
        assert share == sorted(share, reverse=True)


def test_shared_asymptotes_lie_in_their_range_and_have_errors():
    for kind in ("3pl", "4pl-2d"):
        fit = fitted(kind)
        truth = simulated(kind).truth
        fitted_ = fit.parameters
        codes, names = fit.groups()
        assert fitted_.guessing.shape == (N_ITEMS,)
        for name in ("guessing", "feasibility", "guessing_se", "feasibility_se"):
            values = getattr(fitted_, name)
            for g in range(len(names)):
                assert len(np.unique(values[codes == g])) == 1, name
        assert np.all((fitted_.guessing > 0) & (fitted_.guessing < fitted_.feasibility))
        assert np.all(fitted_.feasibility <= 1)
        assert np.all((fitted_.guessing_se > 0) & (fitted_.guessing_se < 0.2))
        if kind == "3pl":
            # One guessing for all items here, four in the truth: their mean, within 3 errors.
            away = fitted_.guessing[0] - truth.guessing.mean()
            assert abs(away) < 3 * fitted_.guessing_se[0] + 0.05
            assert np.all(fitted_.feasibility == 1)
            assert np.all(fitted_.feasibility_se == 0)
        else:
            assert np.all(fitted_.feasibility_se > 0)


def test_effects_are_residuals():
    for kind in ("2pl-2d", "4pl-2d", "1pl"):
        fit = fitted(kind)
        effect, ability = fit.parameters.effect, fit.parameters.ability
        np.testing.assert_allclose(effect.mean(axis=0), 0, atol=1e-3)
        if kind != "1pl":
            # In the 1PL no item has a slope of its own to take the fitted part.
            np.testing.assert_allclose(ability.T @ effect / len(effect), 0, atol=1e-3)
