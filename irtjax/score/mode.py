"""Where a model's likelihood is highest: abilities and benchmark effects by Newton's iteration.

With the normal prior that is the posterior's mode (MAP), around which quadrature puts its nodes.
Without the abilities' prior, Warm's term takes its place (WLE): the score becomes
`U + 1/2 sum_j tr(I^-1 P_j'') P_j' / (P_j (1 - P_j))`, with I the information and derivatives in the
abilities. In one dim that is Warm (1989, Psychometrika 54, equation 10), `U + J / (2 I)`; in more
dims Firth's correction of the first-order bias (Kosmidis and Firth 2009, Biometrika 96), for any
curves. It is finite for all-right and all-wrong answers.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.fit.packed import solve_positive_definite
from irtjax.model.pytree import pytree_dataclass
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems, Slopes, bends, curve_slopes

__all__ = ["Mode", "find_mode", "in_groups", "shifts"]

_MOST_STEPS = 200
# Per step, in standard deviations of the latent vector, and in logits of an effect.
_LONGEST_STEP = 1.0
# Found when nothing moves by more than this power of the rounding: 1e-5 in float32.
_STILL = 0.7
_ROUGHLY = 0.02
# Precision in place of the prior's in the weighted likelihood (sd 300): where answers say nothing
# of a direction, it stays where it is.
_HARDLY_ANY = 1e-5


@pytree_dataclass
class Mode:
    """Latent vectors and effects at the top, and how fast the log-density falls from there.

    `information` is of the latent vector with the effects profiled out (and the prior, where there
    is one); `precision` that of each effect given the latent vector, and an effect's centre moves
    by `-coupling` with it.
    """

    latent: Float[Array, "models latent"]
    information: Float[Array, "models latent latent"]
    effect: Float[Array, "models groups"] | None
    precision: Float[Array, "models groups"] | None
    coupling: Float[Array, "models groups latent"] | None


@functools.partial(jax.jit, static_argnames=("n_weighted", "is_rough"))
def find_mode(
    answers: Answers,
    items: CurveItems,
    effect_variance: Float[Array, " groups"] | None,
    *,
    n_weighted: int = 0,
    is_rough: bool = False,
) -> Mode:
    """Newton's iteration from the prior's mean until nothing moves.

    Args:
        answers: of a batch of models.
        items: that they answered.
        effect_variance: of each group's effects, None without.
        n_weighted: of the first so many latent coordinates Warm's term replaces the prior; 0 for
            the posterior's mode.
        is_rough: near enough to put the nodes of a quadrature around.
    """
    n_models = answers.response.shape[0]
    dtype = answers.response.dtype
    n_latent = items.mean.shape[-1] - 1
    tolerance = _ROUGHLY if is_rough else float(jnp.finfo(dtype).eps) ** _STILL
    is_weighted = jnp.arange(n_latent) < n_weighted
    precision = jnp.where(is_weighted, _HARDLY_ANY, 1.0).astype(dtype)
    effect = None
    if effect_variance is not None:
        effect = jnp.zeros((n_models, effect_variance.shape[0]), dtype)

    def step(now: tuple) -> tuple:
        latent, effect, _, count = now
        _, move, effect_move = _step(
            answers, items, latent, effect, effect_variance, precision, n_weighted
        )
        moved = jnp.max(jnp.abs(move))
        if effect is not None and effect_move is not None:
            effect = effect + effect_move
            moved = jnp.maximum(moved, jnp.max(jnp.abs(effect_move)))
        return latent + move, effect, moved, count + 1

    start = (
        jnp.zeros((n_models, n_latent), dtype),
        effect,
        jnp.asarray(jnp.inf, dtype),
        jnp.zeros((), jnp.int32),
    )
    latent, effect, _, _ = jax.lax.while_loop(
        lambda now: (now[2] > tolerance) & (now[3] < _MOST_STEPS), step, start
    )
    return _step(answers, items, latent, effect, effect_variance, precision, n_weighted)[0]


def shifts(effect: Array | None, items: CurveItems, n_models: int) -> Float[Array, "models width"]:
    """Each cell's effect; 0 without effects."""
    width = items.group.shape[1]
    if effect is None:
        return jnp.zeros((n_models, width), items.mean.dtype)
    if items.group.shape[0] == 1:
        return effect[:, items.group[0]]
    return jnp.take_along_axis(effect, items.group, axis=1)


def in_groups(items: CurveItems, n_groups: int, dtype: jnp.dtype) -> Float[Array, "rows width g"]:
    """Which group each item is in, as sums over cells take it."""
    return jax.nn.one_hot(items.group, n_groups, dtype=dtype)


def group_sums(member: Float[Array, "rows width g"], cells: Float[Array, "models width"]) -> Array:
    """Sums of the cells of each group."""
    if member.shape[0] == 1:
        return cells @ member[0]
    return jnp.einsum("mn,mng->mg", cells, member)


def _step(
    answers: Answers,
    items: CurveItems,
    latent: Array,
    effect: Array | None,
    effect_variance: Array | None,
    precision: Float[Array, " latent"],
    n_weighted: int,
) -> tuple[Mode, Array, Array | None]:
    """The density at a point, and the step from there."""
    n_models = latent.shape[0]
    shift = shifts(effect, items, n_models)
    slopes = curve_slopes(items, latent, shift)
    first, expected, steepness = _score_and_steepness(answers, slopes)
    score = jnp.einsum("mn,kmn->mk", first, slopes.by_latent) - precision * latent
    given = (items, slopes, precision, effect_variance)
    information, own, coupling = _profile(steepness, *given)
    effect_score = None
    if effect is not None and effect_variance is not None and coupling is not None:
        member = in_groups(items, effect.shape[1], latent.dtype)
        effect_score = group_sums(member, first * slopes.by_shift) - effect / effect_variance
        score = score - jnp.einsum("mgk,mg->mk", coupling, effect_score)
    if n_weighted:
        fisher, _, _ = _profile(expected, *given)
        score = score.at[:, :n_weighted].add(
            _warm_term(answers, items, latent, shift, slopes, fisher, n_weighted)
        )
    move = solve_positive_definite(information, score[..., None])[..., 0]
    length = jnp.sqrt(jnp.sum(move**2, axis=1, keepdims=True))
    move = move * (_LONGEST_STEP / jnp.maximum(length, _LONGEST_STEP))
    effect_move = None
    if effect_score is not None and own is not None and coupling is not None:
        effect_move = effect_score / own - jnp.einsum("mgk,mk->mg", coupling, move)
        effect_move = jnp.clip(effect_move, -_LONGEST_STEP, _LONGEST_STEP)
    return Mode(latent, information, effect, own, coupling), move, effect_move


def _profile(
    steepness: Float[Array, "models width"],
    items: CurveItems,
    slopes: Slopes,
    precision: Float[Array, " latent"],
    effect_variance: Float[Array, " groups"] | None,
) -> tuple[Array, Array | None, Array | None]:
    """Information of the latent vector, effects profiled out; theirs, and the coupling."""
    information = jnp.einsum(
        "mn,kmn,lmn->mkl", steepness, slopes.by_latent, slopes.by_latent, optimize="optimal"
    ) + jnp.diag(precision)
    if effect_variance is None:
        return information, None, None
    member = in_groups(items, effect_variance.shape[0], steepness.dtype)
    own = group_sums(member, steepness * slopes.by_shift**2) + 1 / effect_variance
    crossed = steepness * slopes.by_shift
    cross = jnp.stack([group_sums(member, crossed * along) for along in slopes.by_latent], -1)
    coupling = cross / own[..., None]
    return information - jnp.einsum("mgk,mgl->mkl", coupling, cross), own, coupling


def _score_and_steepness(answers: Answers, slopes: Slopes) -> tuple[Array, Array, Array]:
    """`dl/dP` and what multiplies the squared slopes of P in the expected and the used information.

    The used one is the larger of the expected and the observed: where answers curve more than
    expected, steps by the expected alone go to and fro for ever.
    """
    variance = slopes.p * slopes.not_p
    first = answers.weight * (answers.response / slopes.p - (1 - answers.response) / slopes.not_p)
    square = slopes.by_shift**2
    is_steep = square > jnp.finfo(square.dtype).tiny * 1e6
    bend = jnp.where(is_steep, slopes.by_shift_twice / jnp.where(is_steep, square, 1), 0)
    observed = (
        answers.response / slopes.p**2 + (1 - answers.response) / slopes.not_p**2
    ) * answers.weight - first * bend
    expected = answers.weight / variance
    return first, expected, jnp.where(is_steep, jnp.maximum(expected, observed), 0)


def _warm_term(
    answers: Answers,
    items: CurveItems,
    latent: Array,
    shift: Array,
    slopes: Slopes,
    information: Array,
    n_weighted: int,
) -> Float[Array, "models weighted"]:
    """`1/2 sum_j tr(I^-1 P_j'') P_j' / (P_j (1 - P_j))` over the weighted coordinates."""
    inverse = jnp.linalg.inv(information)[:, :n_weighted, :n_weighted]
    bend = bends(items, latent, shift, inverse)
    by_latent = slopes.by_latent[:n_weighted]
    weight = 0.5 * answers.weight / (slopes.p * slopes.not_p)
    return jnp.einsum("mn,kmn->mk", weight * bend, by_latent)
