"""The critical-difference diagram: average ranks on a line, with bars over methods that do not differ significantly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import charts
from experiments.compared_methods import method_title
from experiments.ranking import Ranking

CHART_DESCRIPTION = "Average rank of every method; a bar joins methods that do not differ significantly"
# Heights below the line of ranks, in units of the y axis.
FIRST_LABEL, LABEL_STEP, BAR_STEP = 1.0, 0.9, 0.42


def draw_ranking(ranking: Ranking, path: Path) -> None:
    """Better ranks are on the left: the better half is labelled there, the other half on the right."""
    names = list(ranking.ranks)
    half = (len(names) + 1) // 2
    bars = ranking.indistinct_groups()
    top = FIRST_LABEL + BAR_STEP * len(bars)
    depth = top + LABEL_STEP * half
    figure, (axes,) = charts.make_panels(1, size=(7.5, 0.9 + 0.19 * depth))
    low, high = 1.0, float(len(names))
    margin = 0.45 * (high - low)
    axes.set(xlim=(low - margin, high + margin), ylim=(depth, -2.2))
    axes.axis("off")
    _draw_scale(axes, len(names))
    _draw_critical_difference(axes, low, ranking.critical_difference)
    for number, group in enumerate(bars):
        height = FIRST_LABEL * 0.6 + BAR_STEP * number
        ends = [ranking.ranks[group[0]] - 0.04, ranking.ranks[group[-1]] + 0.04]
        axes.plot(ends, [height, height], color=charts.PAPER, linewidth=2.5, solid_capstyle="butt")
    for place, (name, value) in enumerate(ranking.ranks.items()):
        left = place < half
        height = top + LABEL_STEP * (place if left else len(names) - 1 - place)
        edge = low - 0.06 * margin if left else high + 0.06 * margin
        colour = charts.SEQATT if name == "sequential_attention" else charts.PAPER
        axes.plot([value, value, edge], [0, height, height], color=colour, linewidth=0.8)
        label = f"{method_title(name)}  {value:.2f}" if left else f"{value:.2f}  {method_title(name)}"
        side = "right" if left else "left"
        axes.text(edge, height, f" {label} ", ha=side, va="center", color=colour, fontsize=8)
    charts.save(figure, path)


def _draw_scale(axes: Any, count: int) -> None:
    axes.plot([1, count], [0, 0], color=charts.PAPER, linewidth=1)
    for value in range(1, count + 1):
        axes.plot([value, value], [0, -0.25], color=charts.PAPER, linewidth=1)
        axes.text(value, -0.4, str(value), ha="center", va="bottom", fontsize=7)


def _draw_critical_difference(axes: Any, start: float, length: float) -> None:
    axes.plot([start, start + length], [-1.5, -1.5], color=charts.PAPER, linewidth=1.5)
    axes.text(start + length, -1.5, f"  critical difference {length:.2f}", va="center", fontsize=7)
