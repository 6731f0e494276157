"""The commands of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from seqatt.cli import compare, report, select
from seqatt.cli.catalogues import data_app, list_methods
from seqatt.cli.demo import demo
from seqatt.cli.short_help import with_short_help
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
app.command()(demo)
app.command(epilog=select.EXAMPLES, cls=with_short_help(*select.COMMON))(select.select)
app.command(epilog=compare.EXAMPLES, cls=with_short_help(*compare.COMMON))(compare.compare)
app.command(epilog=report.EXAMPLES)(report.report)
app.command("methods")(list_methods)


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
