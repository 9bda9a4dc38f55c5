"""dynamirt (NumPyro): stochastic variational inference with a mean-field normal guide."""

from typing import Any

import numpy as np

from benchmarks.peers.harness import (
    Clock,
    Outcome,
    PeerProblem,
    keep_compiled,
    main,
    sigmoid,
    with_nan,
)

_DRAWS = 50


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`family`, `dims`, `steps`, `lr` (Adam's)."""
    with clock("import"):
        import jax
        from dynamirt import dynamirt, fit_svi
        from numpyro.optim import Adam
    responses = with_nan(problem.dense(), np.float32)
    keep_compiled()

    def fitted() -> Any:
        model = dynamirt(settings["family"].upper(), n_latent=settings["dims"])
        result = fit_svi(
            model,
            responses,
            optim=Adam(settings["lr"]),
            num_steps=settings["steps"],
            run_kwargs={"progress_bar": False},
            return_deterministic=False,
        )
        jax.block_until_ready(result.inference.result.params)
        return result.inference

    with clock("cold"):
        fitted()
    with clock("fit"):
        state = fitted()
    # Left alone it compiles at every call: a further fit costs what the first one does.
    report = {"n_steps": settings["steps"], "again_cpu_seconds": clock.cpu["cold"]}
    guide, params = state.svi.guide, state.result.params
    sites = guide.median(params)
    parameters = _parameters(sites, settings)
    probability = None
    if len(problem.test_model):
        # The mean over draws of the posterior predicts better than the medians.
        draws = guide.sample_posterior(jax.random.key(1), params, sample_shape=(_DRAWS,))
        one = [{name: np.asarray(value[k]) for name, value in draws.items()} for k in range(_DRAWS)]
        probability = np.mean([_predicted(draw, problem) for draw in one], axis=0)
    return Outcome(probability, parameters, report)


def _ability(sites: dict[str, Any]) -> np.ndarray:
    (name,) = [name for name in sites if name.startswith("latent.")]
    # models x dims x predictors, with one predictor: the constant.
    return np.asarray(sites[name])[..., 0]


def _slope(sites: dict[str, Any]) -> np.ndarray:
    (name,) = [name for name in sites if name.startswith("loadings.")]
    return np.asarray(sites[name])


def _asymptotes(sites: dict[str, Any]) -> tuple[np.ndarray | float, np.ndarray | float]:
    lower = np.asarray(sites.get("measurement.lower_asymptote", 0.0))
    fraction = np.asarray(sites.get("measurement.upper_asymptote_fraction", 1.0))
    return lower, lower + (1 - lower) * fraction


def _predicted(sites: dict[str, Any], problem: PeerProblem) -> np.ndarray:
    intercept = np.asarray(sites["measurement.intercept"])
    logit = _ability(sites) @ _slope(sites).T + intercept
    lower, upper = _asymptotes(sites)
    probability = lower + (upper - lower) * sigmoid(logit)
    return probability[problem.test_model, problem.test_item]


def _parameters(sites: dict[str, Any], settings: dict[str, Any]) -> dict[str, np.ndarray]:
    if settings["dims"] > 1:
        return {}
    slope = _slope(sites)[:, 0]
    intercept = np.asarray(sites["measurement.intercept"])
    lower, upper = _asymptotes(sites)
    return {
        "slope": slope,
        "difficulty": -intercept / slope,
        "guessing": np.broadcast_to(lower, slope.shape),
        "feasibility": np.broadcast_to(upper, slope.shape),
    }


if __name__ == "__main__":
    main(run, "dynamirt")
