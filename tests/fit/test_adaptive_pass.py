"""Adaptive quadrature against a dense grid in NumPy: wide and very narrow posteriors."""

import dataclasses

import jax
import numpy as np
import pytest

from irtjax.fit.adaptive_pass import adaptive_pass, adaptive_posteriors, start_placement
from irtjax.model.priors import LogNormal, Priors
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels
from tests.tolerances import close

# Passes that bring the nodes to the posteriors: from sd 1 to a hundredth, and to rest there.
N_PASSES = 10
# Dense grids: nodes a dim over the whole space, on the way to a narrow posterior, and around it.
N_DENSE = {1: 5001, 2: 121}
N_COARSE = {1: 61, 2: 31}
N_CLOSE = {1: 201, 2: 41}
PRIORS = Priors(slope=LogNormal(0.0, 0.5))


@dataclasses.dataclass(frozen=True)
class Kind:
    """Family, dims, items (many: narrow posteriors), nodes a dim, how exact these are."""

    family: str
    dims: int
    n_items: int
    n_nodes: int
    error: float


KINDS = {
    "2pl": Kind("2pl", 1, 7, 15, 1e-5),
    "4pl": Kind("4pl", 1, 7, 31, 1e-4),
    "2pl-narrow": Kind("2pl", 1, 2000, 15, 1e-6),
    "3pl-narrow": Kind("3pl", 1, 600, 15, 1e-6),
    "2pl-2d": Kind("2pl", 2, 9, 15, 1e-4),
    "2pl-2d-narrow": Kind("2pl", 2, 600, 7, 1e-5),
}


@dataclasses.dataclass
class Dense:
    """Posteriors of each model on nodes of its own: models x nodes (x dims), and the likelihood."""

    node: np.ndarray
    weight: np.ndarray
    log_likelihood: np.ndarray

    @property
    def mean(self):
        return np.einsum("nq,nqk->nk", self.weight, self.node)

    def seen(self, i):
        """Nodes of model i with a weight, and the weights: far out a curve rounds to 0 or 1."""
        is_seen = self.weight[i] > 1e-11
        return self.node[i][is_seen], self.weight[i][is_seen]

    @property
    def covariance(self):
        away = self.node - self.mean[:, None]
        return np.einsum("nq,nqk,nql->nkl", self.weight, away, away)


def on_box(problem, i, low, high, n_nodes):
    """Nodes, log-joint densities and the volume of a node, over a box, of model i."""
    lines = [np.linspace(a, b, n_nodes) for a, b in zip(low, high, strict=True)]
    node = np.stack([each.ravel() for each in np.meshgrid(*lines, indexing="ij")], axis=1)
    g = problem.population[i]
    log_p, log_not_p = reference.log_curves(problem.family, problem.items, node)
    joint = problem.right[i] @ log_p + problem.wrong[i] @ log_not_p
    standard = np.linalg.solve(problem.factor[g], (node - problem.mean[g]).T).T
    joint = joint - 0.5 * np.sum(standard**2, axis=1) - np.log(np.linalg.det(problem.factor[g]))
    joint = joint - problem.dims / 2 * np.log(2 * np.pi)
    return node, joint, np.sum([np.log(line[1] - line[0]) for line in lines])


def dense_posteriors(problem, is_narrow):
    """The integral as a sum: over the whole space, or, where narrow, over boxes that close in."""
    dims = problem.dims
    n_last, n_coarse = (N_CLOSE if is_narrow else N_DENSE)[dims], N_COARSE[dims]
    found = []
    for i in range(len(problem.count)):
        low, high = np.full(dims, -9.0), np.full(dims, 9.0)
        for _ in range(3 if is_narrow else 0):
            node, joint, _ = on_box(problem, i, low, high, n_coarse)
            weight = np.exp(joint - joint.max())
            weight /= weight.sum()
            centre = weight @ node
            step = (high - low) / (n_coarse - 1)
            reach = 8 * np.sqrt(weight @ (node - centre) ** 2) + 3 * step
            low, high = centre - reach, centre + reach
        found.append(on_box(problem, i, low, high, n_last))
    joint = np.array([each[1] for each in found])
    total = reference.log_sum(joint)
    return Dense(
        np.array([each[0] for each in found]),
        np.exp(joint - total[:, None]),
        total + np.array([each[2] for each in found]),
    )


@pytest.fixture(scope="module", params=list(KINDS))
def passed(request):
    """A kind, its problem, the dense posteriors, and what the adaptive pass found."""
    kind = KINDS[request.param]
    is_narrow = kind.n_items > 100
    problem = reference.random_problem(
        np.random.default_rng(12),
        kind.family,
        dims=kind.dims,
        n_models=9 if is_narrow or kind.dims == 2 else 40,
        n_items=kind.n_items,
    )
    placed = PlacedModels(problem, 3, PRIORS)

    def settle(blocks, count, items, populations, covariance):
        def once(_, carry):
            return adaptive_pass(
                blocks, count, placed.model, items, populations, carry, kind.n_nodes
            )[1]

        placement = start_placement(blocks, kind.dims, items.slope.dtype)
        placement = jax.lax.fori_loop(0, N_PASSES, once, placement)
        last, _ = adaptive_pass(
            blocks, count, placed.model, items, populations, placement, kind.n_nodes
        )
        posteriors = adaptive_posteriors(
            blocks, placed.model, items, covariance, populations, placement, kind.n_nodes
        )
        return last, posteriors

    n = placed.model.n_coordinates
    covariance = np.broadcast_to(0.01 * np.eye(n), (kind.n_items, n, n))
    covariance = covariance.astype(placed.items.slope.dtype)
    last, posteriors = placed.run(settle, placed.items, placed.populations, covariance)
    dense = dense_posteriors(problem, is_narrow)
    return kind, problem, dense, last, placed.models_first(posteriors)


@pytest.mark.oracle
def test_log_likelihood(passed):
    kind, problem, dense, last, _ = passed
    expected = problem.count @ dense.log_likelihood
    # The density's constant is left out: it cancels between nodes and population.
    bound = max(kind.error, 2e-6) if last.log_likelihood.dtype == np.float32 else kind.error
    np.testing.assert_allclose(last.log_likelihood, expected, rtol=bound)


@pytest.mark.oracle
def test_posteriors_of_the_models(passed):
    _, problem, dense, _, posteriors = passed
    sd = np.sqrt(np.einsum("nkk->nk", dense.covariance))
    is_float32 = posteriors.mean.dtype == np.float32
    # Nodes a thousandth apart are sums of 2,000 logarithms apart.
    bound = 2e-3 if is_float32 else 3e-4
    assert np.abs((posteriors.mean - dense.mean) / sd).max() < bound
    scaled = (posteriors.posterior_only - dense.covariance) / sd[:, :, None] / sd[:, None]
    assert np.abs(scaled).max() < 5 * bound
    expected = [
        w @ reference.curves(problem.family, problem.items, node).mean(axis=0)
        for w, node in zip(dense.weight, dense.node, strict=True)
    ]
    np.testing.assert_allclose(posteriors.expected_score, expected, atol=1e-4)


@pytest.mark.oracle
def test_errors_of_the_items_are_added(passed):
    """`sum_j J_j V_j J_j'` with the derivative J of the posterior mean in the item's parameters."""
    _, problem, dense, _, posteriors = passed
    added = np.zeros_like(dense.covariance)
    for i in range(len(problem.count)):
        node, weight = dense.seen(i)
        p = reference.curves(problem.family, problem.items, node)
        away = node - dense.mean[i]
        for k in range(len(problem.items)):
            moved = problem.items.astype(complex)
            moved[k] += 1j * reference.TINY
            change = np.imag(reference.curves(problem.family, moved, node)) / reference.TINY
            score = problem.right[i][:, None] / p - problem.wrong[i][:, None] / (1 - p)
            slope = (score * change) @ (weight[:, None] * away)
            added[i] += 0.01 * slope.T @ slope
    actual = posteriors.covariance - posteriors.posterior_only
    scale = np.abs(added).max(axis=(1, 2), keepdims=True)
    assert np.abs((actual - added) / np.maximum(scale, 1e-12)).max() < 5e-3


@pytest.mark.oracle
def test_moments_of_the_populations(passed):
    _, problem, dense, last, _ = passed
    second = dense.covariance + dense.mean[:, :, None] * dense.mean[:, None]
    for g in range(len(problem.mean)):
        count = np.where(problem.population == g, problem.count, 0)
        close(last.moments.count[g], count.sum())
        np.testing.assert_allclose(last.moments.total[g], count @ dense.mean, atol=2e-3)
        expected = np.einsum("n,nkl->kl", count, second)
        np.testing.assert_allclose(last.moments.squares[g], expected, atol=5e-3)


@pytest.mark.oracle
def test_derivatives_of_the_items(passed):
    """Gradients by Fisher's identity, in the steps' coordinates; information as expected."""
    kind, problem, dense, last, _ = passed
    items = problem.items
    place = items.copy()
    sign = np.sign(items[: kind.dims])
    place[: kind.dims] = np.log(np.abs(items[: kind.dims]))

    def curves(place, node):
        slopes = sign * np.exp(place[: kind.dims])
        return reference.curves(problem.family, np.concatenate([slopes, place[kind.dims :]]), node)

    gradient = np.zeros_like(items)
    information = np.zeros((len(items), len(items), kind.n_items))
    for i in range(len(problem.count)):
        node, weight = dense.seen(i)
        p, weight = curves(place, node), problem.count[i] * weight
        changes = []
        for k in range(len(items)):
            moved = place.astype(complex)
            moved[k] += 1j * reference.TINY
            changes.append(np.imag(curves(moved, node)) / reference.TINY)
        score = problem.right[i][:, None] / p - problem.wrong[i][:, None] / (1 - p)
        gradient += np.array([(score * change) @ weight for change in changes])
        cells = (problem.right[i] + problem.wrong[i])[:, None] / p / (1 - p)
        for k, one in enumerate(changes):
            for m, other in enumerate(changes):
                information[k, m] += (cells * one * other) @ weight
    found = last.derivatives
    np.testing.assert_allclose(found.gradient, gradient, rtol=2e-3, atol=5e-3)
    rows, columns = np.tril_indices(len(items))
    np.testing.assert_allclose(found.information, information[rows, columns], rtol=5e-3, atol=5e-3)
