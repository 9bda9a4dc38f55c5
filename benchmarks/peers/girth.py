"""girth: marginal maximum likelihood of the 3PL with its default options (no missing cells)."""

from typing import Any

from benchmarks.peers.harness import Clock, Outcome, PeerProblem, main


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """No settings: at most 25 iterations, 41 Gauss-Legendre nodes, no priors."""
    with clock("import"):
        from girth import threepl_mml
    responses = problem.dense().T.astype(int)
    with clock("fit"):
        fitted = threepl_mml(responses)
    parameters = {
        "slope": fitted["Discrimination"],
        "difficulty": fitted["Difficulty"],
        "guessing": fitted["Guessing"],
    }
    return Outcome(parameters=parameters)


if __name__ == "__main__":
    main(run, "girth")
