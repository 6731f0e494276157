"""Commands with many options: ``--help`` shows the common ones, ``--help-all`` every one."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_ALL = "seqatt.help_all"


def _show_all(context: typer.Context, requested: bool) -> None:
    if requested:
        context.meta[_ALL] = True
        context.get_help()  # prints it
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options and exit.")
]


def with_short_help(*common: str) -> type[TyperCommand]:
    """A class of commands whose ``--help`` shows the ``common`` parameters alone, by name."""

    class ShortHelpCommand(TyperCommand):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            # Paragraphs are wrapped to the width of the terminal, not to that of the docstring.
            self.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(self.help or ""))

        def format_help(self, ctx: Any, formatter: Any) -> None:
            for parameter in self.params:
                is_shown = ctx.meta.get(_ALL) or parameter.name in (*common, "help_all")
                parameter.hidden = not is_shown  # type: ignore[attr-defined]
            super().format_help(ctx, formatter)

    return ShortHelpCommand
