"""Item response theory for language-model evaluation results, on JAX.

>>> import irtjax as ij
>>> data = ij.simulate(ij.ModelSpec("2pl"), n_models=20, n_items=50).data
>>> ij.fit(data).abilities().shape[0]
20
"""

import importlib
import importlib.metadata
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irtjax.audit.compare import Comparison, compare_models
    from irtjax.audit.filtering import filter_items, validate_filters
    from irtjax.audit.flags import flag_items
    from irtjax.audit.integrity.check import DataAudit, audit_data
    from irtjax.audit.wrong_key import wrong_keys
    from irtjax.data.cells import Cells
    from irtjax.data.responses import ResponseMatrix
    from irtjax.data.simulate import simulate
    from irtjax.data.simulate_answers import simulate_answers
    from irtjax.data.splits import holdout
    from irtjax.data.tables import lsat6, lsat7
    from irtjax.errors import InputError, IrtjaxWarning
    from irtjax.evaluate.crossval import CrossValidation, cross_validate
    from irtjax.evaluate.heldout import evaluate_heldout
    from irtjax.fit.alignment import align, rotate
    from irtjax.fit.api import fit
    from irtjax.fit.bootstrap import Bootstrap, parametric_bootstrap
    from irtjax.fit.checkpoints import Checkpoints
    from irtjax.fit.linking import Link, link
    from irtjax.fit.result import FitResult
    from irtjax.fit.updating import Update, update
    from irtjax.io import read_answers, read_responses, write_responses
    from irtjax.model.priors import LogNormal, Normal, Priors
    from irtjax.model.spec import ModelSpec
    from irtjax.nets.settings import Network
    from irtjax.report.audit_page import Audit, audit
    from irtjax.report.plot import plot
    from irtjax.score.anchors import anchor_points
    from irtjax.score.design import score_items
    from irtjax.score.full_score import predict_score
    from irtjax.score.models import score_models
    from irtjax.score.unseen import items_from_features, models_from_features, predict_unseen
    from irtjax.select.adaptive import AdaptiveSession, adaptive_test
    from irtjax.select.adaptive_runs import AdaptiveRuns, adapt
    from irtjax.select.api import select_items
    from irtjax.select.selection import Selection

__version__ = importlib.metadata.version("irtjax")

__all__ = [
    "AdaptiveRuns",
    "AdaptiveSession",
    "Audit",
    "Bootstrap",
    "Cells",
    "Checkpoints",
    "Comparison",
    "CrossValidation",
    "DataAudit",
    "FitResult",
    "InputError",
    "IrtjaxWarning",
    "Link",
    "LogNormal",
    "ModelSpec",
    "Network",
    "Normal",
    "Priors",
    "ResponseMatrix",
    "Selection",
    "Update",
    "adapt",
    "adaptive_test",
    "align",
    "anchor_points",
    "compare_models",
    "audit_data",
    "audit",
    "cross_validate",
    "evaluate_heldout",
    "filter_items",
    "fit",
    "flag_items",
    "holdout",
    "items_from_features",
    "link",
    "lsat6",
    "lsat7",
    "models_from_features",
    "parametric_bootstrap",
    "predict_unseen",
    "predict_score",
    "read_answers",
    "plot",
    "read_responses",
    "rotate",
    "score_items",
    "score_models",
    "select_items",
    "simulate",
    "simulate_answers",
    "update",
    "validate_filters",
    "write_responses",
    "wrong_keys",
]

# Names are imported when first used: JAX and pandas take a second, `irtjax --help` needs neither.
_HOMES = {
    "AdaptiveRuns": "irtjax.select.adaptive_runs",
    "AdaptiveSession": "irtjax.select.adaptive",
    "Audit": "irtjax.report.audit_page",
    "Bootstrap": "irtjax.fit.bootstrap",
    "Cells": "irtjax.data.cells",
    "Checkpoints": "irtjax.fit.checkpoints",
    "Comparison": "irtjax.audit.compare",
    "CrossValidation": "irtjax.evaluate.crossval",
    "DataAudit": "irtjax.audit.integrity.check",
    "FitResult": "irtjax.fit.result",
    "InputError": "irtjax.errors",
    "IrtjaxWarning": "irtjax.errors",
    "Link": "irtjax.fit.linking",
    "LogNormal": "irtjax.model.priors",
    "ModelSpec": "irtjax.model.spec",
    "Network": "irtjax.nets.settings",
    "Normal": "irtjax.model.priors",
    "Priors": "irtjax.model.priors",
    "ResponseMatrix": "irtjax.data.responses",
    "Selection": "irtjax.select.selection",
    "Update": "irtjax.fit.updating",
    "adapt": "irtjax.select.adaptive_runs",
    "adaptive_test": "irtjax.select.adaptive",
    "align": "irtjax.fit.alignment",
    "anchor_points": "irtjax.score.anchors",
    "compare_models": "irtjax.audit.compare",
    "audit_data": "irtjax.audit.integrity.check",
    "audit": "irtjax.report.audit_page",
    "cross_validate": "irtjax.evaluate.crossval",
    "evaluate_heldout": "irtjax.evaluate.heldout",
    "filter_items": "irtjax.audit.filtering",
    "fit": "irtjax.fit.api",
    "flag_items": "irtjax.audit.flags",
    "holdout": "irtjax.data.splits",
    "items_from_features": "irtjax.score.unseen",
    "link": "irtjax.fit.linking",
    "lsat6": "irtjax.data.tables",
    "lsat7": "irtjax.data.tables",
    "models_from_features": "irtjax.score.unseen",
    "parametric_bootstrap": "irtjax.fit.bootstrap",
    "predict_unseen": "irtjax.score.unseen",
    "predict_score": "irtjax.score.full_score",
    "read_answers": "irtjax.io",
    "plot": "irtjax.report.plot",
    "read_responses": "irtjax.io",
    "rotate": "irtjax.fit.alignment",
    "score_items": "irtjax.score.design",
    "score_models": "irtjax.score.models",
    "select_items": "irtjax.select.api",
    "simulate": "irtjax.data.simulate",
    "simulate_answers": "irtjax.data.simulate_answers",
    "update": "irtjax.fit.updating",
    "validate_filters": "irtjax.audit.filtering",
    "write_responses": "irtjax.io",
    "wrong_keys": "irtjax.audit.wrong_key",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `irtjax.fit` the function: the import system would bind the folder `fit` to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

# The nets live above `fit`, which knows them by these names only. Imported here, where the folder
# `fit` no longer takes the function's place.
_registry = importlib.import_module("irtjax.fit.registry")
_registry.register_estimator("psn", "irtjax.nets.route:PsnRoute")
_registry.register_estimator("deep-irt", "irtjax.nets.route:DeepIrtRoute")
