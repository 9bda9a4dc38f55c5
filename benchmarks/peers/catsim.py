"""catsim: picks of the most informative item from a bank, abilities given."""

from typing import Any

import numpy as np

from benchmarks.peers.harness import Clock, Outcome, PeerProblem, main


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`picks`: how many items to pick one after the other."""
    with clock("import"):
        from catsim import ItemBank
        from catsim.selection import MaxInfoSelector
    names = ("slope", "difficulty", "guessing", "feasibility")
    with clock("bank"):
        bank = ItemBank(np.stack([problem.items[name] for name in names], axis=1))
    selector, taken = MaxInfoSelector(), []
    with clock("fit"):
        for theta in np.linspace(-2, 2, settings["picks"]):
            taken.append(
                selector.select(item_bank=bank, administered_items=taken, est_theta=float(theta))
            )
    return Outcome(report={"n_picks": len(taken), "bank_cpu_seconds": clock.cpu["bank"]})


if __name__ == "__main__":
    main(run, "catsim")
