"""Selections and comparisons as a person sees them in a terminal."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from seqatt.comparison import formatting
from seqatt.comparison.comparison import Comparison
from seqatt.selection import Selection


def show(selection: Selection, target: str) -> None:
    title = f"{len(selection.features)} of {len(selection.names)} features for {target}"
    table = Table()
    table.add_column("rank", justify="right")
    table.add_column("feature", overflow="fold")
    table.add_column("score", justify="right")
    for rank, (name, score) in enumerate(zip(selection.features, selection.scores, strict=True), 1):
        table.add_row(str(rank), escape(name), f"{score:.3f}")
    console = _console()
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(table)
    settings, device = selection.settings, selection.environment["device"]
    console.print(f"{settings['task']}, {selection.seconds:.1f} s on {device}\n")


def show_scores(scores: dict[str, dict[str, Any]], where: str) -> None:
    table = Table()
    table.add_column("features")
    table.add_column("how many", justify="right")
    metrics = [name for name in scores["chosen"] if name != "features"]
    for metric in metrics:
        table.add_column({"auc": "AUC", "r2": "R²", "rmse": "RMSE"}.get(metric, metric.replace("_", " ")))
    words = {"chosen": "chosen by seqatt", "random": "random", "all": "all"}
    for name, row in scores.items():
        cells = [f"{np.mean(row[m]):.3f} ± {np.std(row[m]):.3f}" for m in metrics]
        table.add_row(words[name], str(row["features"]), *cells, style="bold" if name == "chosen" else "")
    console = _console()
    console.print(f"[bold]A network trained on them, {where}[/bold]")
    console.print(table)
    console.print("mean ± standard deviation over 5 seeds\n")


def show_comparison(comparison: Comparison, target: str) -> None:
    """A section for each k, its best in bold; what the columns mean; what to conclude."""
    table = Table()
    for heading in formatting.headings(comparison):
        left = heading in formatting.headings(comparison)[1:3]
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    for section in formatting.sections(comparison):
        for place, line in enumerate(section):
            first, *others = line.texts
            table.add_row(
                "" if place else first,
                *map(escape, others),
                style="bold" if line.best else "",
                end_section=line is section[-1],
            )
    console = _console()
    console.print(f"[bold]{escape(f'Choosing features for {target}: {formatting.title(comparison)}')}[/bold]")
    console.print(table)
    for note in formatting.notes(comparison):
        console.print(f"[dim]{escape(note)}[/dim]")
    console.print(f"\n{escape(comparison.conclusion())}\n")


def show_pixels(chosen: list[int]) -> None:
    """The order of choice on the 8 x 8 picture."""
    order = {pixel: place for place, pixel in enumerate(chosen, 1)}
    print("Where the chosen pixels are (numbers: order of choice):")
    for row in range(8):
        cells = [f"{order[8 * row + c]:>3}" if 8 * row + c in order else "  ·" for c in range(8)]
        print("  " + "".join(cells))
    print()


def _console() -> Console:
    width = None if sys.stdout.isatty() else 100
    return Console(width=width, highlight=False)
