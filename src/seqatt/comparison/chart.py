"""The chart of a standings: the metric against k, a line a method. matplotlib is loaded when drawn."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np

from seqatt.comparison.conclusion import name
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ALL
from seqatt.comparison.statistics import LOWER_IS_BETTER

# Okabe and Ito's colours, told apart with any colour vision; grey is for the references.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX*"
GREY = "#888888"
FIRST = "sequential_attention"

End = tuple[float, float, str, str]  # of a line: k, value, name, colour


def draw(standings: ResultsTable, ax: Any = None) -> Any:
    """Lines over k, or a row a method where there is one k only."""
    if ax is None:
        ax = _new_axes(standings)
    if len(standings.k) == 1:
        _draw_rows(standings, ax)
    else:
        _draw_lines(standings, ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def to_svg(standings: ResultsTable) -> str:
    """The chart as a file's text, whatever backend the caller has chosen; the same for the same figures."""
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_size(standings), layout="constrained")
    draw(standings, figure.subplots())
    text = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "seqatt", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    return text.getvalue()


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("a chart needs matplotlib: pip install 'seqatt[plot]'") from None
    return matplotlib


def _new_axes(standings: ResultsTable) -> Any:
    _matplotlib()
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=_size(standings), layout="constrained")[1]


def _size(standings: ResultsTable) -> tuple[float, float]:
    return (6.4, 1.2 + 0.35 * len(standings.settings["methods"])) if len(standings.k) == 1 else (7.2, 4.2)


def _styles(standings: ResultsTable) -> dict[str, dict[str, Any]]:
    """A colour and a marker a method; when colours come round again, lines are dashed."""
    chosen = [m for m in standings.settings["methods"] if m not in ("random", ALL)]
    chosen.sort(key=lambda method: method != FIRST)
    styles: dict[str, dict[str, Any]] = {}
    for place, method in enumerate(chosen):
        styles[method] = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "linestyle": ("-", "--", ":")[place // len(COLOURS) % 3],
        }
    return styles | {"random": {"color": GREY, "marker": ".", "linestyle": ":"}}


def _draw_lines(standings: ResultsTable, ax: Any) -> None:
    rows = [row for row in standings.table() if row["mean"] is not None]
    log = standings.k[-1] > 4 * standings.k[0]
    ax.set_xscale("log" if log else "linear")
    place = np.log if log else np.asarray
    back = np.exp if log else np.asarray
    wide = float(np.ptp(place(np.array(standings.k, dtype=float))))
    styles = _styles(standings)
    ends: list[End] = []
    for number, (method, style) in enumerate(styles.items()):
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        shift = (number - (len(styles) - 1) / 2) * 0.006 * wide  # deviations side by side, not on top
        k = back(place(np.array([row["k"] for row in own], dtype=float)) + shift)
        mean = [row["mean"] for row in own]
        thick = 2.4 if method == FIRST else 1.4
        drawn = ax.errorbar(
            k, mean, [row["sd"] or 0.0 for row in own], markersize=5, linewidth=thick, elinewidth=0.9, **style
        )
        drawn[2][0].set_alpha(0.45)
        ends.append((k[-1], mean[-1], method, style["color"]))
    right = float(back(place(np.float64(standings.k[-1])) + 0.05 * wide))
    ax.set_xlim(right=right)
    for row in rows:
        if row["method"] == ALL:
            ax.axhline(row["mean"], color=GREY, linewidth=1, linestyle="--", zorder=1)
            ends.append((right, row["mean"], f"all {row['k']}", GREY))
    ax.set_xticks(standings.k, [str(k) for k in standings.k])
    ax.minorticks_off()
    ax.set_xlabel("features chosen (k)")
    ax.set_ylabel(_axis(standings.metric))
    ax.grid(alpha=0.25)
    _label_ends(ax, ends)


def _label_ends(ax: Any, ends: list[End]) -> None:
    """Names at the right edge, beside the ends of their lines and moved apart where they would overlap."""
    low, high = ax.get_ylim()
    ends = sorted(ends, key=lambda end: end[1])
    wanted = np.array([(value - low) / (high - low) for _, value, _, _ in ends])
    room = 11 / (ax.get_window_extent().height * 72 / ax.figure.dpi)
    for (k, value, text, colour), height in zip(ends, _spread_out(wanted, room), strict=True):
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


def _spread_out(wanted: np.ndarray[Any, Any], room: float) -> np.ndarray[Any, Any]:
    """Places at least ``room`` apart, as near to those wanted as their order allows (pool adjacent)."""
    blocks: list[list[float]] = []  # sum of (wanted - offset), count
    for place, value in enumerate(wanted):
        blocks.append([value - place * room, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    levels = [total / count for total, count in blocks for _ in range(int(count))]
    return np.asarray(np.array(levels) + room * np.arange(len(wanted)))


def _draw_rows(standings: ResultsTable, ax: Any) -> None:
    rows = [row for row in standings.table() if row["mean"] is not None]
    rows.sort(key=lambda row: row["mean"], reverse=standings.metric in LOWER_IS_BETTER)
    styles = _styles(standings) | {ALL: {"color": GREY, "marker": "|"}}
    for place, row in enumerate(rows):
        style = {key: value for key, value in styles[row["method"]].items() if key != "linestyle"}
        ax.errorbar(
            row["mean"],
            place,
            xerr=row["sd"],
            markersize=7,
            capsize=3,
            linestyle="none",
            label=row["method"],
            **style,
        )
    texts = [f"all {row['k']}" if row["method"] == ALL else row["method"] for row in rows]
    ax.set_yticks(range(len(rows)), texts)
    ax.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    ax.set_xlabel(f"{_axis(standings.metric)}, k = {standings.k[0]}")
    ax.grid(axis="x", alpha=0.25)


def _axis(metric: str) -> str:
    better = " (lower is better)" if metric in LOWER_IS_BETTER else ""
    return f"test {name(metric)}, mean ± sd{better}"
