"""Distributions of ability in populations of models, on nodes: normal, or estimated weights.

The first population fixes the scale: mean 0 and standard deviation 1 in every dim. Nodes of
population g lie at `mean_g + factor_g node`; a normal population moves its nodes, an empirical one
(the field's empirical histogram) estimates their weights.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.fit.item_step import ItemModel, ItemParameters, log_prior
from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "Grid",
    "PopulationMoments",
    "Populations",
    "default_nodes",
    "expanded_move",
    "moments_of_nodes",
    "populations_move",
    "shifted",
    "start_populations",
    "update_populations",
]

# Nodes reach this many standard deviations, where the normal density is 1e-8 of its height.
_WIDEST = 6.0
# Newton steps of location and scale.
_MOVES = 4
# Added to the mass of every node of an empirical distribution, as a share of a model: weights of 0
# could never come back.
_LEAST_MASS = 1e-3


@pytree_dataclass
class Populations:
    """Location, scale (lower triangular) and log-weights of the nodes, by population."""

    mean: Float[Array, "populations dims"]
    factor: Float[Array, "populations dims dims"]
    log_weight: Float[Array, "populations nodes"]

    def nodes(self, grid: "Grid") -> Float[Array, "populations nodes dims"]:
        """Where each population's nodes lie."""
        base = jnp.asarray(grid.node, self.mean.dtype)
        return self.mean[:, None] + jnp.einsum("gkl,ql->gqk", self.factor, base)


@pytree_dataclass
class PopulationMoments:
    """Sums over the models of each population: of 1, `E[theta]` and `E[theta theta']`."""

    count: Float[Array, " populations"]
    total: Float[Array, "populations dims"]
    squares: Float[Array, "populations dims dims"]


def moments_of_nodes(
    populations: Populations, mass: Float[Array, "populations nodes"], grid: "Grid"
) -> PopulationMoments:
    """Moments from the expected number of models at each node."""
    node = populations.nodes(grid)
    return PopulationMoments(
        jnp.sum(mass, axis=1),
        jnp.einsum("gq,gqk->gk", mass, node),
        jnp.einsum("gq,gqk,gql->gkl", mass, node, node),
    )


@dataclasses.dataclass(frozen=True)
class Grid:
    """Nodes of a standard population (static): `n_nodes` a dim, equally spaced.

    For smooth curves the trapezoidal rule is as exact as Gauss-Hermite's; of 61 nodes it has 2.5
    times as many where the models are. Two steep items of TIMSS 2011 gain 10 nats between the
    Gauss-Hermite nodes that are not there.
    """

    dims: int
    n_nodes: int
    is_empirical: bool = False

    @property
    def node(self) -> np.ndarray:
        """Nodes x dims, float64."""
        return _product(self._line()[0], self.dims)

    @property
    def log_weight(self) -> np.ndarray:
        """Log-weights of the standard normal at the nodes; they sum to 1."""
        weight = _product(self._line()[1], self.dims).sum(axis=1)
        return weight - _log_sum(weight)

    @property
    def distance(self) -> float:
        """Between neighbouring nodes, in standard deviations."""
        return 2 * _WIDEST / (self.n_nodes - 1)

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        node = np.linspace(-_WIDEST, _WIDEST, self.n_nodes)
        return node, -0.5 * node**2


def _product(values: np.ndarray, dims: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[values] * dims, indexing="ij"), axis=-1).reshape(-1, dims)


def _log_sum(values: np.ndarray) -> float:
    return float(np.log(np.sum(np.exp(values - values.max()))) + values.max())


def start_populations(n_populations: int, grid: Grid, dtype: jnp.dtype) -> Populations:
    """All populations standard normal."""
    weight = jnp.asarray(grid.log_weight, dtype)
    return Populations(
        jnp.zeros((n_populations, grid.dims), dtype),
        jnp.broadcast_to(jnp.eye(grid.dims, dtype=dtype), (n_populations, grid.dims, grid.dims)),
        jnp.broadcast_to(weight, (n_populations, len(weight))),
    )


def update_populations(
    populations: Populations,
    items: ItemParameters,
    moments: PopulationMoments,
    is_correlated: bool,
    mass: Float[Array, "populations nodes"] | None = None,
    *,
    is_anchored: bool = False,
) -> tuple[Populations, ItemParameters]:
    """Populations from the posteriors of their models, and the items on the new scale.

    No logit changes: where the first population's moments move away from mean 0 and sd 1, its
    nodes move back and the items take the difference.

    Args:
        populations: current ones.
        items: current items.
        moments: sums over the models of each population.
        is_correlated: whether dims may correlate (a confirmatory model); else the first
            population's covariance is the identity.
        mass: expected number of models at each node, where the weights are estimated.
        is_anchored: items fix the scale: every population is at its models' moments.
    """
    count = jnp.maximum(moments.count, 1)[:, None]
    mean = moments.total / count
    covariance = moments.squares / count[..., None] - mean[:, :, None] * mean[:, None]
    unit = jnp.eye(mean.shape[1], dtype=mean.dtype)
    is_seen = (moments.count > 0)[:, None, None]
    covariance = jnp.where(is_seen, covariance, unit) + 1e-6 * unit
    if is_anchored:
        factor = jnp.linalg.cholesky(covariance)
        return Populations(mean, factor, populations.log_weight), items
    if mass is not None:
        full = mass + _LEAST_MASS
        weight = jnp.log(full) - jnp.log(jnp.sum(full, 1, keepdims=True))
        moved = Populations(populations.mean, populations.factor, weight)
        return _restandardised(moved, items, mean[0], jnp.sqrt(jnp.diagonal(covariance[0])))
    first, sd = unit, jnp.ones_like(mean[0])
    if is_correlated:
        first, sd = covariance[0], jnp.sqrt(jnp.diagonal(covariance[0]))
    moved = Populations(
        mean.at[0].set(0), jnp.linalg.cholesky(covariance.at[0].set(first)), populations.log_weight
    )
    return _restandardised(moved, items, jnp.zeros_like(sd), sd)


def populations_move(old: Populations, new: Populations) -> Float[Array, ""]:
    """Largest change of a mean or a scale, in standard deviations."""
    return jnp.maximum(
        jnp.max(jnp.abs(new.mean - old.mean)), jnp.max(jnp.abs(new.factor - old.factor))
    )


def expanded_move(
    model: ItemModel, items: ItemParameters, moments: PopulationMoments
) -> tuple[Float[Array, " dims"], Float[Array, " dims"]]:
    """Where the first population is best put: its mean and sd, given its models' posteriors.

    Parameter-expanded EM (Liu, Rubin & Wu 1998). Where posteriors are narrow, the items follow the
    abilities and the abilities the items: plain EM moves along location and scale by the share that
    the prior has in a posterior, a thousandth. Letting both move at once, priors of the items
    included, and taking the items along costs nothing.
    """
    dims = model.spec.dims
    count, total = moments.count[0], moments.total[0]
    squares = jnp.diagonal(moments.squares[0])

    def objective(place: Float[Array, " twice_dims"]) -> Float[Array, ""]:
        mean, log_sd = place[:dims], place[dims:]
        spread = squares - 2 * mean * total + count * mean**2
        density = jnp.sum(-0.5 * spread * jnp.exp(-2 * log_sd) - count * log_sd)
        return density + jnp.sum(log_prior(model, shifted(items, mean, jnp.exp(log_sd))))

    def newton(_: int, place: Float[Array, " twice_dims"]) -> Float[Array, " twice_dims"]:
        curvature = -jax.hessian(objective)(place)
        ridge = 1e-6 * jnp.trace(curvature) * jnp.eye(2 * dims, dtype=place.dtype)
        step = jnp.linalg.solve(curvature + ridge, jax.grad(objective)(place))
        return place + jnp.clip(step, -0.5, 0.5)

    place = jax.lax.fori_loop(0, _MOVES, newton, jnp.zeros(2 * dims, items.slope.dtype))
    return place[:dims], jnp.exp(place[dims:])


def shifted(
    items: ItemParameters, mean: Float[Array, " dims"], sd: Float[Array, " dims"]
) -> ItemParameters:
    """Items where abilities become `(theta - mean) / sd`; no logit changes."""
    intercept = items.intercept + items.slope @ mean
    return ItemParameters(items.slope * sd, intercept, items.asymptotes)


def _restandardised(
    populations: Populations,
    items: ItemParameters,
    mean: Float[Array, " dims"],
    sd: Float[Array, " dims"],
) -> tuple[Populations, ItemParameters]:
    """Abilities `(theta - mean) / sd`, slopes `slope * sd`, intercepts `+ slope . mean`."""
    moved = Populations(
        (populations.mean - mean) / sd, populations.factor / sd[:, None], populations.log_weight
    )
    return moved, shifted(items, mean, sd)


def default_nodes(dims: int) -> int:
    """Nodes a dim: 61 in one dim (21 leave log-likelihoods half a unit off), 21 in two."""
    return 61 if dims == 1 else math.ceil(441 ** (1 / dims))
