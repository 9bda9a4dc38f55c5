"""Which named problems there are, what irtjax fits to each, and which peers run beside it."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.large_problems import metabench_problem, selection_items, sparse_problem
from benchmarks.problems import Problem, problem_w1, reference_problem_w2, reference_problem_w3

__all__ = ["PROBLEMS", "IrtjaxRun", "PeerRun", "ProblemPlan"]


@dataclasses.dataclass(frozen=True)
class IrtjaxRun:
    """One setting of irtjax: `family` and `dims` of the spec, further arguments of `irtjax.fit`.

    For items to select from, how many `picks`.
    """

    label: str
    family: str = "2pl"
    dims: int = 1
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    warm_fits: int = 3


@dataclasses.dataclass(frozen=True)
class PeerRun:
    """One setting of a peer: `settings` go to `benchmarks/peers/NAME.py`."""

    peer: str
    label: str
    settings: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class ProblemPlan:
    """A named problem.

    Attributes:
        make: draws or reads the problem (for `selection`: the items of the bank).
        irtjax: its settings; ratios are against the first.
        peers: in the order in which they run.
        left_out: peers (or irtjax) that do not run, with the reason that the table shows.
        irtjax_turns: irtjax runs before the first peer and then before some of the others, this
            many times in all; the medians are over these.
        figure_of_merit: the column that the figure shows against the seconds.
    """

    make: Callable[[], Any]
    irtjax: tuple[IrtjaxRun, ...] = ()
    peers: tuple[PeerRun, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    irtjax_turns: int = 3
    figure_of_merit: str = "log_loss"


def _w3(family: str) -> Problem:
    return reference_problem_w3(family)


_ONE_DIM = "fits one dim only"
_NO_MISSING = "its estimator takes no missing cells"
_SLOW = "{}; 140 million cells would take it hours (W2, 3 million cells, takes it a minute or more)"
_DENSE = "takes a dense matrix only: 10^9 cells in float32 and its gradients exceed the memory"


def _mirt_em(family: str) -> dict[str, str]:
    # SQUAREM takes it to the same estimates in .6 of the time.
    return {"method": "em", "family": family, "accelerate": "squarem"}


_W1_PEERS = (
    PeerRun("theta-irt", "4PL, priors", {"family": "4pl", "slope_sd": 0.5, "intercept_sd": 2.0}),
    PeerRun("dynamirt", "2PL SVI 1,000", {"family": "2pl", "dims": 1, "steps": 1000, "lr": 0.05}),
    PeerRun(
        "torch-measure",
        "2PL SVI 2,000",
        {"model": "2pl", "method": "svi", "epochs": 2000, "lr": 0.02},
    ),
    PeerRun("py-irt", "2PL 2,000 epochs", {"dims": 1, "lr": 0.1, "epochs": 2000}),
    PeerRun("mirt", "2PL EM, priors, SQUAREM", _mirt_em("2pl")),
)
_W2_PEERS = (
    PeerRun("dynamirt", "SVI 300", {"family": "2pl", "dims": 2, "steps": 300, "lr": 0.05}),
    PeerRun("dynamirt", "SVI 1,000", {"family": "2pl", "dims": 2, "steps": 1000, "lr": 0.05}),
    PeerRun("mirt", "GVEM 40", {"method": "gvem", "dims": 2, "steps": 40}),
    PeerRun(
        "torch-measure",
        "factor MLE 200",
        {"model": "factor", "dims": 2, "method": "mle", "epochs": 200, "lr": 0.05},
    ),
    PeerRun(
        "py-irt",
        "BenchMIRT: lr .2, 5,000 epochs",
        {"dims": 2, "lr": 0.2, "epochs": 50, "of_epochs": 5000},
    ),
)
_W2_SLOW_PEERS = (PeerRun("py-irt", "lr .05, 800 epochs", {"dims": 2, "lr": 0.05, "epochs": 800}),)


def _w3_peers(family: str) -> tuple[PeerRun, ...]:
    name = family.upper()
    shared = (
        PeerRun("mirt", f"{name} EM, priors, SQUAREM", _mirt_em(family)),
        PeerRun("theta-irt", f"{name}, its priors", {"family": family}),
        PeerRun(
            "dynamirt",
            f"{name} SVI 1,000",
            {"family": family, "dims": 1, "steps": 1000, "lr": 0.05},
        ),
    )
    if family == "4pl":
        return shared
    return (
        PeerRun("girth", "3PL marginal ML", {}),
        *shared,
        PeerRun(
            "torch-measure",
            "3PL SVI 2,000",
            {"model": "3pl", "method": "svi", "epochs": 2000, "lr": 0.02},
        ),
    )


PROBLEMS: dict[str, ProblemPlan] = {
    "W1": ProblemPlan(
        problem_w1,
        irtjax=(
            IrtjaxRun(
                "6 dims, benchmark effects, mixture",
                dims=6,
                arguments={
                    "group": "benchmark",
                    "item_distribution": "mixture",
                    "components": 4,
                    "max_steps": 160,  # 140 more change the log-loss by .0001
                },
                warm_fits=1,
            ),
            IrtjaxRun("1 dim, no benchmarks"),
        ),
        peers=_W1_PEERS,
        left_out={"girth": _NO_MISSING},
        irtjax_turns=2,
    ),
    "W2": ProblemPlan(
        reference_problem_w2,
        irtjax=(IrtjaxRun("2PL, 2 dims", dims=2),),
        peers=_W2_PEERS,
        left_out={"theta-irt": _ONE_DIM, "girth": _NO_MISSING},
        irtjax_turns=5,
    ),
    "W2-slow": ProblemPlan(
        reference_problem_w2,
        irtjax=(IrtjaxRun("2PL, 2 dims", dims=2),),
        peers=_W2_SLOW_PEERS,
        irtjax_turns=1,
    ),
    "W3-3pl": ProblemPlan(
        lambda: _w3("3pl"),
        irtjax=(IrtjaxRun("3PL, defaults", "3pl", warm_fits=25),),
        peers=_w3_peers("3pl"),
        irtjax_turns=5,
        figure_of_merit="icc_rmse",
    ),
    "W3-4pl": ProblemPlan(
        lambda: _w3("4pl"),
        irtjax=(IrtjaxRun("4PL, defaults", "4pl", warm_fits=25),),
        peers=_w3_peers("4pl"),
        left_out={"girth": "has no 4PL", "torch-measure": "has no 4PL"},
        irtjax_turns=3,
        figure_of_merit="icc_rmse",
    ),
    "sparse": ProblemPlan(
        sparse_problem,
        irtjax=(IrtjaxRun("2PL, 1 dim", warm_fits=1),),
        peers=(
            PeerRun(
                "py-irt",
                "2PL, 2,000 epochs",
                {"dims": 1, "lr": 0.1, "epochs": 20, "of_epochs": 2000},
            ),
            PeerRun(
                "torch-measure",
                "2PL SVI 2,000",
                {"model": "2pl", "method": "svi", "epochs": 20, "of_epochs": 2000, "lr": 0.02},
            ),
        ),
        left_out={"dynamirt": _DENSE, "mirt": _DENSE, "theta-irt": _DENSE, "girth": _NO_MISSING},
        irtjax_turns=2,
    ),
    "metabench": ProblemPlan(
        metabench_problem,
        irtjax=(IrtjaxRun("2PL, 1 dim", warm_fits=1),),
        left_out={
            peer: _SLOW.format("not run")
            for peer in ("py-irt", "dynamirt", "torch-measure", "mirt", "theta-irt")
        }
        | {"girth": _NO_MISSING},
        irtjax_turns=1,
    ),
    "selection": ProblemPlan(
        selection_items,
        irtjax=(IrtjaxRun("maximum information", arguments={"picks": 50}),),
        peers=(
            PeerRun("catsim", "MaxInfoSelector", {"picks": 50}),
            PeerRun("mirt", "information pass", {"method": "information", "picks": 50}),
        ),
        irtjax_turns=2,
        figure_of_merit="",
    ),
}
