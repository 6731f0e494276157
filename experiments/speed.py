"""Every method's accuracy and seconds at the paper's epochs and batch sizes (its efficiency table)."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.common import machine

from experiments import drawing, paper
from experiments.contenders import CONTENDERS, contenders
from experiments.efficiency import WARM_UP, seconds
from experiments.paper_rivals import EFFICIENCY_OF
from experiments.rendering import MISSING, base, chart, failures, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice, attempt
from experiments.trials import SIX, make_cells, open_data, run_trials

NAME = "speed"

ABOUT = """\
Test accuracy and seconds of every method with 50 features: those that train a network at the
paper's epochs and batch sizes, the others as they come. Seconds are those of all trials together,
from NumPy arrays in memory to the selections, with kernels already loaded; the paper's are for one
trial, on a machine it does not name. Sets without an official split keep one split here. The H200's
seconds were taken while eleven other processes kept other cores of its machine busy."""


def cells(part: Slice) -> list[Cell]:
    made = []
    for data in part.data or SIX:
        epochs, batch, *_ = paper.EFFICIENCY.get(base(data), (100, 256))
        trained = {"epochs": epochs, "batch_size": batch}
        settings = {c.name: {"k": 50, "method": c.name} | (trained if c.epochs else {}) for c in contenders()}
        here = Slice((data,), part.settings, part.seeds, part.epochs)
        made += make_cells((data,), settings, here, timed_on=machine())
    return made


def run(cell: Cell) -> dict[str, Any]:
    open_data(cell.data)  # without data there is nothing to attempt
    return attempt(_run, cell, "accuracy", "features")


def _run(cell: Cell) -> dict[str, Any]:
    """A short selection first: kernels are loaded, or compiled, before the clock starts."""
    if "epochs" in cell.options:
        brief = cell.options | {"epochs": cell.options["epochs"] * WARM_UP}
        run_trials(Cell(cell.data, cell.setting, cell.seeds, brief, cell.machine), judge=False)
    return run_trials(cell)


def taken(results: Results, data: str, method: str, where: str) -> float | None:
    """Seconds of all trials together; none where the method failed."""
    return seconds(results, data, method, where) if results.values(data, method, machine=where) else None


def render(results: Results) -> str:
    data = results.data(SIX)
    parts = []
    for where in results.machines():
        rows = []
        for contender in CONTENDERS:
            ours = [_spelled(results, name, contender.name, where) for name in data]
            theirs = EFFICIENCY_OF.get(contender.paper, {})
            if theirs or set(ours) != {MISSING}:
                rows.append([contender.title, "seqatt", *ours])
            if theirs:
                rows.append(["", "paper", *(_reported(theirs.get(name)) for name in data)])
        parts += [f"### Every method on {where}", table(["method", "", *map(title, data)], rows)]
    parts += [*failures(results), chart(NAME, "Seconds of every method beside the paper's, by data set")]
    return section("Every method's pace", "make paper-speed", results, ABOUT, *parts)


def _spelled(results: Results, data: str, method: str, where: str) -> str:
    time = taken(results, data, method, where)
    score = shown(results.values(data, method, machine=where))
    return MISSING if time is None else f"{score}, {time:.2f} s"


def _reported(figures: tuple[paper.Figure, paper.Figure] | None) -> str:
    return MISSING if figures is None else f"{reported(figures[0])}, {figures[1][0]:.1f} s"


def draw(results: Results, folder: Path) -> None:
    data = results.ran(SIX)
    shown_methods = [c for c in CONTENDERS if c.paper or any(results.values(d, c.name) for d in data)]
    height = 0.8 + 0.17 * len(shown_methods)
    figure, panels = drawing.panels(len(data), columns=3, size=(3.4, height))
    for axes, name in zip(panels, data, strict=True):
        theirs = [EFFICIENCY_OF.get(c.paper, {}).get(name) for c in shown_methods]
        series = [("paper", drawing.PAPER, [None if f is None else (f[1][0], 0.0) for f in theirs])]
        for where, colour in zip(results.machines(), cycle(drawing.COLOURS), strict=False):
            times = [taken(results, name, c.name, where) for c in shown_methods]
            series.append((where, colour, [None if t is None else (t, 0.0) for t in times]))
        drawing.dots(axes, series, [c.title for c in shown_methods], side_by_side=False)
        drawing.seconds_axis(axes)
        drawing.name_panel(axes, name)
    drawing.legend(figure, panels)
    figure.supxlabel("seconds of all trials together (the paper: of one)", fontsize=8)
    drawing.save(figure, folder / f"{NAME}.svg")
