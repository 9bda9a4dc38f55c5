"""mirt (PyPI, Rust): GVEM of the 2PL, or EM with its default priors, then EAP abilities."""

from typing import Any

import numpy as np

from benchmarks.peers.harness import Clock, Outcome, PeerProblem, main, sigmoid

# Equal slopes on all factors are a saddle point of the bound that GVEM never leaves.
_START_SPREAD = 0.5


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`method`: `gvem` (`dims`, `steps`), `em` (`family`, `accelerate`), `information` (picks)."""
    methods = {"gvem": _gvem, "em": _em, "information": _information}
    return methods[settings["method"]](problem, settings, clock)


def _gvem(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    with clock("import"):
        from mirt.estimation.gvem import GVEMEstimator
        from mirt.models.dichotomous import TwoParameterLogistic
    responses = problem.dense().astype(np.int32)
    start = np.random.default_rng(0).normal(1, _START_SPREAD, (problem.shape[1], settings["dims"]))
    with clock("fit"):
        model = TwoParameterLogistic(problem.shape[1], n_factors=settings["dims"])
        estimator = GVEMEstimator(max_iter=settings["steps"], use_gpu=False)
        result = estimator.fit(model, responses, start={"discrimination": start})
    slope = result.model.parameters["discrimination"]
    # Its difficulty is of the sum of an item's slopes.
    intercept = -slope.sum(axis=1) * result.model.parameters["difficulty"]
    ability = estimator.variational_means[problem.test_model]
    logit = (ability * slope[problem.test_item]).sum(axis=1) + intercept[problem.test_item]
    return Outcome(sigmoid(logit), {}, _report(result))


def _em(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    with clock("import"):
        from mirt import fit_mirt, fscores
        from mirt.estimation.priors import default_priors
    responses = problem.dense().astype(np.int32)
    family = settings["family"].upper()
    with clock("fit"):
        result = fit_mirt(
            responses,
            family,
            priors=default_priors(family),
            compute_standard_errors=False,
            accelerate=settings.get("accelerate", "none"),
        )
    fitted = result.model.parameters
    names = {
        "slope": "discrimination",
        "difficulty": "difficulty",
        "guessing": "guessing",
        "feasibility": "upper",
    }
    parameters = {name: np.asarray(fitted[key]) for name, key in names.items() if key in fitted}
    probability = None
    if len(problem.test_model):
        with clock("score"):
            ability = np.asarray(fscores(result, responses, method="EAP").theta).ravel()
        logit = parameters["slope"] * (ability[:, None] - parameters["difficulty"])
        probability = sigmoid(logit[problem.test_model, problem.test_item])
    return Outcome(probability, parameters, _report(result))


def _information(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    with clock("import"):
        from mirt.models.dichotomous import FourParameterLogistic
    model = FourParameterLogistic(len(problem.items["slope"]))
    model.set_parameters(
        discrimination=problem.items["slope"],
        difficulty=problem.items["difficulty"],
        guessing=problem.items["guessing"],
        upper=problem.items["feasibility"],
    )
    thetas = np.linspace(-2, 2, settings["picks"])
    taken: list[int] = []
    with clock("fit"):
        for theta in thetas:
            information = np.array(model.information(np.array([[theta]]))).ravel()
            information[taken] = -np.inf
            taken.append(int(np.argmax(information)))
    return Outcome(report={"n_picks": len(taken)})


def _report(result: Any) -> dict[str, Any]:
    return {
        "n_steps": int(result.n_iterations),
        "status": "converged" if result.converged else "step limit",
        "objective": float(result.log_likelihood),
    }


if __name__ == "__main__":
    main(run, "mirt")
