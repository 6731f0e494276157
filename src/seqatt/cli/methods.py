"""``seqatt methods``: every selection method, one line each."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from seqatt.cli.arguments import make_console


def list_methods(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the methods and their options as JSON.")
    ] = False,
) -> None:
    """List every selection method with one line about it."""
    from seqatt.algorithms.registry import all_methods

    if as_json:
        rows = [
            {
                "name": name,
                "summary": method.summary,
                "options": [field.name for field in dataclasses.fields(method.options)],
            }
            for name, method in all_methods().items()
        ]
        print(json.dumps(rows))
        return
    from rich.table import Table

    table = Table()
    table.add_column("method", no_wrap=True)
    table.add_column("how it selects")
    for name, method in all_methods().items():
        table.add_row(name, method.summary)
    make_console().print(table)
    print("seqatt select data.csv --target label -k 20 --method NAME")
