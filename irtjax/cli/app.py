"""`main`: the commands, and how every one of them ends."""

import importlib.metadata
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from irtjax.cli.adapt import adapt
from irtjax.cli.audit import audit
from irtjax.cli.check import check
from irtjax.cli.compare import compare
from irtjax.cli.console import print_error, shown_warnings
from irtjax.cli.crossval import CrossvalCommand, crossval
from irtjax.cli.demo import demo
from irtjax.cli.filter import filter_command
from irtjax.cli.fit import fit
from irtjax.cli.flags import flags
from irtjax.cli.link import link
from irtjax.cli.plot import plot
from irtjax.cli.predict import predict
from irtjax.cli.quality import quality
from irtjax.cli.score import score
from irtjax.cli.select import select
from irtjax.cli.simulate import simulate
from irtjax.cli.update import update
from irtjax.errors import InputError

__all__ = ["main"]

_BAD_INPUT = 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def _help(command: Callable[..., None]) -> str:
    """The docstring with one line a paragraph: typer would break lines where the code does."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.__doc__ or ""))


app = typer.Typer(
    name="irtjax",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    fit,
    check,
    audit,
    flags,
    quality,
    filter_command,
    compare,
    plot,
    select,
    score,
    adapt,
    predict,
    link,
    update,
    simulate,
    demo,
):
    app.command(name=command.__name__.removesuffix("_command"), help=_help(command))(command)
app.command(name="crossval", cls=CrossvalCommand, help=_help(crossval))(crossval)


@app.callback(invoke_without_command=True)
def irtjax(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Item response theory for LLM evaluation results: abilities of models, parameters of items.

    Example: irtjax fit responses.csv --holdout 0.1 --out run
    """
    if version:
        print(f"irtjax {importlib.metadata.version('irtjax')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what stands after `irtjax`; that of the process without.

    Returns:
        The exit code: 0; 2 for bad input, with one line on stderr; 3 for warnings under
        `--strict`; 130 when interrupted.
    """
    # XLA's own log: when it loads a compiled program from the cache it reports its tuning hints
    # as missing machine features, four kilobytes an entry. Errors reach us as exceptions.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a model's name
    with shown_warnings():
        try:
            code = _run(arguments)
        except InputError as error:
            print_error(str(error))
            return _BAD_INPUT
    if code == _INTERRUPTED:
        sys.stderr.write("irtjax: interrupted\n")
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        # Without standalone mode typer hands back exit codes and raises the user's errors.
        code = app(
            None if arguments is None else list(arguments),
            prog_name="irtjax",
            standalone_mode=False,
        )
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except InputError:
        raise
    except Exception as error:
        raise _as_input_error(error) from None
    return code if isinstance(code, int) else 0


def _as_input_error(error: Exception) -> Exception:
    """A user's error as `InputError`: of the command line's usage, or of the installed jaxlib."""
    from irtjax.compiler_check import MiscompilationError

    if isinstance(error, MiscompilationError):
        return InputError(str(error))
    if hasattr(error, "format_message"):  # typer brings its own copy of click, or uses click's
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "irtjax"
        return InputError(f"{error.format_message().rstrip('.')}; see {path} --help")
    return error
