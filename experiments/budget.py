"""How small a training budget still gives the figures: accuracy against seconds."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.common import machine

import seqatt
from experiments import drawing, paper
from experiments.rendering import MISSING, chart, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import SIX, make_cells, open_data, run_trials, split_kind

NAME = "budget"
SHORTER, LONGER = (200, 400, 750, 1_500), (6_000, 12_000)
SETTINGS: dict[str, dict[str, Any]] = {
    **{f"{steps:,} steps": {"k": 50, "steps": steps} for steps in SHORTER},
    "default": {"k": 50},
    **{f"{steps:,} steps": {"k": 50, "steps": steps} for steps in LONGER},
}

ABOUT = """\
Test accuracy with 50 features and the seconds of a trial, by how long seqatt trains while it
chooses; trials train together and share the time. The network that judges the features is trained
in full every time. Sets without an official split keep one split here. The H200 was shared by eleven
other selections meanwhile, so its seconds are uneven and too long."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, SETTINGS, part, timed_on=machine())


def run(cell: Cell) -> dict[str, Any]:
    """Steps become passes over the rows, at the batch size that seqatt itself would take."""
    told = dict(cell.options)
    batch, rows = batch_and_rows(cell.data)  # this also loads what a GPU loads once
    if "steps" in told:
        told["epochs"] = told.pop("steps") * batch / rows
    return run_trials(Cell(cell.data, cell.setting, cell.seeds, told, cell.machine))


@lru_cache
def batch_and_rows(data: str) -> tuple[int, int]:
    dataset = open_data(data)
    split = dataset.split(split_kind(data))
    brief = seqatt.select(split.X_train, split.y_train, 1, task=dataset.task, epochs=1e-3)
    return brief.settings["batch_size"], brief.settings["rows"]


def seconds(results: Results, data: str, setting: str, where: str) -> float | None:
    """A trial's share of the time its batch of trials took."""
    found = results.pick(data, setting, where)
    trials = sum(len(cell["seeds"]) for cell in found)
    return sum(cell["choosing_seconds"] for cell in found) / trials if found else None


def render(results: Results) -> str:
    parts = []
    for where in results.machines():
        rows = []
        for data in results.data(SIX):
            line = [title(data), reported(paper.ACCURACY.get(data))]
            for setting in SETTINGS:
                taken = seconds(results, data, setting, where)
                score = shown(results.values(data, setting, machine=where))
                line.append(MISSING if taken is None else f"{score}, {taken:.2f} s")
            rows.append(line)
        parts += [f"### {where}", table(["data set", "paper", *SETTINGS], rows)]
    return section(
        "How small a budget will do",
        "make paper-budget",
        results,
        ABOUT,
        *parts,
        chart(NAME, "Accuracy against the seconds of a trial, by data set; a ring marks the default"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    figure, panels = drawing.panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        for where, colour in zip(results.machines(), cycle(drawing.COLOURS), strict=False):
            points = {s: drawing.summary(results.values(name, s, machine=where)) for s in SETTINGS}
            times = {s: seconds(results, name, s, where) for s in SETTINGS}
            known = [(times[s], *f) for s, f in points.items() if f is not None]
            if known:
                x, mean, std = zip(*known, strict=True)
                axes.errorbar(x, mean, std, fmt="o-", color=colour, markersize=3, capsize=2, label=where)
            if points["default"]:
                axes.plot(times["default"], points["default"][0], "o", mfc="none", color=colour, markersize=9)
        if name in paper.ACCURACY:
            axes.axhline(paper.ACCURACY[name][0], color=drawing.PAPER, linestyle="--", label="paper")
        drawing.seconds_axis(axes)
        drawing.name_panel(axes, name)
    drawing.legend(figure, panels)
    figure.supxlabel("seconds of a trial (ring: the default)", fontsize=8)
    figure.supylabel("test accuracy", fontsize=8)
    drawing.save(figure, folder / f"{NAME}.svg")
