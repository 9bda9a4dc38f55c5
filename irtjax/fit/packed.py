"""Many small symmetric matrices at once, packed: `[pair, batch]` with the batch last.

LAPACK called once a matrix costs about 1 microsecond for 3 x 3; columns of the factorisation
written as array operations over the whole batch cost a tenth of it. The loops below run over the
columns (dims + 1), not over the batch.
"""

import numpy as np
from jax import numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float

__all__ = [
    "mixture_moments",
    "pair_index",
    "pack",
    "positive_definite_inverse",
    "positive_definite_solve",
    "products",
    "quadratic",
    "solve_positive_definite",
    "unpack",
    "unpack_index",
]


def pair_index(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle, in packed order."""
    return np.tril_indices(size)


def unpack_index(size: int) -> np.ndarray:
    """Position in packed order of each entry of the full matrix, `(size, size)`."""
    rows, columns = pair_index(size)
    position = np.empty((size, size), np.int32)
    position[rows, columns] = position[columns, rows] = np.arange(len(rows))
    return position


def mixture_moments(
    mean: Float[np.ndarray, "batch components size"],
    packed: Float[np.ndarray, "batch components pairs"],
    share: Float[np.ndarray, "batch components"],
) -> tuple[Float[np.ndarray, "batch size"], Float[np.ndarray, "batch pairs"]]:
    """Mean and packed covariance of a mixture of normals, within and between its components."""
    weight = share[:, :, None]
    centre = np.sum(weight * mean, axis=1)
    rows, columns = pair_index(centre.shape[1])
    away = mean - centre[:, None]
    between = away[:, :, rows] * away[:, :, columns]
    return centre, np.sum(weight * (packed + between), axis=1)


def pack(full: Float[Array, "batch size size"]) -> Float[Array, "pairs batch"]:
    """Lower triangles, batch last."""
    rows, columns = pair_index(full.shape[-1])
    return full[:, rows, columns].T


def unpack(packed: Float[Array, "pairs batch"], size: int) -> Float[Array, "size size batch"]:
    """Full symmetric matrices, batch last."""
    return packed[unpack_index(size)]


def products(vectors: Float[Array, "batch size"]) -> Float[Array, "batch pairs"]:
    """`v_a v_b` for each pair: sums of them are packed sums of outer products."""
    rows, columns = pair_index(vectors.shape[-1])
    return vectors[:, rows] * vectors[:, columns]


def quadratic(vectors: Float[Array, "batch size"]) -> Float[Array, "batch pairs"]:
    """Coefficients c with `c . packed(S) = v' S v`: off-diagonal products count twice."""
    rows, columns = pair_index(vectors.shape[-1])
    twice = np.where(rows == columns, 1.0, 2.0).astype(vectors.dtype)
    return products(vectors) * twice


def positive_definite_inverse(
    packed: Float[Array, "pairs batch"], size: int
) -> tuple[Float[Array, "pairs batch"], Float[Array, " batch"], Bool[Array, " batch"]]:
    """Inverse, log-determinant and whether each matrix is positive definite.

    The symmetric sweep: each step eliminates one column from the whole matrix, and its pivots are
    those of the `L D L'` Cholesky factorisation. As array operations it is `size` rank-one
    updates, which compile ten times faster than factor, inverse factor and product written out.
    Where a matrix is not positive definite the result must not be used.
    """
    swept = unpack(packed, size)
    is_positive = jnp.ones(swept.shape[-1], bool)
    log_determinant = jnp.zeros(swept.shape[-1], swept.dtype)
    for k in range(size):
        pivot = swept[k, k]
        is_positive &= pivot > 0
        pivot = jnp.where(pivot > 0, pivot, jnp.ones_like(pivot))
        log_determinant += jnp.log(pivot)
        # With -1 in its own place the column's outer product is also what comes into row and
        # column k: nothing is written into a copy.
        own = (np.arange(size) == k)[:, None]
        column = jnp.where(own, -1, swept[:, k])
        rest = jnp.where(own[:, None] | own[None], 0, swept)
        swept = rest - column[:, None] * (column / pivot)[None]
    rows, columns = pair_index(size)
    return -swept[rows, columns], log_determinant, is_positive


def positive_definite_solve(
    packed: Float[Array, "pairs batch"], size: int, right: Float[Array, "size batch"]
) -> Float[Array, "size batch"]:
    """`A^-1 b` of each matrix, as `solve_positive_definite`."""
    full = unpack(packed, size).transpose(2, 0, 1)
    return solve_positive_definite(full, right.T[..., None])[..., 0].T


def solve_positive_definite(
    full: Float[Array, "... size size"], right: Float[Array, "... size columns"]
) -> Float[Array, "... size columns"]:
    """`A^-1 B` of each matrix by Cholesky factors: LAPACK's, which compile at once at any size.

    Where a matrix is not positive definite in its rounding, B over the diagonal.
    """
    solved = cho_solve((jnp.linalg.cholesky(full), True), right)
    diagonal = jnp.diagonal(full, axis1=-2, axis2=-1)[..., None]
    along = right / jnp.maximum(diagonal, jnp.finfo(right.dtype).tiny)
    return jnp.where(jnp.isfinite(solved), solved, along)
