"""Accuracy of Sequential Attention at k = 50, and with all features (the paper's small-scale table)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import drawing, paper
from experiments.rendering import base, chart, reported, section, shown, table, title
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
seqatt as it comes, `plain` the paper's algorithm and no more (one model, no feature taken back),
`random` 50 features by lot."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, SETTINGS, part)


def run(cell: Cell) -> dict[str, Any]:
    return run_trials(cell)


def render(results: Results) -> str:
    rows = [
        [
            title(data),
            reported(paper.ACCURACY.get(base(data))),
            *(shown(results.values(data, setting)) for setting in SETTINGS),
            reported(paper.ALL_FEATURES.get(base(data))),
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
    data = results.data(SIX)
    figure, (axes,) = drawing.panels(1, size=(6.5, 4.2))
    series = [
        ("default", drawing.OURS, [drawing.summary(results.values(d, "default")) for d in data]),
        ("plain", drawing.PLAIN, [drawing.summary(results.values(d, "plain")) for d in data]),
        ("paper", drawing.PAPER, [paper.ACCURACY.get(base(d)) for d in data]),
        ("all features", drawing.THIRD, [drawing.summary(results.values(d, "all")) for d in data]),
        ("random", drawing.REST, [drawing.summary(results.values(d, "random")) for d in data]),
    ]
    drawing.dots(axes, series, [title(d) for d in data])
    axes.set_xlabel("test accuracy, mean and deviation over trials")
    axes.legend(loc="lower left", fontsize=7)
    drawing.save(figure, folder / f"{NAME}.svg")
