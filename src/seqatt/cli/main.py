"""The command line: the commands and how the program ends."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Annotated

import typer

from seqatt.cli import compare, select
from seqatt.cli.data import data_app
from seqatt.cli.demo import demo
from seqatt.cli.methods import list_methods
from seqatt.version import __version__

app = typer.Typer(
    help="Select the features of a table that predict a target best, with neural networks.\n\n"
    "Start with [bold]seqatt demo[/bold], then [bold]seqatt select data.csv --target label -k 20[/bold].",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.command("methods")(list_methods)
app.command()(demo)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command(epilog=select.EXAMPLES)(select.select)


def _show_version(requested: bool) -> None:
    if requested:
        print(f"seqatt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


class _Interrupted(BaseException):
    """Ctrl-C. Not KeyboardInterrupt, which some libraries catch and turn into errors of their own."""


def _interrupt(*_: object) -> None:
    raise _Interrupted


def main() -> None:
    """Run a command. An error is one line on stderr instead of a traceback; exit codes are in the commands' help."""
    signal.signal(signal.SIGINT, _interrupt)
    warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
    try:
        app(standalone_mode=True)
    except _Interrupted:
        _end(130, "interrupted")
    except BrokenPipeError:
        _end(1)
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        _end(1, f"error: {' '.join(str(error).split()) or type(error).__name__}")


def _end(code: int, message: str = "") -> None:
    """End the process at once with this exit code.

    Arrow aborts a process that ends while its threads are still starting (apache/arrow#34314), as they are if the first
    rows of a file have an error.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk, or a pipe that nobody reads any more
            if message and stream is sys.stderr:
                print(message, file=stream)
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
