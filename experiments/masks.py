"""The five masks of the paper's Hadamard table, with its plain algorithm at k = 50."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import drawing, paper
from experiments.rendering import chart, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import PLAIN, SIX, make_cells, run_trials

NAME = "masks"
NONE = (None,) * len(paper.MASK_NAMES)
SETTINGS: dict[str, dict[str, Any]] = {mask: {"k": 50, **PLAIN, "mask": mask} for mask in paper.MASK_NAMES}

ABOUT = """\
Test accuracy with 50 features, by how logits become weights; the paper's plain algorithm
throughout."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, SETTINGS, part)


def run(cell: Cell) -> dict[str, Any]:
    return run_trials(cell)


def render(results: Results) -> str:
    rows = []
    for data in results.data(SIX):
        rows.append([title(data), "seqatt", *(shown(results.values(data, mask)) for mask in SETTINGS)])
        if data in paper.MASKS:
            rows.append(["", "paper", *map(reported, paper.MASKS[data])])
    return section(
        "The five masks",
        "make paper-masks",
        results,
        ABOUT,
        table(["data set", "", *(f"`{mask}`" for mask in SETTINGS)], rows),
        chart(NAME, "Accuracy of the five masks beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    figure, panels = drawing.panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        theirs = paper.MASKS.get(name, NONE)
        ours = [drawing.summary(results.values(name, mask)) for mask in SETTINGS]
        series = [
            ("seqatt", drawing.OURS, ours),
            ("paper", drawing.PAPER, theirs),
        ]
        drawing.dots(axes, series, [mask.replace("_", " ") for mask in SETTINGS])
        drawing.name_panel(axes, name)
    drawing.legend(figure, panels)
    drawing.save(figure, folder / f"{NAME}.svg")
