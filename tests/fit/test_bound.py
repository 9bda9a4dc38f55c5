"""The evidence lower bound: below the evidence and near it, rising, stationary at the end."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

from irtjax.fit.item_pass import renew_items
from irtjax.fit.marginal_items import MarginalItems
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from tests.fit import reference
from tests.fit.bridge import Placed, unpacked
from tests.fit.fitting import KINDS, fitted, placed_blocks, simulated

N_MODELS, N_ITEMS = 8, 12


def _tiny(n_components, has_asymptotes):
    """A problem at one dim whose items can be integrated out on a grid."""
    return reference.random_problem(
        np.random.default_rng(2),
        n_models=N_MODELS,
        n_items=N_ITEMS,
        dims=1,
        n_groups=2,
        n_components=n_components,
        has_asymptotes=has_asymptotes,
        n_nodes=15,
    )


def _log_evidence(problem):
    """Log marginal likelihood of all items, by a dense grid over (slope, intercept)."""
    axis = np.linspace(-7, 7, 281)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_cell = 2 * np.log(axis[1] - axis[0])
    total = 0.0
    for j, g in enumerate(problem.group):
        _, x, offset, y, w = problem.seen(j)
        c, d = problem.guessing[g], problem.feasibility[g]
        p = c + (d - c) * expit(grid @ x.T + offset)
        log_likelihood = (y * np.log(p) + (1 - y) * np.log1p(-p)) @ w
        parts = [
            problem.log_weight[g, k]
            + multivariate_normal.logpdf(grid, problem.mu[g, k], problem.sigma[g, k])
            for k in range(problem.mu.shape[1])
        ]
        total += logsumexp(log_likelihood + logsumexp(parts, axis=0)) + log_cell
    return total


@pytest.mark.oracle
@pytest.mark.parametrize("n_components, has_asymptotes", [(1, False), (2, True)])
def test_the_bound_is_below_the_evidence_and_near_it(n_components, has_asymptotes):
    problem = _tiny(n_components, has_asymptotes)
    placed = Placed(problem, 16)

    def renew_often(blocks, items, context):
        def one(_, items):
            return renew_items(blocks, items, context)[1]

        return renew_items(blocks, jax.lax.fori_loop(0, 40, one, items), context)

    result, _ = placed.run(renew_often, placed.posteriors, placed.context)
    gap = _log_evidence(problem) - float(result.bound)
    # Up to 8 responses an item, so as unlike a normal as posteriors get: .0005 to .0023 nats an
    # item were measured.
    assert 0 < gap < 0.004 * N_ITEMS


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_does_not_fall(kind):
    trace = fitted(kind).report["trace"]
    objective = np.array(trace["objective"])
    kept = np.delete(objective, list(trace["damped"]))
    # No kept step falls by more than the guard allows (what the hyperpriors of the groups, which
    # are not in the bound, and effects kept residual take: a hundred-thousandth) ...
    allowed = 1e-5 * np.abs(kept[-1])
    assert np.diff(kept).min() > -1.01 * allowed
    # ... nor do all of them together by a two-thousandth.
    assert kept.max() - kept[-1] < 5e-4 * np.abs(kept[-1])
    # A step that has to be taken back is an exception.
    assert len(trace["damped"]) <= 0.3 * len(objective)


@dataclasses.dataclass
class Converged:
    """A state in float64 that no longer moves, and what it was fitted to."""

    estimator: MarginalItems
    blocks: object
    mesh: object
    state: object
    change: float


@pytest.fixture(scope="module", params=["2pl-2d"])
def converged(request):
    """The state after 600 steps in float64: its abilities move by less than 1e-6 a step."""
    kind = request.param
    spec, settings = KINDS[kind]
    with jax.enable_x64(True):
        group = settings.get("group")
        blocks, _, mesh = placed_blocks(simulated(kind).data)
        estimator = MarginalItems(has_effects=group is not None)
        with jax.set_mesh(mesh):
            state = estimator.init(blocks, spec, Priors(), jax.random.key(0))

            @jax.jit
            def many(blocks, state):
                def one(state, _):
                    state, info = estimator.step(blocks, state)
                    return state, info.change

                return jax.lax.scan(one, state, length=600)

            state, change = many(blocks, state)
        yield Converged(estimator, blocks, mesh, state, float(change[-1]))


def test_it_converges_in_float64(converged):
    assert converged.change < 1e-6


def test_the_score_of_the_abilities_is_the_gradient_of_the_bound(converged):
    """And at the end that gradient is the prior's: each ability is where the bound is highest."""
    with jax.enable_x64(True), jax.set_mesh(converged.mesh):
        state, h = converged.state, 1e-3

        @jax.jit
        def passed(blocks, ability):
            outer = dataclasses.replace(state.outer, ability=ability)
            context = converged.estimator.context(dataclasses.replace(state, outer=outer))
            return renew_items(blocks, state.items, context)[0]

        result = passed(converged.blocks, state.outer.ability)
        score = np.asarray(result.models.score)
        for i, k in [(0, 0), (5, 1), (11, 0), (23, 1)]:
            ability = np.asarray(state.outer.ability)
            step = np.zeros_like(ability)
            step[i, k] = h
            rise = passed(converged.blocks, jnp.asarray(ability + step)).bound
            fall = passed(converged.blocks, jnp.asarray(ability - step)).bound
            # Nine nodes integrate l and l' with errors of their own: .003 was measured, a
            # thousandth of a standard error (the score's own is 7).
            assert float(rise - fall) / (2 * h) == pytest.approx(score[i, k], abs=0.01)
        # The prior pulls with -theta. What is left, in standard errors of the ability, is what the
        # rest of the iteration maximises besides the bound (effects kept residual, the penalty on
        # the trace): .05 was measured. A prior on abilities that are whitened at every step, so
        # that it can do nothing but pull unequally, leaves .20.
        information = unpacked(np.asarray(result.models.information))
        information = information + np.eye(score.shape[1])
        left = score - np.asarray(state.outer.ability)
        decrement = np.einsum("ik,ikl,il->i", left, np.linalg.inv(information), left)
        assert np.sqrt(decrement.max()) < 0.1


def test_a_1pl_has_no_slope_of_its_own():
    spec = ModelSpec("1pl")
    fit = fitted("1pl")
    assert fit.spec == spec
    slope = fit.item_parameters().dim1_slope.to_numpy()
    # One common slope, but for what the effects of a benchmark share with ability: nothing.
    np.testing.assert_allclose(slope, slope[0], rtol=1e-5)
    assert (fit.item_parameters().dim1_slope_se == 0).all()
