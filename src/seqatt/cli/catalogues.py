"""``seqatt methods`` and ``seqatt data``: what there is to choose from, and where the files of data sets are."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated, Any

import typer

from seqatt.cli.arguments import make_console

data_app = typer.Typer(
    help="Named data sets: list them, download them, find their files.", no_args_is_help=True
)
LOCATIONS = {  # how the list shows where a data set is
    "scikit-learn": "with scikit-learn",
    "folder": "in SEQATT_DATA_DIR",
    "cache": "in the cache",
    "download": "needs download",
    "absent": "bring your own file",
}


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


@data_app.command("list")
def list_datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Print the catalogue as JSON.")] = False,
) -> None:
    """List every data set with its size and where its file is."""
    rows = [_row(name) for name in _names()]
    if as_json:
        print(json.dumps(rows))
        return
    from rich.table import Table

    table = Table()
    for column in ("name", "rows", "features", "classes", "where"):
        table.add_column(column, justify="left" if column in ("name", "where") else "right")
    for row in rows:
        count = " + ".join(f"{n:,}" for n in row["rows"])
        classes = str(row["classes"] or "numeric")
        table.add_row(row["name"], count, f"{row['features']:,}", classes, LOCATIONS[row["where"]])
    make_console().print(table)
    print("rows: all, or training + test if the source fixes a split")


@data_app.command(
    epilog="Examples:\n\n  seqatt data fetch mnist isolet\n\n  seqatt data fetch --all\n\n"
    "A download that was interrupted continues where it stopped."
)
def fetch(
    requested: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Data sets to download.")
    ] = None,
    all_names: Annotated[bool, typer.Option("--all", help="All that can be downloaded.")] = False,
) -> None:
    """Download data sets from their original sources into the cache, unless they are there already."""
    from seqatt.datasets import DataError
    from seqatt.datasets import fetch as download
    from seqatt.datasets.catalogue import find_entry

    if bool(requested) == all_names:
        raise typer.BadParameter("name some data sets, or give --all and no names", param_hint="NAME...")
    for name in requested or []:
        find_entry(name)
    failed = False
    for name in requested or [row["name"] for row in map(_row, _names()) if row["where"] != "absent"]:
        try:
            path = download(name)
        except DataError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
        else:
            print(f"{name}: {path or 'comes with scikit-learn'}")
    raise typer.Exit(1 if failed else 0)


@data_app.command()
def path(
    name: Annotated[
        str | None, typer.Argument(help="A data set; without one, the folders are printed.")
    ] = None,
) -> None:
    """Print the file of a data set, or the folders that are searched, in order."""
    from seqatt.datasets import DataError
    from seqatt.datasets.catalogue import find_entry
    from seqatt.datasets.locations import cache_folder, data_folder, locate

    if name is None:
        for folder in (data_folder(), cache_folder()):
            if folder is not None:
                print(folder)
        return
    location = locate(find_entry(name))
    if location.path is None:
        reasons = {
            "scikit-learn": "comes with scikit-learn and has no file of its own",
            "download": f"is not on this machine yet; seqatt data fetch {name} downloads it",
            "absent": "is not on this machine and has no download; put its file into SEQATT_DATA_DIR",
        }
        raise DataError(f"{name}: {reasons[location.where]}")
    print(location.path)


def _names() -> list[str]:
    from seqatt.datasets import names

    return names()


def _row(name: str) -> dict[str, Any]:
    """One row of the list: what the catalogue has about a data set, and where its file is."""
    from seqatt.datasets import info
    from seqatt.datasets.locations import locate

    entry, location = info(name), locate(info(name))
    return {
        "name": name,
        "title": entry.title,
        "rows": list(entry.rows),
        "features": entry.features,
        "classes": entry.classes,
        "splits": list(entry.splits),
        "licence": entry.licence,
        "citation": entry.citation,
        "where": location.where,
        "path": None if location.path is None else str(location.path),
    }
