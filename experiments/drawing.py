"""Charts as small SVG files. matplotlib comes with the extra ``bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper import Figure
from experiments.rendering import title

Series = tuple[str, str, Sequence[Figure | None]]  # name, colour, a figure a label

OURS, PLAIN, THIRD, PAPER, REST = "#1f6fb4", "#e08214", "#2a9d4e", "#222222", "#999999"
IN_A_ROW = 4  # names in a row of a legend
COLOURS = (OURS, PLAIN, THIRD, REST)
OTHERS = (PLAIN, "#b2182b", "#ef8a8a", "#5e3c99", "#b2abd2", THIRD)


def panels(count: int, *, columns: int = 4, size: tuple[float, float] = (2.6, 2.2)) -> tuple[Any, list[Any]]:
    """A figure and so many axes; those left over are hidden."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "seqatt", "svg.fonttype": "none"}  # text as text: small files
    matplotlib.rcParams |= {"font.size": 8, "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    from matplotlib import pyplot as plt

    columns = min(columns, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(size[0] * columns, size[1] * rows), layout="constrained", squeeze=False
    )
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, axes[:count]


def save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def dots(axes: Any, series: Sequence[Series], labels: Sequence[str], *, side_by_side: bool = True) -> None:
    """Means and deviations, the labels from top to bottom."""
    for number, (name, colour, figures) in enumerate(series):
        known = [(row, figure) for row, figure in enumerate(figures) if figure is not None]
        if known:
            shift = (number - (len(series) - 1) / 2) * 0.7 / len(series) if side_by_side else 0.0
            axes.errorbar(
                [figure[0] for _, figure in known],
                [row + shift for row, _ in known],
                xerr=[figure[1] for _, figure in known],
                fmt="D" if name == "paper" else "o",
                color=colour,
                markersize=4,
                capsize=2,
                label=name,
            )
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    for edge in range(1, len(labels)):
        axes.axhline(edge - 0.5, color="#dddddd", linewidth=0.5)
    axes.grid(axis="x", alpha=0.3)


def legend(figure: Any, panels: Sequence[Any]) -> None:
    """One for all panels, above them, where it hides nothing."""
    named: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    columns = min(len(named), IN_A_ROW)
    figure.legend(named.values(), named, loc="outside upper center", ncols=columns, fontsize=7)


def seconds_axis(axes: Any) -> None:
    """Logarithmic, with plain numbers; to be called when everything is drawn."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def summary(values: Sequence[float]) -> Figure | None:
    """Mean and deviation, None where nothing was run."""
    return (float(np.mean(values)), float(np.std(values))) if values else None


def name_panel(axes: Any, data: str) -> None:
    axes.set_title(title(data), fontsize=8)
    axes.grid(alpha=0.3)


def picture(axes: Any, shape: tuple[int, int], marked: Sequence[tuple[Sequence[int], str]]) -> None:
    """An image's frame, with pixels marked in a colour."""
    for pixels, colour in marked:
        rows, columns = np.unravel_index(np.asarray(pixels, dtype=np.int64), shape)
        axes.scatter(columns, rows, c=colour, marker="s", s=7, linewidths=0)
    height, width = shape
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
