"""Fits by networks: they learn, stop, refit, repeat, and survive a learning rate too large."""

import dataclasses

import numpy as np
import pytest

import irtjax
from irtjax.data.simulate import simulate
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import is_training_cell
from irtjax.nets.psn import _row_scales
from irtjax.nets.settings import Network
from tests.fit.conformance import NETWORK, everything
from tests.fit.fitting import quiet_fit

SPEC = ModelSpec("2pl")


@pytest.fixture(scope="module")
def drawn():
    """30 models x 120 items."""
    return simulate(SPEC, n_models=30, n_items=120, missing=0.1, seed=2)


def _fit(data, **settings):
    return quiet_fit(data, SPEC, estimator="psn", **({"network": NETWORK} | settings))


@pytest.fixture(scope="module")
def fitted(drawn):
    """A fit with the defaults of the conformance suite."""
    return _fit(drawn.data)


def test_it_finds_the_abilities_and_predicts_better_than_means(drawn, fitted):
    found = fitted.abilities().dim1_ability
    assert np.corrcoef(found, drawn.truth.theta[:, 0])[0, 1] > 0.95
    dense = drawn.data.to_dense()
    is_seen = dense >= 0
    p = everything(fitted)
    loss = -np.mean(np.log(np.where(dense == 1, p, 1 - p))[is_seen])
    mean = np.broadcast_to(np.nanmean(np.where(is_seen, dense, np.nan), 1)[:, None], p.shape)
    assert loss < -np.mean(np.log(np.where(dense == 1, mean, 1 - mean))[is_seen]) - 0.05


def test_it_stops_after_its_patience_and_refits_for_the_best_number_of_epochs(fitted):
    curves = fitted.report["loss_curves"]
    validation = np.array(curves["validation"])
    best = int(np.argmin(validation)) + 1
    assert len(validation) <= NETWORK.epochs
    assert len(validation) in (NETWORK.epochs, best + NETWORK.patience)
    assert len(curves["refit"]) == best
    assert len(curves["training"]) == len(validation)
    # The same start and the same learning rates: the refit learns as the training did.
    assert curves["refit"][0] == pytest.approx(curves["training"][0], abs=0.1)


def test_the_reason_is_what_ended_the_training(fitted):
    curves = fitted.report["loss_curves"]
    best, n_epochs = len(curves["refit"]), len(curves["validation"])
    reason = fitted.report["reason"]
    assert fitted.status == "converged"
    assert reason.startswith(f"The validation log-loss was best after epoch {best}, ")
    assert ("(patience)" in reason) == (n_epochs - best >= NETWORK.patience)
    assert reason.endswith(f"; trained again on all responses for {best}.")


def test_the_report_has_the_log_likelihood_of_the_responses(drawn, fitted):
    dense, p = drawn.data.to_dense(), everything(fitted)
    is_seen = dense >= 0
    expected = np.sum(np.log(np.where(dense == 1, p, 1 - p))[is_seen])
    report = fitted.report
    assert report["log_likelihood_is"] == "responses"
    assert report["log_likelihood"] == pytest.approx(expected, rel=1e-5)
    assert report["mean_prediction"] == pytest.approx(p[is_seen].mean(), abs=1e-5)


def test_means_are_what_the_validation_is_held_against(drawn, fitted):
    cells = drawn.data.cells()
    is_training = is_training_cell(len(cells), NETWORK.validation, 0)
    kept = {"by": "log_loss", "epoch": len(fitted.report["loss_curves"]["refit"])}
    stopping = fitted.report["stopping"]
    assert stopping.items() >= kept.items()
    assert stopping["scores"] == [-loss for loss in fitted.report["loss_curves"]["validation"]]
    index = {"the mean": np.zeros(len(cells), int), "each model's mean": cells.model_index,
             "each item's mean": cells.item_index}  # fmt: skip
    for name, each in index.items():
        total = np.bincount(each[is_training], minlength=each.max() + 1)
        right = np.bincount(each[is_training], cells.response[is_training], each.max() + 1)
        p = ((right + 0.5) / (total + 1))[each][~is_training]
        y = cells.response[~is_training]
        expected = np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
        assert stopping["score_of_means"][name] == pytest.approx(expected, rel=1e-5)


def test_without_a_refit_the_best_towers_are_kept(drawn):
    network = dataclasses.replace(NETWORK, refit=False, epochs=3)
    fit = _fit(drawn.data, network=network)
    assert fit.report["loss_curves"]["refit"] == []
    assert fit.report["network"]["refit"] is False
    # Cut short by its own cap.
    assert fit.status == "max_steps"
    assert fit.report["reason"].endswith(
        "the last that network epochs allows, and gained up to it (its towers are kept); raise "
        "network epochs."
    )


def test_a_training_cut_short_says_so(drawn):
    fit = _fit(drawn.data, max_steps=2)
    assert fit.status == "max_steps"
    assert "step limit" in fit.report["reason"]


def test_near_zero_is_how_the_published_network_starts():
    near, apart = _row_scales("near_zero", 12, 41_871), _row_scales("apart", 12, 41_871)
    # The sd of U(-n^-1/2, n^-1/2).
    np.testing.assert_allclose(near, [1 / np.sqrt(36), 1 / np.sqrt(3 * 41_871)])
    assert np.all(np.array(apart) > near)


def test_seeds_reproduce(drawn, fitted):
    again = _fit(drawn.data)
    np.testing.assert_array_equal(everything(again), everything(fitted))
    other = _fit(drawn.data, seed=1)
    assert np.any(everything(other) != everything(fitted))


def test_case_13_a_diverging_learning_rate_keeps_the_last_good_state(drawn):
    network = dataclasses.replace(NETWORK, learning_rate=1e30)
    fit = _fit(drawn.data, network=network)
    assert fit.status == "diverged"
    assert fit.report["reason"] == (
        "The training diverged in epoch 1: the models' tower, the models' rows, the items' tower "
        "and the items' rows were not finite. The estimates are of the towers before the training; "
        "lower network learning_rate (1e+30)."
    )
    # Nothing is said of dims: they are of towers that have not learnt.
    assert fit.report["warnings"] == [f"diverged: {fit.report['reason']}"]
    assert fit.report["stopping"]["epoch"] == 0
    assert np.isfinite(everything(fit)).all()
    assert np.isfinite(fit.item_parameters().intercept).all()


def test_too_few_steps_are_no_convergence(drawn):
    network = dataclasses.replace(NETWORK, batch_size=4096, learning_rate=1e-4, epochs=3)
    fit = _fit(drawn.data, network=network)
    assert fit.status == "stalled"
    assert "Try a smaller network batch_size (4096), another" in fit.report["reason"]
    assert "marginal-items" in fit.report["reason"]


def test_the_batch_size_is_reported_as_it_was(drawn):
    fit = _fit(drawn.data, network=dataclasses.replace(NETWORK, batch_size=None), max_steps=1)
    # 3,240 responses, a tenth of them kept: 64 make 45 steps.
    assert fit.report["network"]["batch_size"] == 64
    assert fit.report["settings"]["network"] == fit.report["network"]


def test_a_learning_rate_too_large_to_learn_is_no_convergence(drawn):
    fit = _fit(drawn.data, network=dataclasses.replace(NETWORK, learning_rate=1.0))
    assert fit.status == "diverged"
    assert "lower network learning_rate (1)" in fit.report["reason"]
    assert any("learning_rate" in note for note in fit.report["warnings"])


def test_deep_irt_is_a_1pl():
    data = simulate(ModelSpec("1pl"), n_models=12, n_items=40).data
    with pytest.raises(InputError, match="deep-irt is a 1pl with one dim, not a 2pl"):
        irtjax.fit(data, SPEC, estimator="deep-irt")
    fit = quiet_fit(data, estimator="deep-irt", network=NETWORK, max_steps=1)
    assert fit.spec == ModelSpec("1pl")


def test_a_network_is_for_networks_and_must_be_one(drawn):
    with pytest.raises(InputError, match="network settings belong to estimator psn or deep-irt"):
        irtjax.fit(drawn.data, network=Network())
    with pytest.raises(InputError, match=r"network must be an irtjax\.Network, not a dict"):
        irtjax.fit(drawn.data, estimator="psn", network={"hidden": 3})
