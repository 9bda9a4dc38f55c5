"""The options of reading responses: one list, for every command that reads some."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from irtjax.cli import options

__all__ = ["AS_FOUND", "ReaderOptions", "with_reader_options"]


@dataclasses.dataclass(frozen=True)
class ReaderOptions:
    """The arguments of `irtjax.read_responses` beside the paths; each is an option of a command."""

    format: options.Format = None
    model_column: options.ModelColumn = None
    item_column: options.ItemColumn = None
    response_column: options.ResponseColumn = None
    duplicates: options.Duplicates = "error"
    fractional: options.Fractional = "error"
    items_in_rows: options.ItemsInRows = False
    no_header: options.NoHeader = False
    id_column: options.IdColumn = None
    metric: options.Metric = None
    filter: options.Filter = None
    runs: options.Runs = "newest"

    def arguments(self) -> dict[str, Any]:
        """As arguments of `irtjax.read_responses`."""
        return dataclasses.asdict(self)


AS_FOUND = ReaderOptions()


def with_reader_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ReaderOptions` in place of its parameter `reader`.

    Typer makes options of a function's parameters; written out in each command these would be the
    same twelve lines twice, and twice as many to hand them on.
    """
    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += _declared() if parameter.name == "reader" else [parameter]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        names = [field.name for field in dataclasses.fields(ReaderOptions)]
        reader = ReaderOptions(**{name: values.pop(name) for name in names})
        command(**values, reader=reader)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _declared() -> list[inspect.Parameter]:
    """The fields as parameters of a command."""
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=field.default,
            annotation=field.type,
        )
        for field in dataclasses.fields(ReaderOptions)
    ]
