"""The chart of a standings: the metric against k, a line a method. matplotlib is loaded when drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.comparison.cell import ALL
from seqatt.comparison.conclusion import name
from seqatt.comparison.standings import Standings

# Okabe and Ito's colours, told apart with any colour vision; grey is for the references.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX*"
GREY = "#888888"
FIRST = "sequential_attention"


def draw(standings: Standings, ax: Any = None) -> Any:
    """Lines over k, or a row a method where there is one k only."""
    if ax is None:
        ax = _new_axes(standings)
    if len(standings.k) == 1:
        _draw_rows(standings, ax)
    else:
        _draw_lines(standings, ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.figure.canvas.draw_idle()
    return ax


def _new_axes(standings: Standings) -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'seqatt[plot]'") from None
    tall = 1.2 + 0.35 * len(standings.settings["methods"])
    size = (6.4, tall) if len(standings.k) == 1 else (7.2, 4.2)
    return plt.subplots(figsize=size, layout="constrained")[1]


def _styles(standings: Standings) -> dict[str, dict[str, Any]]:
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


def _draw_lines(standings: Standings, ax: Any) -> None:
    rows = [row for row in standings.table() if row["mean"] is not None]
    ax.set_xscale("log" if standings.k[-1] > 4 * standings.k[0] else "linear")
    ends: list[tuple[float, str, str]] = []
    for method, style in _styles(standings).items():
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        k, mean = [row["k"] for row in own], np.array([row["mean"] for row in own])
        sd = np.array([row["sd"] or 0.0 for row in own])
        thick = 2.4 if method == FIRST else 1.5
        ax.plot(k, mean, markersize=5, linewidth=thick, label=method, zorder=3, **style)
        ax.fill_between(k, mean - sd, mean + sd, color=style["color"], alpha=0.10, linewidth=0)
        ends.append((mean[-1], method, style["color"]))
    whole = [row for row in rows if row["method"] == ALL]
    for row in whole:
        ax.axhline(row["mean"], color=GREY, linewidth=1, linestyle="--", zorder=1)
        ends.append((row["mean"], f"all {row['k']}", GREY))
    ax.set_xticks(standings.k, [str(k) for k in standings.k])
    ax.minorticks_off()
    ax.set_xlabel("features chosen (k)")
    ax.set_ylabel(f"test {name(standings.metric)}")
    ax.grid(alpha=0.25)
    _label_ends(ax, ends)


def _label_ends(ax: Any, ends: list[tuple[float, str, str]]) -> None:
    """Names at the right edge, beside the ends of their lines and moved apart where they would overlap."""
    low, high = ax.get_ylim()
    ends = sorted(ends, key=lambda end: end[0])
    wanted = np.array([(value - low) / (high - low) for value, _, _ in ends])
    room = 11 / (ax.get_window_extent().height * 72 / ax.figure.dpi)
    for (value, text, colour), place in zip(ends, _spread_out(wanted, room), strict=True):
        ax.annotate(
            text,
            xy=(1, value),
            xycoords=ax.get_yaxis_transform(),
            xytext=(1.03, place),
            textcoords="axes fraction",
            color=colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
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


def _draw_rows(standings: Standings, ax: Any) -> None:
    rows = [row for row in standings.table() if row["mean"] is not None]
    rows.sort(key=lambda row: row["mean"])
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
    ax.set_xlabel(f"test {name(standings.metric)}, k = {standings.k[0]}")
    ax.grid(axis="x", alpha=0.25)
