"""Adaptivity: 64 features, 2^i of them a phase, at equal training budget (the paper's table of that name)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import drawing, paper
from experiments.rendering import chart, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import PLAIN, SIX, make_cells, run_trials

NAME = "adaptivity"
TAKES = tuple(2**i for i in range(7))
SETTINGS: dict[str, dict[str, Any]] = {
    f"{take} a phase": {"k": 64, **PLAIN, "features_per_phase": take} for take in TAKES
}

ABOUT = """\
Test accuracy with 64 features, chosen 1 to 64 at a time by the paper's plain algorithm. Every
column trains for the same number of steps."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, SETTINGS, part)


def run(cell: Cell) -> dict[str, Any]:
    return run_trials(cell)


def render(results: Results) -> str:
    rows = []
    for data in results.data(SIX):
        rows.append([title(data), "seqatt", *(shown(results.values(data, setting)) for setting in SETTINGS)])
        if data in paper.ADAPTIVITY:
            rows.append(["", "paper", *map(reported, paper.ADAPTIVITY[data])])
    return section(
        "Adaptivity",
        "make paper-adaptivity",
        results,
        ABOUT,
        table(["data set", "", *SETTINGS], rows),
        chart(NAME, "Accuracy against the number of features chosen at a time, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    figure, panels = drawing.panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        theirs = paper.ADAPTIVITY.get(name, (None,) * len(TAKES))
        ours = [drawing.summary(results.values(name, setting)) for setting in SETTINGS]
        for label, colour, style, figures in (
            ("paper", drawing.PAPER, "D--", theirs),
            ("seqatt", drawing.OURS, "o-", ours),
        ):
            known = [(take, *f) for take, f in zip(TAKES, figures, strict=True) if f is not None]
            if known:
                x, mean, std = zip(*known, strict=True)
                axes.errorbar(x, mean, std, fmt=style, color=colour, markersize=3, capsize=2, label=label)
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
        axes.set_xticks(TAKES, [str(take) for take in TAKES])
        drawing.name_panel(axes, name)
    drawing.legend(figure, panels)
    figure.supxlabel("features chosen at a time", fontsize=8)
    figure.supylabel("test accuracy", fontsize=8)
    drawing.save(figure, folder / f"{NAME}.svg")
