"""Accuracy and seconds of every method at the paper's epochs and batch sizes (its efficiency table)."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.record_file import machine

from experiments import charts, paper
from experiments.compared_methods import COMPARED_METHODS, available_methods
from experiments.efficiency import WARM_UP_SHARE, select_seconds
from experiments.markdown import (
    MISSING,
    base_name,
    chart_link,
    data_title,
    failures,
    format_reported,
    format_trials,
    section,
    table,
)
from experiments.methods import ranking
from experiments.paper_baselines import EFFICIENCY_OF
from experiments.ranking import describe
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure
from experiments.trials import PAPER_DATA, make_runs, open_data, run_trials

NAME = "speed"

ABOUT = """\
Test accuracy and seconds of every method with 50 features. Methods that train a network have the
paper's epochs and batch sizes, the others their defaults. Seconds are those of all trials together, from
NumPy arrays in memory to the selections, with kernels already loaded; the paper's are for one trial, on a
machine that it does not name. Ranks are of mean accuracies, 1 is best, over the paper's six data sets (Mice
Protein by row). Data sets without an official split have one split for all trials here. The
H200's seconds were measured while eleven other processes used other cores of its machine."""


def plan_runs(request: RunRequest) -> list[Run]:
    runs = []
    for data in request.data or PAPER_DATA:
        epochs, batch, *_ = paper.EFFICIENCY.get(base_name(data), (100, 256))
        budget = {"epochs": epochs, "batch_size": batch}
        settings = {
            method.name: {"k": 50, "method": method.name} | (budget if method.epochs else {})
            for method in available_methods()
        }
        one_data_set = RunRequest((data,), request.settings, request.seeds, request.epochs)
        runs += make_runs((data,), settings, one_data_set, timed_on=machine())
    return runs


def execute(run: Run) -> dict[str, Any]:
    open_data(run.data)  # missing data stop the experiment: they are not a failure of the method
    return catch_failure(_time_trials, run, "accuracy", "features")


def _time_trials(run: Run) -> dict[str, Any]:
    """Run a short selection first, so that kernels are compiled or loaded before the clock starts."""
    if "epochs" in run.options:
        short = run.options | {"epochs": run.options["epochs"] * WARM_UP_SHARE}
        run_trials(Run(run.data, run.setting, run.seeds, short, run.machine), evaluate=False)
    return run_trials(run)


def method_seconds(results: Results, data: str, method: str, machine_name: str) -> float | None:
    """Seconds of all trials together; None if the method failed or was not run."""
    finished = results.values(data, method, machine=machine_name)
    return select_seconds(results, data, method, machine_name) if finished else None


def render(results: Results) -> str:
    data = results.data(PAPER_DATA)
    parts = []
    for machine_name in results.machines():
        rows = []
        ranked = ranking(results, machine_name)
        for method in COMPARED_METHODS:
            measured = [_format_measured(results, name, method.name, machine_name) for name in data]
            reported = EFFICIENCY_OF.get(method.paper, {})
            if reported or set(measured) != {MISSING}:
                mean_rank = ranked.ranks.get(method.name) if ranked else None
                rows.append(
                    [method.title, "seqatt", *measured, MISSING if mean_rank is None else f"{mean_rank:.2f}"]
                )
            if reported:
                rows.append(["", "paper", *(_format_paper(reported.get(name)) for name in data), ""])
        headings = ["method", "", *map(data_title, data), "average rank"]
        parts += [f"### Every method on {machine_name}", table(headings, rows)]
        parts += [describe(ranked)] if ranked else []
    chart = chart_link(NAME, "Seconds of every method beside the paper's, by data set")
    parts += [*failures(results), chart]
    return section("Speed of every method", "make paper-speed", results, ABOUT, *parts)


def _format_measured(results: Results, data: str, method: str, machine_name: str) -> str:
    seconds = method_seconds(results, data, method, machine_name)
    accuracy = format_trials(results.values(data, method, machine=machine_name))
    return MISSING if seconds is None else f"{accuracy}, {seconds:.2f} s"


def _format_paper(figures: tuple[paper.MeanStd, paper.MeanStd] | None) -> str:
    return MISSING if figures is None else f"{format_reported(figures[0])}, {figures[1][0]:.1f} s"


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    methods = [m for m in COMPARED_METHODS if m.paper or any(results.values(d, m.name) for d in data)]
    height = 0.8 + 0.17 * len(methods)
    figure, panels = charts.make_panels(len(data), columns=3, size=(3.4, height))
    for axes, name in zip(panels, data, strict=True):
        reported = [EFFICIENCY_OF.get(method.paper, {}).get(name) for method in methods]
        series = [("paper", charts.PAPER, [None if f is None else (f[1][0], 0.0) for f in reported])]
        for machine_name, colour in zip(results.machines(), cycle(charts.MACHINE_COLOURS), strict=False):
            times = [method_seconds(results, name, method.name, machine_name) for method in methods]
            series.append((machine_name, colour, [None if t is None else (t, 0.0) for t in times]))
        charts.dot_plot(axes, series, [method.title for method in methods], side_by_side=False)
        charts.log_seconds_axis(axes)
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    figure.supxlabel("seconds of all trials together (the paper: of one)", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
