"""What must not change a fit: order, layout, blocks, representation of the same data."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.driver import Look, advance, drive
from irtjax.fit.items_state import start_state
from irtjax.fit.marginal_items import MarginalItems
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from tests.fit.fitting import (
    KINDS,
    N_ITEMS,
    N_MODELS,
    assert_same_bits,
    fitted,
    placed_blocks,
    quiet_fit,
    simulated,
)

PERMUTED = ("2pl", "2pl-2d")
# Another order of sums changes the last digit of each step, and with it when the loop stops: twice
# what is left to go when it does (`Look.tolerance`), in standard deviations and in logits.
SETTLED = 2e-3


def _rebuilt(data, dense, models=slice(None), items=slice(None), weight=None):
    """The same matrix from another array, with rows and columns taken in an order."""
    return ResponseMatrix.from_dense(
        dense[models][:, items],
        model_ids=data.model_ids[models].tolist(),
        item_ids=data.item_ids[items].tolist(),
        weight=weight,
        item_metadata=data.item_metadata.iloc[items].reset_index(drop=True),
    )


def _refit(kind, data, **more):
    spec, settings = KINDS[kind]
    return quiet_fit(data, spec, **settings, **more)


@pytest.mark.parametrize("kind", PERMUTED)
def test_the_order_of_models_and_items_does_not_matter(kind):
    # One order of each suffices: another would be as random.
    rng = np.random.default_rng(1)
    models, items = rng.permutation(N_MODELS), rng.permutation(N_ITEMS)
    data, before = simulated(kind).data, fitted(kind)
    after = _refit(kind, _rebuilt(data, data.to_dense(), models, items))
    assert after.status == before.status
    expected, actual = before.abilities(), after.abilities()
    assert actual.model_id.tolist() == expected.model_id[models].tolist()
    names = [c for c in expected if "_ability" in c and "clustered" not in c] + ["expected_score"]
    # Effects are columns named by benchmark, which now stand in another order.
    names += [c for c in expected if c.endswith("_effect")]
    np.testing.assert_allclose(
        actual[names].to_numpy(), expected[names].to_numpy()[models], atol=SETTLED
    )
    expected, actual = before.item_parameters(), after.item_parameters()
    assert actual.item_id.tolist() == expected.item_id[items].tolist()
    names = [c for c in expected if "slope" in c or "intercept" in c]
    np.testing.assert_allclose(
        actual[names].to_numpy(), expected[names].to_numpy()[items], atol=2 * SETTLED
    )
    assert actual["flags"].tolist() == expected["flags"][items].tolist()


@pytest.mark.parametrize("kind", ["2pl-2d"])
def test_sparse_cells_give_the_bits_of_the_dense_matrix(kind):
    data = simulated(kind).data
    sparse = data.replace(dense=None, dense_weight=None, sparse=data.cells())
    assert data.sparse is None
    assert sparse.n_responses == data.n_responses
    assert_same_bits(_refit(kind, sparse).parameters, fitted(kind).parameters)


@pytest.mark.parametrize("kind", ["2pl-2d"])
def test_missing_cells_are_deleted_rows_of_the_long_table(kind):
    # Case 4: the fit equals the fit without those rows, bit by bit, however missing was written.
    data = simulated(kind).data
    dense = data.to_dense()
    seen = np.argwhere(dense >= 0)
    long = ResponseMatrix.from_cells(
        seen[:, 0],
        seen[:, 1],
        dense[seen[:, 0], seen[:, 1]],
        model_ids=data.model_ids.tolist(),
        item_ids=data.item_ids.tolist(),
        item_metadata=data.item_metadata,
    )
    with_nan = _rebuilt(data, np.where(dense < 0, np.nan, dense.astype(float)))
    masked = _rebuilt(data, np.ma.masked_less(dense, 0))
    for other in (long, with_nan, masked):
        assert other.n_responses == data.n_responses
        assert_same_bits(_refit(kind, other).parameters, fitted(kind).parameters)


def test_case_4_missing_is_masked_whatever_it_is_written_as():
    test_missing_cells_are_deleted_rows_of_the_long_table("2pl-2d")


def test_the_same_seed_gives_the_same_bits():
    fit = _refit("2pl-2d", simulated("2pl-2d").data)
    assert_same_bits(fit.parameters, fitted("2pl-2d").parameters)
    assert fit.report["trace"] == fitted("2pl-2d").report["trace"]


def _driven(
    kind, *, data=None, items_per_block=None, weight=None, are_asymptotes_fixed=False, steps=None
):
    """State after `steps` (or at the end) in given blocks; items in the order of the matrix."""
    spec, settings = KINDS[kind]
    group = settings.get("group")
    data = simulated(kind).data if data is None else data
    if weight is not None:
        data = _rebuilt(data, data.to_dense(), weight=np.full(data.dense.shape, weight))
    blocks, layout, mesh = placed_blocks(data, items_per_block=items_per_block)
    estimator = MarginalItems(has_effects=group is not None)
    with jax.set_mesh(mesh):
        state = estimator.init(blocks, spec, Priors(), jax.random.key(0))
        if are_asymptotes_fixed:
            asymptotes = state.outer.asymptotes
            fixed = Asymptotes(asymptotes.lower - jnp.inf, asymptotes.upper + jnp.inf)
            outer = dataclasses.replace(state.outer, asymptotes=fixed)
            parts = (state.items, state.is_scored, spec, Priors(), None)
            state = start_state(estimator, outer, *parts)
        if steps is None:
            state, progress = drive(estimator, blocks, state, look=Look())
        else:
            # In looks of the driver's size, for which the program is there already.
            for done in range(0, steps, Look().every):
                n = min(Look().every, steps - done)
                state = advance(estimator, Look().every, blocks, state, n).state
            progress = None
    return state, layout.from_blocks(np.moveaxis(np.asarray(state.items.mean), -1, 1)), progress


def test_the_size_of_blocks_does_not_matter():
    one, items, progress = _driven("2pl-2d", items_per_block=256)
    for size in (100,):
        other, cut, _ = _driven("2pl-2d", items_per_block=size, steps=progress.n_steps)
        np.testing.assert_allclose(other.outer.ability, one.outer.ability, atol=SETTLED)
        np.testing.assert_allclose(cut, items, atol=2 * SETTLED)


def test_weights_of_1_are_no_weights():
    one, items, progress = _driven("2pl")
    other, weighted, _ = _driven("2pl", weight=1.0, steps=progress.n_steps)
    np.testing.assert_allclose(other.outer.ability, one.outer.ability, atol=SETTLED)
    np.testing.assert_allclose(weighted, items, atol=2 * SETTLED)


def test_the_4pl_with_guessing_0_and_feasibility_1_is_the_2pl():
    # The program of the 3PL, with both asymptotes fixed: fixed ones stay fixed.
    one, items, progress = _driven("2pl")
    data = simulated("2pl").data
    other, general, _ = _driven("3pl", data=data, are_asymptotes_fixed=True, steps=progress.n_steps)
    np.testing.assert_allclose(other.outer.ability, one.outer.ability, atol=SETTLED)
    np.testing.assert_allclose(general, items, atol=2 * SETTLED)
    assert np.isneginf(other.outer.asymptotes.lower).all()
    assert np.isposinf(other.outer.asymptotes.upper).all()


def test_published_abilities_have_mean_0_and_covariance_1():
    for kind in KINDS:
        fit = fitted(kind)
        ability = np.asarray(fit.parameters.ability, float)
        np.testing.assert_allclose(ability.mean(axis=0), 0, atol=1e-5)
        covariance = ability.T @ ability / len(ability)
        np.testing.assert_allclose(covariance, np.eye(ability.shape[1]), atol=1e-4)
