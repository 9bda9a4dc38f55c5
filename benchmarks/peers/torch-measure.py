"""torch-measure: 2PL and 3PL by stochastic variational inference, factor model by MLE or JML."""

from typing import Any

from benchmarks.peers.harness import Clock, Outcome, PeerProblem, extrapolated, main


def run(problem: PeerProblem, settings: dict[str, Any], clock: Clock) -> Outcome:
    """`model` (`2pl`, `3pl`, `factor` with `dims`), `method`, `epochs`, `of_epochs`, `lr`."""
    with clock("import"):
        import torch
        from torch_measure.fitting import jml_fit, mle_fit
        from torch_measure.fitting.svi import svi_fit
        from torch_measure.models import LogisticFM, ThreePL, TwoPL
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if settings["model"] == "factor":
        model = LogisticFM(*problem.shape, n_factors=settings["dims"])
    else:
        model = {"2pl": TwoPL, "3pl": ThreePL}[settings["model"]](*problem.shape)
    estimate = {"svi": svi_fit, "mle": mle_fit, "jml": jml_fit}[settings["method"]]
    with clock("fit"):
        history = estimate(
            model,
            torch.from_numpy(problem.model_index).long(),
            torch.from_numpy(problem.item_index).long(),
            torch.from_numpy(problem.response).float(),
            max_epochs=settings["epochs"],
            lr=settings["lr"],
            verbose=False,
        )
    parameters, probability = {}, None
    with torch.no_grad():
        if settings["model"] != "factor":
            parameters = {
                "slope": model.discrimination.numpy(),
                "difficulty": model.difficulty.numpy(),
            }
        if settings["model"] == "3pl":
            parameters["guessing"] = model.guessing.numpy()
        if len(problem.test_model):
            query = {
                "subject_idx": torch.from_numpy(problem.test_model).long(),
                "item_idx": torch.from_numpy(problem.test_item).long(),
            }
            probability = model.predict(query).numpy()
    report = {"n_steps": len(history["losses"]), **extrapolated(settings, clock)}
    return Outcome(probability, parameters, report)


if __name__ == "__main__":
    main(run, "torch-measure")
