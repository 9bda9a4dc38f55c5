"""How the training of a network ended, and why: what its status and the reason say."""

import dataclasses
import math

from irtjax.fit.driver import Progress, Status
from irtjax.nets.settings import Network
from irtjax.nets.whole import Whole

__all__ = ["MEANS", "Training", "ended"]

# The plainest predictors, of means of the training responses.
MEANS = ("the mean", "each model's mean", "each item's mean")
# A log-loss that is not this share below that of the training mean has learnt nothing: the best of
# several epochs is that much lower by chance.
_LEAST_GAIN = 0.01
# Log-losses of a response by two predictors differ by some such standard deviation: by 120 of them,
# of 20 x 60, each item's mean was .02 better than a network that predicts better.
_SPREAD = 0.3
# Log-losses on the way that are this many times those before the training: it was thrown about.
_THROWN = 1.1
# At the most epochs the training has ended by itself where the last of them (as many as its
# patience) gained less than this, as the learning rates of a cosine that come to 0 make it.
_SETTLED = 1e-3
# Weight decay from here on is what throws the weights about.
_LARGE_DECAY = 1.0
_SCORES = {"log_loss": "log-loss", "f1": "F1", "auc": "AUC"}
_PARTS = {
    "weights.model_tower": "the models' tower",
    "weights.model_table": "the models' rows",
    "weights.item_tower": "the items' tower",
    "weights.item_table": "the items' rows",
}


@dataclasses.dataclass(frozen=True)
class Training:
    """Scores (higher is better) and log-losses of a training.

    Attributes:
        network: what was trained.
        n_best: epochs to the best validation score; 0 where none was worth keeping.
        training: log-loss of the training responses by epoch, on the way.
        validation: log-loss of the validation responses by epoch.
        refit: log-loss of all responses by epoch of the refit.
        scores: of the validation responses by epoch, as `network.stop_by` has them.
        first: score and log-loss of the validation responses before the training.
        means: the same of each of `MEANS` as the prediction.
        n_validation: responses kept for validation.
        whole: what the final towers say of all responses.
    """

    network: Network
    n_best: int
    training: list[float]
    validation: list[float]
    refit: list[float]
    scores: list[float]
    first: tuple[float, float]
    means: tuple[tuple[float, float], ...]
    n_validation: int
    whole: Whole

    @property
    def chance(self) -> float:
        """How far a score of the validation responses is off by chance."""
        return _SPREAD / math.sqrt(self.n_validation)


def ended(training: Training, progress: Progress) -> Progress:
    """The driver's progress with the status and the reason that the training has."""
    status, reason = _ended(training, progress)
    return dataclasses.replace(progress, status=status, reason=reason)


def _ended(training: Training, progress: Progress) -> tuple[Status | None, str]:
    network, n_best, n_epochs = training.network, training.n_best, len(training.validation)
    if progress.status is Status.diverged:
        return Status.diverged, _not_finite(training, progress.not_finite)
    if progress.status is not Status.converged:
        return progress.status, progress.reason
    if not _has_learnt(training):
        return _learnt_nothing(training)
    if network.refit and len(training.refit) < n_best:
        return progress.status, progress.reason
    flaw = _flaw_of_whole(training)
    if flaw:
        return Status.stalled, flaw
    best = f"The validation {_SCORES[network.stop_by]} was best after epoch {n_best}"
    then = (
        f"trained again on all responses for {n_best}" if network.refit else "its towers are kept"
    )
    if n_epochs - n_best >= network.patience:
        since = f"no better in the {network.patience} since (patience)"
        return Status.converged, f"{best}, {since}; {then}."
    if n_epochs < network.epochs:
        return progress.status, progress.reason
    if _is_settled(training):
        gained = f"and hardly gained in the last {network.patience} of {n_epochs}"
        return Status.converged, f"{best}, {gained}; {then}."
    if n_best == n_epochs:
        cut = "the last that network epochs allows, and gained up to it"
    else:
        cut = f"and the {n_epochs} that network epochs allows are over before its patience"
        cut += f" ({network.patience}) is"
    return Status.max_steps, f"{best}, {cut} ({then}); raise network epochs."


def _has_learnt(training: Training) -> bool:
    """Whether the best epoch, and the refit, predict better than no training and than means."""
    mean, *others = (loss for _, loss in training.means)
    limit = (1 - _LEAST_GAIN) * min(training.first[1], mean)
    limit = min(limit, *(other + training.chance for other in others))
    # Not that limit: losses on the way of a refit of one epoch are those of its start.
    if training.refit and training.refit[-1] > _THROWN * max(training.first[1], mean):
        return False
    if training.network.stop_by == "log_loss":
        return training.n_best > 0 and training.validation[training.n_best - 1] < limit
    least = max(training.first[0], training.means[0][0])
    least = max(least, *(score - training.chance for score, _ in training.means[1:]))
    return max(training.scores) > least


def _learnt_nothing(training: Training) -> tuple[Status, str]:
    of_mean = training.means[0][1]
    before = max(training.first[1], of_mean)
    is_thrown = max(training.training + training.refit) > _THROWN * before
    by = training.network.stop_by
    is_loss = by == "log_loss"
    # Losses or scores, whichever the training goes by.
    best = min(training.validation) if is_loss else max(training.scores)
    of_means = [each[is_loss] for each in training.means]
    pick = min if is_loss else max
    rival = MEANS[of_means.index(pick(of_means))]
    is_better = best < min(of_means) if is_loss else best > max(of_means)
    told = ", ".join(f"{one:.4g} by {name}" for one, name in zip(of_means, MEANS, strict=True))
    said = (
        f"The network predicts its validation responses {'hardly' if is_better else 'no'} better "
        f"than {rival} does: {_SCORES[by]} {best:.4g} at best, {told}, "
        f"{training.first[is_loss]:.4g} before the training"
    )
    if training.refit:
        said += f"; log-loss {training.refit[-1]:.4g} in the refit"
    if training.n_best == 0:
        said += "; the towers before it are kept"
    if is_thrown:
        return Status.diverged, f"{said}. Its steps are too long: {_shorter(training.network)}."
    return Status.stalled, f"{said}. {_more_steps(training.network)}."


def _flaw_of_whole(training: Training) -> str:
    """Why the final towers are no description of the responses; empty where they are one."""
    whole, network = training.whole, training.network
    when = f"{len(training.refit)} epochs of refit" if network.refit else "the training"
    when = when.replace("1 epochs", "1 epoch")
    rival, by_rival = min(whole.by_means.items(), key=lambda each: each[1])
    if not whole.log_loss < by_rival:
        found = (
            f"the network predicts all responses no better than {rival} does: log-loss "
            f"{whole.log_loss:.4g}, {by_rival:.4g} by {rival}"
        )
    elif whole.is_biased:
        found = (
            f"the network's predictions are {whole.predicted:.3f} on average where "
            f"{whole.response:.3f} of the responses are right, more than chance explains"
        )
    else:
        return ""
    return f"After {when} {found}. {_more_steps(network)}."


def _more_steps(network: Network) -> str:
    """What helps a network that has learnt too little."""
    size, rate = network.steps
    smaller = f"a smaller network batch_size ({size}), " if size > 1 else ""
    return (
        f"Try {smaller}another network learning_rate ({rate:.3g}) or more responses, or estimator "
        "marginal-items, which needs fewer"
    )


def _shorter(network: Network) -> str:
    """What helps a network whose steps are too long."""
    rate = f"lower network learning_rate ({network.steps[1]:.3g})"
    if network.weight_decay > _LARGE_DECAY:
        return f"lower network weight_decay ({network.weight_decay:g}), else {rate[6:]}"
    return rate


def _not_finite(training: Training, names: tuple[str, ...]) -> str:
    """Where a training left the finite numbers, in what, and what is kept."""
    n_epochs, n_refit, network = len(training.validation), len(training.refit), training.network
    is_over = n_epochs >= network.epochs or n_epochs - training.n_best >= network.patience
    where = f"epoch {n_refit + 1} of the refit" if is_over else f"epoch {n_epochs + 1}"
    kept = f"epoch {training.n_best}, the best until then"
    if n_refit:
        kept = f"epoch {n_refit} of the refit"
    elif training.n_best == 0:
        kept = "the towers before the training"
    return (
        f"The training diverged in {where}: {_parts(names)} not finite. The estimates are of "
        f"{kept}; {_shorter(network)}."
    )


def _parts(names: tuple[str, ...]) -> str:
    """Parts of a state in words, and the verb."""
    found = [said for part, said in _PARTS.items() if any(each.startswith(part) for each in names)]
    if not found:
        is_moment = any(each.startswith("moments") for each in names)
        return "Adam's moments were" if is_moment else "its loss was"
    if len(found) > 1:
        return f"{', '.join(found[:-1])} and {found[-1]} were"
    return f"{found[0]} {'was' if found[0].endswith('tower') else 'were'}"


def _is_settled(training: Training) -> bool:
    earlier = training.scores[: -training.network.patience]
    return bool(earlier) and max(training.scores) - max(earlier) < _SETTLED
