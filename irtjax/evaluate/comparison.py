"""Fits and baselines compared on the same folds."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from irtjax.errors import IrtjaxWarning
from irtjax.evaluate.fold_fits import FoldFits
from irtjax.evaluate.fold_scores import FoldPrediction, Scores, baseline_scores, score_folds
from irtjax.evaluate.folds import Folds
from irtjax.fit.api import fit
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.fit.used_priors import check_priors, only_used
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["FIT", "Comparison", "OnFold"]

FIT = "fit"

_TWO_PL = "2pl"

OnFold = Callable[[str, int | None, int], None]


@dataclasses.dataclass(frozen=True)
class _Setting:
    """A fit to compare: name, model, and settings of the fit."""

    predictor: str
    spec: ModelSpec
    fit: FitSettings


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The folds, and what all fits that are compared share; `blocked` is of warm starts only."""

    folds: Folds
    blocked: FoldFits | None
    priors: Priors
    devices: Sequence[jax.Device] | None
    on_fold: OnFold | None

    def scores(
        self, specs: Sequence[ModelSpec], settings: FitSettings, benchmarks: np.ndarray | None
    ) -> list[Scores]:
        """Of the fits, of the baselines, and of the plain 2PL, which may be one of the fits.

        Raises:
            InputError: a prior was changed that one of the fits has no use for.
        """
        for spec in specs:
            route, _ = choose_route(self.folds.data, spec, self.priors, settings)
            check_priors(self.priors, route.integrated, spec, settings, route.estimator.name)
        fits = {each: self.score(each) for each in (_Setting(FIT, s, settings) for s in specs)}
        plain = FitSettings(
            estimator=settings.estimator, seed=settings.seed, max_steps=settings.max_steps
        )
        two_pl = _Setting(FIT, ModelSpec(_TWO_PL, 1), plain)
        same = fits.get(two_pl) or self.score(dataclasses.replace(two_pl, predictor=_TWO_PL))
        baselines = baseline_scores(self.folds, benchmarks)
        return [*fits.values(), *baselines, dataclasses.replace(same, predictor=_TWO_PL)]

    def score(self, setting: _Setting) -> Scores:
        """Of one fit over all folds."""
        route, _ = choose_route(self.folds.data, setting.spec, self.priors, setting.fit)
        # The plain 2PL may have no use for priors of the fits.
        priors = only_used(self.priors, route.integrated, setting.spec, setting.fit)
        if self.blocked is not None and isinstance(route.estimator, MarginalItems):
            found = self.blocked.predictions(
                route.estimator,
                setting.spec,
                priors,
                setting.fit.seed,
                setting.fit.max_steps,
            )
        else:
            found = self._cold(setting, priors)
        return score_folds(self.folds, setting.predictor, setting.spec.dims, found, self.on_fold)

    def _cold(self, setting: _Setting, priors: Priors) -> Iterator[FoldPrediction]:
        """Predictions of fits that know nothing of each other."""
        for fold in range(self.folds.n_folds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IrtjaxWarning)  # reported once for all folds
                result = fit(
                    self.folds.fitted(fold),
                    setting.spec,
                    **setting.fit.arguments(),
                    priors=priors,
                    devices=self.devices,
                )
            cells = self.folds.scored(fold)
            probability = result.predict_cells(cells.model_index, cells.item_index)
            yield FoldPrediction(fold, probability, result.status, result.report["n_steps"])
