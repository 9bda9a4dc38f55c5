"""Item response theory for language-model evaluation results, on JAX.

>>> import irtjax as ij
>>> data = ij.simulate(ij.ModelSpec("2pl"), n_models=20, n_items=50).data
>>> ij.fit(data).abilities().shape[0]
20
"""

import importlib.metadata

from irtjax.data.responses import Cells, ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.data.splits import holdout
from irtjax.data.tables import lsat6, lsat7
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.checkpoints import Checkpoints
from irtjax.fit.result import FitResult
from irtjax.io import read_responses, write_responses
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__version__ = importlib.metadata.version("irtjax")

__all__ = [
    "Cells",
    "Checkpoints",
    "FitResult",
    "InputError",
    "IrtjaxWarning",
    "ModelSpec",
    "Priors",
    "ResponseMatrix",
    "fit",
    "holdout",
    "lsat6",
    "lsat7",
    "read_responses",
    "simulate",
    "write_responses",
]
