"""`read_scores`: declared averages of models on benchmarks."""

from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.io.columns import BENCHMARK, BENCHMARK_ALIASES, listed, resolve_roles
from irtjax.io.files import PathLike
from irtjax.io.long import ids_of
from irtjax.io.tables import read_table

__all__ = ["read_scores"]

_SCORE = "score"


def read_scores(path: PathLike, *, model_column: str | None = None) -> pd.DataFrame:
    """Read declared scores from a CSV, Parquet or JSON Lines file.

    Args:
        path: the file; columns besides the model, the benchmark (or one of its usual names) and
            `score` are ignored.
        model_column: the column of the model; found by its usual names without.

    Returns:
        Columns `model_id`, `benchmark` (strings) and `score` (the file's text where it is no
        number), in input order.

    Raises:
        InputError: a missing column, an empty id, a file that cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = file.write_text("model,benchmark,score\\ngpt,gsm8k,91.2\\n")
    >>> read_scores(file)
      model_id benchmark  score
    0      gpt     gsm8k   91.2
    """
    table = read_table(Path(path), frozenset([BENCHMARK, *BENCHMARK_ALIASES]))
    model = resolve_roles(table.names, path, {"model": model_column}, ("model",))["model"]
    named = [name for name in (BENCHMARK, *BENCHMARK_ALIASES) if name in table.names]
    for name, have in ((BENCHMARK, named), (_SCORE, _SCORE in table.names)):
        if not have:
            raise InputError(
                f"{path} has no column {name!r}; declared scores need the columns model_id, "
                f"benchmark and score, and there are {listed(table.names)}"
            )
    columns = {}
    for target, name in (("model_id", model), (BENCHMARK, named[0])):
        ids = ids_of(table, name, target.removesuffix("_id"))
        columns[target] = np.array(ids.texts(), object)[ids.codes]
    score = table.column(_SCORE)
    texts = np.array([*score.texts(), ""], object)[score.codes]
    frame = pd.DataFrame(columns, dtype="str")
    number = pd.to_numeric(pd.Series(texts), errors="coerce")
    # What is no number is told with the file's own words.
    given = number if number.notna().all() else number.astype(object).where(number.notna(), texts)
    return frame.assign(score=given)
