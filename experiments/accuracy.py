"""Accuracy of Sequential Attention at k = 50, and with all features (the paper's small-scale table)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import drawing, paper
from experiments.rendering import chart, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import PLAIN, SIX, make_cells, run_trials

NAME = "accuracy"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"k": 50},
    "plain": {"k": 50, **PLAIN},
    "random": {"k": 50, "method": "random"},
    "all": {"method": "all"},
}
HEADINGS = ("data set", "paper", "default", "plain", "random", "all features", "paper, all features")

ABOUT = """\
Test accuracy of a network with 67 hidden units, trained on the 50 features chosen. `default` is
seqatt as it comes, `plain` the paper's algorithm (one model, no feature taken back) with seqatt's
warm-up and weight decay, `random` 50 features by lot."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, SETTINGS, part)


def run(cell: Cell) -> dict[str, Any]:
    return run_trials(cell)


def render(results: Results) -> str:
    rows = [
        [
            title(data),
            reported(paper.ACCURACY.get(data)),
            *(shown(results.values(data, setting)) for setting in SETTINGS),
            reported(paper.ALL_FEATURES.get(data)),
        ]
        for data in results.data(SIX)
    ]
    return section(
        "Accuracy with fifty features",
        "make paper-accuracy",
        results,
        ABOUT,
        table(HEADINGS, rows),
        chart(NAME, "Accuracy of every setting beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    figure, panels = drawing.panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        whole = paper.ALL_FEATURES.get(name)
        theirs = [paper.ACCURACY.get(name), *[None] * len(SETTINGS), None if whole is None else (whole, 0.0)]
        ours = [None, *(drawing.summary(results.values(name, setting)) for setting in SETTINGS), None]
        series = [("seqatt", drawing.OURS, ours), ("paper", drawing.PAPER, theirs)]
        drawing.dots(axes, series, HEADINGS[1:], side_by_side=False)
        drawing.name_panel(axes, name)
    figure.supxlabel("test accuracy, mean and deviation over trials", fontsize=8)
    drawing.save(figure, folder / f"{NAME}.svg")
