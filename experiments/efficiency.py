"""Efficiency: accuracy and seconds at the paper's epochs and batch sizes, with the machine's name."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.common import machine

from experiments import drawing, paper
from experiments.rendering import MISSING, base, chart, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import SIX, make_cells, run_trials

NAME = "efficiency"
ONE, ALL = "one trial", "trials together"
HEADINGS = (
    *("data set", "epochs", "batch", "paper, accuracy", "accuracy", "paper, seconds"),
    *("seconds, one trial", "seconds, all trials together"),
)
WARM_UP = 1 / 200  # of the epochs

ABOUT = """\
seqatt's defaults at the paper's epochs and batch sizes. Seconds run from NumPy arrays in memory to
the selections, with kernels already loaded; networks that judge them are not counted. The paper's
seconds are for one trial, on a machine it does not name. Sets without an official split keep one
split here, so that trials train together."""


def cells(part: Slice) -> list[Cell]:
    made = []
    for data in part.data or SIX:
        epochs, batch, *_ = paper.EFFICIENCY.get(base(data), (100, 256))
        told = {"k": 50, "epochs": epochs, "batch_size": batch}
        alone = Slice((data,), part.settings, 1, part.epochs)
        made += make_cells((data,), {ONE: told}, alone, timed_on=machine())
        if part.seeds > 1:
            several = Slice((data,), part.settings, part.seeds, part.epochs)
            made += make_cells((data,), {ALL: told}, several, timed_on=machine())
    return made


def run(cell: Cell) -> dict[str, Any]:
    """A short selection first: kernels are loaded, or compiled, before the clock starts."""
    brief = cell.options | {"epochs": cell.options["epochs"] * WARM_UP}
    run_trials(Cell(cell.data, cell.setting, cell.seeds, brief, cell.machine), judge=False)
    return run_trials(cell)


def seconds(results: Results, data: str, setting: str, where: str) -> float | None:
    found = results.pick(data, setting, where)
    return sum(cell["choosing_seconds"] for cell in found) if found else None


def render(results: Results) -> str:
    parts = []
    for where in results.machines():
        rows = []
        for data in results.data(SIX):
            *_, accuracy, taken = paper.EFFICIENCY.get(data, (None, None))
            times = [seconds(results, data, setting, where) for setting in (ONE, ALL)]
            scores = results.values(data, ALL, machine=where) or results.values(data, ONE, machine=where)
            told: dict[str, Any] = next((cell["options"] for cell in results.pick(data, ONE, where)), {})
            line = [title(data), *(f"{told.get(name, MISSING)}" for name in ("epochs", "batch_size"))]
            line += [reported(accuracy), shown(scores)]
            line += [reported(taken, digits=1), *(MISSING if t is None else f"{t:.2f}" for t in times)]
            rows.append(line)
        parts += [f"### {where}", table(HEADINGS, rows)]
    return section(
        "Efficiency",
        "make paper-efficiency",
        results,
        ABOUT,
        *parts,
        chart(NAME, "Seconds of a selection on each machine beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    figure, (axes,) = drawing.panels(1, size=(6.5, 0.8 + 0.45 * len(data)))
    theirs = [paper.EFFICIENCY[d][3][0] if d in paper.EFFICIENCY else None for d in data]
    series = [("paper", drawing.PAPER, theirs)]
    for where, colour in zip(results.machines(), cycle(drawing.COLOURS), strict=False):
        series.append((where, colour, [seconds(results, d, ONE, where) for d in data]))
    drawing.dots(
        axes,
        [(name, colour, [None if t is None else (t, 0.0) for t in times]) for name, colour, times in series],
        [title(d) for d in data],
    )
    drawing.seconds_axis(axes)
    axes.set_xlabel("seconds of one trial")
    drawing.legend(figure, [axes])
    drawing.save(figure, folder / f"{NAME}.svg")
