"""Row MCMC: NUTS on the same posterior, by numpyro (`irtjax[mcmc]`)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.psn_irt.bayes import Unknowns, log_joint, prior_mean
from irtjax.errors import InputError

__all__ = ["nuts_draws"]


def nuts_draws(
    response: np.ndarray,
    *,
    seed: int,
    n_warmup: int = 300,
    n_samples: int = 300,
    n_chains: int = 2,
    depth: int = 7,
) -> tuple[list[Unknowns], dict[str, Any]]:
    """Draws of all chains, and how they went.

    Args:
        response: models x items; -1 is no response.
        seed: of the chains.
        n_warmup: steps a chain that adapt the sampler and are dropped.
        n_samples: steps a chain that are kept.
        n_chains: one after the other.
        depth: most doublings of a trajectory (2^depth - 1 gradients).

    Returns:
        The draws, and `r_hat` (the largest of the abilities), `effective_draws` (the fewest of
        them) and `divergences`.

    Raises:
        InputError: numpyro is not installed.
    """
    try:
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
        from numpyro.infer import MCMC, NUTS
    except ModuleNotFoundError:
        raise InputError("numpyro is not installed: pip install irtjax[mcmc]") from None
    cells = jnp.asarray(response, jnp.int32)
    start = prior_mean(*response.shape)
    kernel = NUTS(
        potential_fn=lambda unknowns: -log_joint(Unknowns(**unknowns), cells), max_tree_depth=depth
    )
    sampler = MCMC(
        kernel,
        num_warmup=n_warmup,
        num_samples=n_samples,
        num_chains=n_chains,
        chain_method="sequential",
        progress_bar=False,
    )
    key, noise = jax.random.split(jax.random.key(seed))
    first = {
        name: value + 0.1 * jax.random.normal(noise, (n_chains, *value.shape))
        for name, value in vars(start).items()
    }
    # numpyro mixes whole numbers and fractions, which strict promotion refuses.
    with jax.numpy_dtype_promotion("standard"):
        sampler.run(key, init_params=first, extra_fields=("diverging", "num_steps"))
        by_chain = np.asarray(sampler.get_samples(group_by_chain=True)["ability"])
        found = sampler.get_samples()
        extra = sampler.get_extra_fields()
    draws = [Unknowns(a, b) for a, b in zip(found["ability"], found["items"], strict=True)]
    return draws, {
        "r_hat": float(np.max(split_gelman_rubin(by_chain))),
        "effective_draws": float(np.min(effective_sample_size(by_chain))),
        "divergences": int(np.sum(extra["diverging"])),
        "gradients": int(np.sum(extra["num_steps"])),
        "draws": len(draws),
    }
