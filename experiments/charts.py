"""Charts as small SVG files. matplotlib comes with the extra ``bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.markdown import data_title
from experiments.paper import MeanStd

Series = tuple[str, str, Sequence[MeanStd | None]]  # name, colour, one figure per label

SEQATT, ORANGE, GREEN, PAPER, GREY = "#1f6fb4", "#e08214", "#2a9d4e", "#222222", "#999999"
MACHINE_COLOURS = (SEQATT, ORANGE, GREEN, GREY)
METHOD_COLOURS = (SEQATT, ORANGE, "#b2182b", "#ef8a8a", "#5e3c99", "#b2abd2", GREEN)
LEGEND_COLUMNS = 4  # names per row of a legend, at most


def make_panels(
    count: int, *, columns: int = 4, size: tuple[float, float] = (2.6, 2.2)
) -> tuple[Any, list[Any]]:
    """A figure and ``count`` axes in a grid, each of ``size`` inches."""
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
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def dot_plot(
    axes: Any, series: Sequence[Series], labels: Sequence[str], *, side_by_side: bool = True
) -> None:
    """Means with error bars of one standard deviation, one row per label from top to bottom.

    ``side_by_side`` shifts the series of a row apart, so that they do not cover each other.
    """
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


def add_legend(figure: Any, panels: Sequence[Any]) -> None:
    """One legend for all panels, above them, where it covers nothing."""
    handle_of: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        handle_of |= dict(zip(labels, handles, strict=True))
    columns = min(len(handle_of), LEGEND_COLUMNS)
    figure.legend(handle_of.values(), handle_of, loc="outside upper center", ncols=columns, fontsize=7)


def log_seconds_axis(axes: Any) -> None:
    """Make the x axis logarithmic with plain numbers. Call it after everything is drawn: it reads the limits."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def mean_and_std(values: Sequence[float]) -> MeanStd | None:
    """Mean and standard deviation; None if there are no values."""
    return (float(np.mean(values)), float(np.std(values))) if values else None


def set_title(axes: Any, data: str) -> None:
    axes.set_title(data_title(data), fontsize=8)
    axes.grid(alpha=0.3)


def draw_pixels(axes: Any, shape: tuple[int, int], groups: Sequence[tuple[Sequence[int], str]]) -> None:
    """The frame of an image of this shape, with groups of pixels, each in its colour."""
    for pixels, colour in groups:
        rows, columns = np.unravel_index(np.asarray(pixels, dtype=np.int64), shape)
        axes.scatter(columns, rows, c=colour, marker="s", s=7, linewidths=0)
    height, width = shape
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
