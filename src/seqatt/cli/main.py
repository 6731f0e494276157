"""The command line: the commands and how the program ends."""

from __future__ import annotations

import signal
import sys
import warnings
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
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
