"""A model's posterior that learns answer by answer: nodes stay where they are, weights change.

The nodes are those of `node_posterior`, around the mode of the answers so far. A new answer
multiplies their weights by its likelihood, and that of its group's effect at each node: the work of
one answer, not of all so far. Nodes are placed anew, as scoring places them, once the posterior has
moved away from them.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.model.pytree import pytree_dataclass
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems
from irtjax.score.likelihood import log_likelihoods
from irtjax.score.mode import Mode, find_mode, in_groups, shifts
from irtjax.score.posterior import effect_log_ratio, effect_spots, nodes_around

__all__ = ["RunningPosterior", "moments", "prior_posterior", "settled", "with_answer"]

# Nodes are placed anew when the posterior has moved so far (nats) since they were: .6 standard
# deviations of one coordinate.
_FAR = 0.18
# Models whose nodes are placed together, and answers whose likelihoods are summed up together:
# what they need at all nodes stays in the cache.
_ROWS, _WIDTH = 10, 16


@pytree_dataclass
class RunningPosterior:
    """Nodes of each model with their unnormalised log weights.

    `effect` is each effect's centre given the node, `effect_sd` its spots' spacing, `log_spot` the
    log weight of each spot given the node (no spot where there are no effects); `moved` how far the
    posterior has moved since the nodes were placed: the sum over answers of the Kullback-Leibler
    divergence of the posterior after it from that before.
    """

    latent: Float[Array, "models nodes latent"]
    log_node: Float[Array, "models nodes"]
    effect: Float[Array, "models groups nodes"]
    effect_sd: Float[Array, "models groups"]
    log_spot: Float[Array, "models groups nodes spots"]
    moved: Float[Array, " models"]


def prior_posterior(
    n_models: int, n_latent: int, effect_variance: Float[Array, " groups"] | None, dtype: jnp.dtype
) -> RunningPosterior:
    """Before any answer."""
    latent = jnp.zeros((n_models, n_latent), dtype)
    information = jnp.broadcast_to(jnp.eye(n_latent, dtype=dtype), (n_models, n_latent, n_latent))
    if effect_variance is None:
        return _without_answers(Mode(latent, information, None, None, None), None)
    shape = (n_models, len(effect_variance))
    effect, coupling = jnp.zeros(shape, dtype), jnp.zeros((*shape, n_latent), dtype)
    precision = jnp.broadcast_to(1 / effect_variance, shape)
    mode = Mode(latent, information, effect, precision, coupling)
    return _with_totals(_without_answers(mode, effect_variance))


def moments(
    posterior: RunningPosterior,
) -> tuple[Float[Array, "models latent"], Float[Array, "models latent latent"]]:
    """Mean and covariance of each model's latent vector."""
    weight = jax.nn.softmax(posterior.log_node, axis=1)
    mean = jnp.einsum("mq,mqk->mk", weight, posterior.latent)
    away = posterior.latent - mean[:, None]
    return mean, jnp.einsum("mq,mqk,mql->mkl", weight, away, away)


def with_answer(
    posterior: RunningPosterior,
    items: CurveItems,
    response: Float[Array, " models"],
    weight: Float[Array, " models"],
) -> RunningPosterior:
    """After one more answer of each model, at the nodes that there are.

    Args:
        posterior: before.
        items: the item of each model, models x 1.
        response: to it.
        weight: how often it counts; 0 changes nothing.
    """
    answers = Answers(response[:, None], weight[:, None])
    row, group = jnp.arange(len(response)), items.group[:, 0]
    if posterior.log_spot.shape[3]:
        centre, old = posterior.effect[row, group], posterior.log_spot[row, group]
        z, _ = effect_spots(old.dtype)
        spot = centre[..., None] + z * posterior.effect_sd[row, group][:, None, None]
    else:
        old = jnp.zeros_like(posterior.log_node)[..., None]
        spot = old
    told = jax.vmap(
        lambda shift: _at_nodes(answers, items, posterior.latent, shift[:, None]),
        in_axes=2,
        out_axes=3,
    )(spot)[:, 0]
    total = jax.nn.logsumexp(old, axis=2)
    log_node = posterior.log_node + jax.nn.logsumexp(old + told, axis=2) - total
    log_spot = posterior.log_spot
    if log_spot.shape[3]:
        log_spot = log_spot.at[row, group].set(old + told)
    before = jax.nn.softmax(old + (posterior.log_node - total)[..., None], axis=(1, 2))
    top = jnp.max(told, axis=(1, 2), keepdims=True)
    expected = jnp.log(jnp.sum(before * jnp.exp(told - top), axis=(1, 2)))
    moved = expected - jnp.sum(before * (told - top), axis=(1, 2))
    moved = posterior.moved + jnp.maximum(moved, 0)
    return dataclasses.replace(posterior, log_node=log_node, log_spot=log_spot, moved=moved)


def settled(
    posterior: RunningPosterior,
    answers: Answers,
    items: CurveItems,
    index: Int[Array, "models length"],
    effect_variance: Float[Array, " groups"] | None,
    is_wanted: Bool[Array, " models"],
) -> RunningPosterior:
    """With nodes placed anew where that is wanted or the posterior has moved away from them.

    Args:
        posterior: with all answers.
        answers: of each model so far, the first ones first; weight 0 behind.
        items: in one row.
        index: which items were answered.
        effect_variance: of each group's effects, None without.
        is_wanted: models whose posterior is to be that of scoring.
    """
    n_models = len(index)
    is_due = (posterior.moved > _FAR) | (is_wanted & (posterior.moved > 0))
    n_due, order = jnp.sum(is_due), jnp.argsort(~is_due)
    places = jnp.arange(min(_ROWS, n_models))

    def place_some(carried: tuple) -> tuple:
        done, held = carried
        # Out of bounds past the last that is due: read anyhow, written nowhere.
        row = jnp.where(done + places < n_due, order[done + places], n_models)
        given = Answers(answers.response[row], answers.weight[row])
        fresh = _placed(given, items, index[row], effect_variance)
        held = jax.tree.map(lambda old, new: old.at[row].set(new, mode="drop"), held, fresh)
        return done + len(places), held

    start = (jnp.zeros((), n_due.dtype), posterior)
    return jax.lax.while_loop(lambda carried: carried[0] < n_due, place_some, start)[1]


def _placed(
    answers: Answers,
    items: CurveItems,
    index: Int[Array, "models length"],
    effect_variance: Float[Array, " groups"] | None,
) -> RunningPosterior:
    """The posterior at nodes around its mode."""
    mode = find_mode(answers, items.of_each(index), effect_variance, is_rough=True)
    posterior = _without_answers(mode, effect_variance)
    length, width = index.shape[1], min(_WIDTH, index.shape[1])
    count = jnp.max(jnp.sum(answers.weight > 0, axis=1))

    def add(carried: tuple) -> tuple:
        first, log_node, log_spot = carried
        start = jnp.minimum(first, length - width)
        is_new = start + jnp.arange(width) >= first
        response, weight, item = (
            jax.lax.dynamic_slice_in_dim(leaf, start, width, axis=1)
            for leaf in (answers.response, answers.weight, index)
        )
        part = Answers(response, jnp.where(is_new, weight, 0))
        node, spot = _told(part, items.of_each(item), mode, posterior)
        return first + width, log_node + node, log_spot + spot

    start = (jnp.zeros((), jnp.int32), posterior.log_node, posterior.log_spot)
    _, log_node, log_spot = jax.lax.while_loop(lambda now: now[0] < count, add, start)
    summed = dataclasses.replace(posterior, log_node=log_node, log_spot=log_spot)
    return summed if effect_variance is None else _with_totals(summed)


def _without_answers(
    mode: Mode, effect_variance: Float[Array, " groups"] | None
) -> RunningPosterior:
    """Prior over proposal at the nodes, and at the spots of each effect."""
    spread, log_ratio = nodes_around(mode, jnp.linalg.cholesky(mode.information))
    latent, moved = mode.latent[:, None] + spread, jnp.zeros_like(log_ratio[:, 0])
    if effect_variance is None:
        n_models, n_nodes = log_ratio.shape
        effect = jnp.zeros((n_models, 0, n_nodes), latent.dtype)
        return RunningPosterior(
            latent, log_ratio, effect, effect[..., 0], effect[..., None][..., :0], moved
        )
    assert mode.effect is not None
    assert mode.precision is not None
    assert mode.coupling is not None
    z, weight = effect_spots(latent.dtype)
    effect = mode.effect[..., None] - jnp.einsum("mgk,mqk->mgq", mode.coupling, spread)
    sd = 1 / jnp.sqrt(mode.precision)
    wide = sd[..., None, None]
    log_spot = effect_log_ratio(
        effect[..., None] + z * wide, effect_variance[:, None, None], z, wide
    ) + jnp.log(weight)
    return RunningPosterior(latent, log_ratio, effect, sd, log_spot, moved)


def _with_totals(posterior: RunningPosterior) -> RunningPosterior:
    """Nodes with the weight of their effects' spots."""
    total = jnp.sum(jax.nn.logsumexp(posterior.log_spot, axis=3), axis=1)
    return dataclasses.replace(posterior, log_node=posterior.log_node + total)


def _told(
    answers: Answers, items: CurveItems, mode: Mode, posterior: RunningPosterior
) -> tuple[Array, Array]:
    """What answers add to the log weights of nodes and spots."""
    n_models, n_nodes, _ = posterior.latent.shape
    at_mode = log_likelihoods(answers, items, mode.latent, shifts(mode.effect, items, n_models))
    if mode.effect is None:
        shift = jnp.zeros((*at_mode.shape, n_nodes), at_mode.dtype)
        gained = _at_nodes(answers, items, posterior.latent, shift) - at_mode[..., None]
        return jnp.sum(gained, axis=1), jnp.zeros_like(posterior.log_spot)
    member = in_groups(items, mode.effect.shape[1], at_mode.dtype)
    centre = jnp.take_along_axis(posterior.effect, items.group[..., None], axis=1)
    sd = jnp.take_along_axis(posterior.effect_sd, items.group, axis=1)[..., None]

    def spot(_: None, z: Array) -> tuple[None, Array]:
        gained = _at_nodes(answers, items, posterior.latent, centre + z * sd) - at_mode[..., None]
        return None, jnp.einsum("mnq,mng->mgq", gained, member)

    _, found = jax.lax.scan(spot, None, effect_spots(at_mode.dtype)[0])
    return jnp.zeros_like(posterior.log_node), jnp.moveaxis(found, 0, 3)


def _at_nodes(
    answers: Answers,
    items: CurveItems,
    latent: Float[Array, "models nodes latent"],
    shift: Float[Array, "models width nodes"],
) -> Float[Array, "models width nodes"]:
    """Log-likelihood of every answer at each node of its model."""
    return jax.vmap(
        lambda at, moved: log_likelihoods(answers, items, at, moved), in_axes=(1, 2), out_axes=2
    )(latent, shift)
