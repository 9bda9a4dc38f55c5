"""theta-irt (JAX): Bock-Aitkin EM of the 3PL and 4PL with its priors, cold and warm."""

from typing import Any

import numpy as np

from benchmarks.peers.harness import (
    Clock,
    Outcome,
    PeerProblem,
    main,
    with_nan,
)


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`family`; `slope_sd`, `intercept_sd`: normal priors on log slope and intercept, or absent."""
    with clock("import"):
        import theta
        from theta.priors import Priors
    responses = with_nan(problem.dense())
    priors = Priors(la_sd=settings.get("slope_sd"), beta_sd=settings.get("intercept_sd"))
    family = settings["family"].upper()
    with clock("cold"):
        theta.fit(responses, family, priors=priors)
    with clock("fit"):
        model = theta.fit(responses, family, priors=priors)
    parameters = {
        "slope": np.asarray(model.a),
        "difficulty": np.asarray(model.b),
        "guessing": np.asarray(model.c),
        "feasibility": np.asarray(model.d),
    }
    probability = None
    if len(problem.test_model):
        ability, _ = model.score(responses)
        probability = np.asarray(model.prob(ability))[problem.test_model, problem.test_item]
    report = {
        "n_steps": int(model.n_iter),
        "status": "converged" if model.converged else "step limit",
        "objective": float(model.loglik),
    }
    return Outcome(probability, parameters, report)


if __name__ == "__main__":
    main(run, "theta-irt")
