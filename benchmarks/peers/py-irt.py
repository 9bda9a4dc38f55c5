"""py-irt (Pyro): stochastic variational inference of its 2PL, one dim or many.

BenchMIRT's schedule is 5,000 epochs; `epochs` are run, and the time is extrapolated to `of_epochs`.
"""

from typing import Any

import numpy as np

from benchmarks.peers.harness import Clock, Outcome, PeerProblem, extrapolated, main, sigmoid


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`lr`, `epochs`, `of_epochs` (or absent), `dims`; one dim is its hierarchical 2PL."""
    with clock("import"):
        import pyro
        import torch
        from py_irt.config import IrtConfig
        from py_irt.training import IrtModelTrainer
    torch.set_num_threads(1)
    pyro.set_rng_seed(0)
    dims = settings.get("dims", 1)
    config = IrtConfig(
        model_type="2pl" if dims == 1 else "multidim_2pl",
        dims=dims,
        priors="hierarchical",
        lr=settings["lr"],
        epochs=settings["epochs"],
    )
    with clock("data"):
        trainer = IrtModelTrainer(
            data_path="", config=config, dataset=_dataset(problem), verbose=False
        )
    with clock("fit"):
        trainer.train()
    fitted = {name: np.asarray(trainer.last_params[name]) for name in ("ability", "diff", "disc")}
    ability, difficulty, slope = (value.reshape(len(value), -1) for value in fitted.values())
    chosen = problem.test_item
    logit = (slope[chosen] * (ability[problem.test_model] - difficulty[chosen])).sum(axis=1)
    report = {"n_steps": settings["epochs"], "data_cpu_seconds": clock.cpu["data"]}
    report |= extrapolated(settings, clock)
    if not np.isfinite(logit).all():
        report["status"] = "not a number"
    return Outcome(sigmoid(logit), {}, report)


def _dataset(problem: PeerProblem) -> Any:
    """py-irt's own data structure; its validation of lists of millions is left out."""
    from py_irt.dataset import Dataset

    n_models, n_items = problem.shape
    models = {str(i): i for i in range(n_models)}
    items = {str(j): j for j in range(n_items)}
    return Dataset.model_construct(
        item_ids=set(items),
        subject_ids=set(models),
        item_id_to_ix=items,
        ix_to_item_id={j: name for name, j in items.items()},
        subject_id_to_ix=models,
        ix_to_subject_id={i: name for name, i in models.items()},
        observation_subjects=problem.model_index.tolist(),
        observation_items=problem.item_index.tolist(),
        observations=problem.response.astype(float).tolist(),
        training_example=[True] * len(problem.response),
        anchor_items=None,
    )


if __name__ == "__main__":
    main(run, "py-irt")
