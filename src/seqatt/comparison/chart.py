"""The chart of a comparison: the metric against k, one line per method. matplotlib is imported on use."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np

from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ALL
from seqatt.display_text import LOWER_IS_BETTER, metric_name
from seqatt.report.page.svg import spread_out
from seqatt.report.plots import import_matplotlib, new_axes, tidy

# The palette of Okabe and Ito, distinct for every kind of colour vision; references are grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX*"
GREY = "#888888"
HIGHLIGHTED = "sequential_attention"  # has the first colour and the thickest line

LineEnd = tuple[float, float, str, str]  # k, value, label, colour


def draw(results: ResultsTable, ax: Any = None) -> Any:
    """Draw one line per method over k, or one row per method if there is only one k; return the axes."""
    ax = new_axes(_size(results)) if ax is None else ax
    if len(results.k) == 1:
        _draw_single_k(results, ax)
    else:
        _draw_lines(results, ax)
    return tidy(ax)


class ComparisonPlots:
    """The plots of a comparison. Every one takes ``ax`` and returns the axes."""

    def __init__(self, results: ResultsTable) -> None:
        self._results = results

    def __call__(self, ax: Any = None) -> Any:
        """Draw ``curve``."""
        return draw(self._results, ax)

    def curve(self, ax: Any = None) -> Any:
        """The metric against k, one line per method, with standard deviations; for one k one row per method."""
        return draw(self._results, ax)

    def stability(self, k: int | None = None, ax: Any = None) -> Any:
        """A bar per method: how alike the features of several seeds are, by default at the largest k."""
        k = self._results.k[-1] if k is None else k
        rows = [row for row in self._results.table() if row["k"] == k and row["stability"] is not None]
        if not rows:
            raise ValueError(f"plot.stability: no method has runs of several seeds at k = {k}")
        rows.sort(key=lambda row: float(row["stability"]))
        ax = new_axes(_size(self._results)) if ax is None else ax
        ax.barh([row["method"] for row in rows], [row["stability"] for row in rows], color=COLOURS[0])
        ax.set_xlabel(f"mean Jaccard index of two seeds, k = {k}")
        return tidy(ax)


def to_svg(results: ResultsTable) -> str:
    """The chart as SVG text. It does not depend on the backend, and equal results give equal text."""
    matplotlib = import_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_size(results), layout="constrained")
    draw(results, figure.subplots())
    svg = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "seqatt", "svg.fonttype": "none"}):
        figure.savefig(svg, format="svg", metadata={"Date": None}, facecolor="white")
    return svg.getvalue()


def _size(results: ResultsTable) -> tuple[float, float]:
    """Width and height in inches."""
    return (6.4, 1.2 + 0.35 * len(results.settings["methods"])) if len(results.k) == 1 else (7.2, 4.2)


def _styles(results: ResultsTable) -> dict[str, dict[str, Any]]:
    """Colour, marker and line style per method; dashed and dotted lines once the colours are used up."""
    methods = [m for m in results.settings["methods"] if m not in ("random", ALL)]
    methods.sort(key=lambda method: method != HIGHLIGHTED)
    styles: dict[str, dict[str, Any]] = {}
    for i, method in enumerate(methods):
        styles[method] = {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": ("-", "--", ":")[i // len(COLOURS) % 3],
        }
    return styles | {"random": {"color": GREY, "marker": ".", "linestyle": ":"}}


def _draw_lines(results: ResultsTable, ax: Any) -> None:
    rows = [row for row in results.table() if row["mean"] is not None]
    log = results.k[-1] > 4 * results.k[0]
    ax.set_xscale("log" if log else "linear")
    to_axis = np.log if log else np.asarray
    from_axis = np.exp if log else np.asarray
    width = float(np.ptp(to_axis(np.array(results.k, dtype=float))))
    styles = _styles(results)
    ends: list[LineEnd] = []
    for i, (method, style) in enumerate(styles.items()):
        method_rows = [row for row in rows if row["method"] == method]
        if not method_rows:
            continue
        shift = (i - (len(styles) - 1) / 2) * 0.006 * width  # so that error bars do not overlap
        k = from_axis(to_axis(np.array([row["k"] for row in method_rows], dtype=float)) + shift)
        mean = [row["mean"] for row in method_rows]
        sd = [row["sd"] or 0.0 for row in method_rows]
        linewidth = 2.4 if method == HIGHLIGHTED else 1.4
        container = ax.errorbar(k, mean, sd, markersize=5, linewidth=linewidth, elinewidth=0.9, **style)
        container[2][0].set_alpha(0.45)  # the error bars
        ends.append((k[-1], mean[-1], method, style["color"]))
    right = float(from_axis(to_axis(np.float64(results.k[-1])) + 0.05 * width))
    ax.set_xlim(right=right)
    for row in rows:
        if row["method"] == ALL:
            ax.axhline(row["mean"], color=GREY, linewidth=1, linestyle="--", zorder=1)
            ends.append((right, row["mean"], f"all {row['k']}", GREY))
    ax.set_xticks(results.k, [str(k) for k in results.k])
    ax.minorticks_off()
    ax.set_xlabel("features selected (k)")
    ax.set_ylabel(_axis_label(results.metric))
    ax.grid(alpha=0.25)
    _label_ends(ax, ends)


def _label_ends(ax: Any, ends: list[LineEnd]) -> None:
    """Write the labels at the right edge, next to the ends of their lines, without overlap."""
    low, high = ax.get_ylim()
    ends = sorted(ends, key=lambda end: end[1])
    wanted = [(value - low) / (high - low) for _, value, _, _ in ends]
    spacing = 11 / (ax.get_window_extent().height * 72 / ax.figure.dpi)  # 11 points, in axes fractions
    for (k, value, text, colour), height in zip(ends, spread_out(wanted, spacing), strict=True):
        ax.annotate(
            text,
            xy=(k, value),
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=colour,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 4},
        )


def _draw_single_k(results: ResultsTable, ax: Any) -> None:
    rows = [row for row in results.table() if row["mean"] is not None]
    rows.sort(key=lambda row: row["mean"], reverse=results.metric in LOWER_IS_BETTER)
    styles = _styles(results) | {ALL: {"color": GREY, "marker": "|"}}
    for i, row in enumerate(rows):
        style = {key: value for key, value in styles[row["method"]].items() if key != "linestyle"}
        ax.errorbar(
            row["mean"],
            i,
            xerr=row["sd"],
            markersize=7,
            capsize=3,
            linestyle="none",
            label=row["method"],
            **style,
        )
    labels = [f"all {row['k']}" if row["method"] == ALL else row["method"] for row in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    ax.set_xlabel(f"{_axis_label(results.metric)}, k = {results.k[0]}")
    ax.grid(axis="x", alpha=0.25)


def _axis_label(metric: str) -> str:
    better = " (lower is better)" if metric in LOWER_IS_BETTER else ""
    return f"test {metric_name(metric)}, mean ± sd{better}"
