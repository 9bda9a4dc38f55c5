"""How the training of a network ended, and why: what its status and the reason say."""

import dataclasses

from irtjax.fit.driver import Progress, Status
from irtjax.nets.settings import Network

__all__ = ["Training", "ended"]

# A log-loss that is not this share below that of the training mean has learnt nothing: the best of
# several epochs is that much lower by chance.
_LEAST_GAIN = 0.01
# Log-losses on the way that are this many times those before the training: it was thrown about.
_THROWN = 1.1
# At the most epochs the training has ended by itself where the last of them (as many as its
# patience) gained less than this, as the learning rates of a cosine that come to 0 make it.
_SETTLED = 1e-3
_SCORES = {"log_loss": "log-loss", "f1": "F1", "auc": "AUC"}


@dataclasses.dataclass(frozen=True)
class Training:
    """Scores (higher is better) and log-losses of a training.

    Attributes:
        network: what was trained.
        n_best: epochs to the best validation score.
        training: log-loss of the training responses by epoch, on the way.
        validation: log-loss of the validation responses by epoch.
        refit: log-loss of all responses by epoch of the refit.
        scores: of the validation responses by epoch, as `network.stop_by` has them.
        first: score and log-loss of the validation responses before the training.
        mean: the same of the training responses' mean as the prediction of all.
    """

    network: Network
    n_best: int
    training: list[float]
    validation: list[float]
    refit: list[float]
    scores: list[float]
    first: tuple[float, float]
    mean: tuple[float, float]


def ended(training: Training, progress: Progress) -> Progress:
    """The driver's progress with the status and the reason that the training has."""
    status, reason = _ended(training, progress)
    return dataclasses.replace(progress, status=status, reason=reason)


def _ended(training: Training, progress: Progress) -> tuple[Status | None, str]:
    network, n_best, n_epochs = training.network, training.n_best, len(training.validation)
    if progress.status is Status.diverged:
        return Status.diverged, _not_finite(training)
    if progress.status is not Status.converged:
        return progress.status, progress.reason
    if not _has_learnt(training):
        return _learnt_nothing(training)
    best = f"The validation {_SCORES[network.stop_by]} was best after epoch {n_best}"
    then = "its towers are kept"
    if network.refit:
        if len(training.refit) < n_best:
            return progress.status, progress.reason
        then = f"trained again on all responses for {n_best}"
    if n_epochs - n_best >= network.patience:
        since = f"no better in the {network.patience} since (patience)"
        return Status.converged, f"{best}, {since}; {then}."
    if n_epochs < network.epochs:
        return progress.status, progress.reason
    if _is_settled(training):
        gained = f"and hardly rose in the last {network.patience} of {n_epochs}"
        return Status.converged, f"{best}, {gained}; {then}."
    cut = f"and {n_epochs} are the most: the last still gained; raise network epochs"
    return Status.max_steps, f"{best}, {cut} ({then})."


def _has_learnt(training: Training) -> bool:
    """Whether the best epoch, and the refit, predict better than no training."""
    limit = (1 - _LEAST_GAIN) * min(training.first[1], training.mean[1])
    # Not that limit: losses on the way of a refit of one epoch are those of its start.
    if training.refit and training.refit[-1] > _THROWN * max(training.first[1], training.mean[1]):
        return False
    if training.network.stop_by == "log_loss":
        return training.n_best > 0 and training.validation[training.n_best - 1] < limit
    return max(training.scores) > max(training.first[0], training.mean[0])


def _learnt_nothing(training: Training) -> tuple[Status, str]:
    before = max(training.first[1], training.mean[1])
    is_thrown = max(training.training + training.refit) > _THROWN * before
    least = min(training.validation)
    said = (
        "The network predicts its validation responses hardly better than the mean does, or no "
        f"better: log-loss {least:.4g} at best, {training.mean[1]:.4g} by the mean, "
        f"{training.first[1]:.4g} before the training"
    )
    if training.refit:
        said += f", {training.refit[-1]:.4g} after the refit"
    if training.n_best == 0:
        said += "; the towers before it are kept"
    rate = f"network learning_rate ({training.network.learning_rate:g})"
    if is_thrown:
        return Status.diverged, f"{said}. Its steps are too long: lower {rate}."
    return Status.stalled, f"{said}. Change {rate} or its size, or get more responses."


def _not_finite(training: Training) -> str:
    """Where a training left the finite numbers, and what is kept."""
    n_epochs, n_refit, network = len(training.validation), len(training.refit), training.network
    is_over = n_epochs >= network.epochs or n_epochs - training.n_best >= network.patience
    where = f"epoch {n_refit + 1} of the refit" if is_over else f"epoch {n_epochs + 1}"
    kept = f"epoch {training.n_best}, the best until then"
    if n_refit:
        kept = f"epoch {n_refit} of the refit"
    elif training.n_best == 0:
        kept = "the towers before the training"
    return (
        f"The training diverged in {where}: a value was not finite. The estimates are of {kept}; "
        f"lower network learning_rate ({network.learning_rate:g})."
    )


def _is_settled(training: Training) -> bool:
    earlier = training.scores[: -training.network.patience]
    return bool(earlier) and max(training.scores) - max(earlier) < _SETTLED
