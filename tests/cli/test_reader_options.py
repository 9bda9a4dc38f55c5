"""Options of reading responses: those of the reader, and handed on by every command."""

import dataclasses
import inspect

from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.io import read_responses
from irtjax.io.options import Options


def test_they_are_the_arguments_of_read_responses_with_their_defaults():
    expected = {
        name: parameter.default
        for name, parameter in inspect.signature(read_responses).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert AS_FOUND.arguments() == expected
    assert AS_FOUND.arguments() == dataclasses.asdict(Options())


def test_a_command_has_them_in_place_of_its_reader_and_gets_them_as_one():
    seen = []

    @with_reader_options
    def command(path: str, reader: ReaderOptions = AS_FOUND, quiet: bool = False) -> None:
        """What it does."""
        seen.append((path, reader, quiet))

    names = [field.name for field in dataclasses.fields(ReaderOptions)]
    assert list(inspect.signature(command).parameters) == ["path", *names, "quiet"]
    assert command.__doc__ == "What it does."
    given = AS_FOUND.arguments() | {"format": "long", "runs": "all"}
    command(path="r.csv", quiet=True, **given)
    assert seen == [("r.csv", ReaderOptions(format="long", runs="all"), True)]
