"""Efficiency: accuracy and seconds at the paper's epochs and batch sizes, per machine."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.record_file import machine

from experiments import charts, paper
from experiments.markdown import (
    MISSING,
    base_name,
    chart_link,
    data_title,
    format_reported,
    format_trials,
    section,
    table,
)
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, make_runs, run_trials

NAME = "efficiency"
ONE_TRIAL, ALL_TRIALS = "one trial", "trials together"
HEADINGS = (
    *("data set", "epochs", "batch", "paper, accuracy", "accuracy", "paper, seconds"),
    *("seconds, one trial", "seconds, all trials together"),
)
WARM_UP_SHARE = 1 / 200  # share of the epochs that the untimed first selection trains for

ABOUT = """\
seqatt's defaults at the paper's epochs and batch sizes. Seconds are from NumPy arrays in memory to
the selections, with kernels already loaded; the networks that evaluate the features are not counted.
The paper's seconds are for one trial, on a machine that it does not name. Data sets without an official
split have one split for all trials here, so that the trials train together."""


def plan_runs(request: RunRequest) -> list[Run]:
    runs = []
    for data in request.data or PAPER_DATA:
        epochs, batch, *_ = paper.EFFICIENCY.get(base_name(data), (100, 256))
        options = {"k": 50, "epochs": epochs, "batch_size": batch}
        one_trial = RunRequest((data,), request.settings, 1, request.epochs)
        runs += make_runs((data,), {ONE_TRIAL: options}, one_trial, timed_on=machine())
        if request.seeds > 1:
            all_trials = RunRequest((data,), request.settings, request.seeds, request.epochs)
            runs += make_runs((data,), {ALL_TRIALS: options}, all_trials, timed_on=machine())
    return runs


def execute(run: Run) -> dict[str, Any]:
    """Run a short selection first, so that kernels are compiled or loaded before the clock starts."""
    short = run.options | {"epochs": run.options["epochs"] * WARM_UP_SHARE}
    run_trials(Run(run.data, run.setting, run.seeds, short, run.machine), evaluate=False)
    return run_trials(run)


def select_seconds(results: Results, data: str, setting: str, machine_name: str) -> float | None:
    """Seconds of the selections of all trials; None if there are no runs."""
    runs = results.pick(data, setting, machine_name)
    return sum(run["choosing_seconds"] for run in runs) if runs else None


def render(results: Results) -> str:
    parts = []
    for name in results.machines():
        rows = []
        for data in results.data(PAPER_DATA):
            *_, accuracy, seconds = paper.EFFICIENCY.get(data, (None, None))
            times = [select_seconds(results, data, setting, name) for setting in (ONE_TRIAL, ALL_TRIALS)]
            scores = results.values(data, ALL_TRIALS, machine=name)
            scores = scores or results.values(data, ONE_TRIAL, machine=name)
            options: dict[str, Any] = next((r["options"] for r in results.pick(data, ONE_TRIAL, name)), {})
            row = [data_title(data), *(f"{options.get(key, MISSING)}" for key in ("epochs", "batch_size"))]
            row += [format_reported(accuracy), format_trials(scores), format_reported(seconds, digits=1)]
            row += [MISSING if time is None else f"{time:.2f}" for time in times]
            rows.append(row)
        parts += [f"### {name}", table(HEADINGS, rows)]
    return section(
        "Efficiency",
        "make paper-efficiency",
        results,
        ABOUT,
        *parts,
        chart_link(NAME, "Seconds of a selection on each machine beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, (axes,) = charts.make_panels(1, size=(6.5, 0.8 + 0.45 * len(data)))
    reported = [paper.EFFICIENCY[d][3][0] if d in paper.EFFICIENCY else None for d in data]
    series = [("paper", charts.PAPER, reported)]
    for name, colour in zip(results.machines(), cycle(charts.MACHINE_COLOURS), strict=False):
        series.append((name, colour, [select_seconds(results, d, ONE_TRIAL, name) for d in data]))
    charts.dot_plot(
        axes,
        [(name, colour, [None if t is None else (t, 0.0) for t in times]) for name, colour, times in series],
        [data_title(d) for d in data],
    )
    charts.log_seconds_axis(axes)
    axes.set_xlabel("seconds of one trial")
    charts.add_legend(figure, [axes])
    charts.save(figure, folder / f"{NAME}.svg")
