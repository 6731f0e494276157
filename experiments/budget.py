"""Accuracy and seconds against the training budget of the selection."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.record_file import machine

import seqatt
from experiments import charts, paper
from experiments.markdown import (
    MISSING,
    chart_link,
    data_title,
    format_reported,
    format_trials,
    section,
    table,
)
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, make_runs, open_data, run_trials, split_kind

NAME = "budget"
SHORTER, LONGER = (200, 400, 750, 1_500), (6_000, 12_000)  # steps, below and above the default
SETTINGS: dict[str, dict[str, Any]] = {
    **{f"{steps:,} steps": {"k": 50, "steps": steps} for steps in SHORTER},
    "default": {"k": 50},
    **{f"{steps:,} steps": {"k": 50, "steps": steps} for steps in LONGER},
}

ABOUT = """\
Test accuracy with 50 features and seconds per trial, by the number of training steps of the
selection. Trials train together and share the time. The network that evaluates the features is always
trained in full. Data sets without an official split have one split for all trials here. The H200 was
shared with eleven other selections, so its seconds are uneven and too long."""


def plan_runs(request: RunRequest) -> list[Run]:
    return make_runs(PAPER_DATA, SETTINGS, request, timed_on=machine())


def execute(run: Run) -> dict[str, Any]:
    """Run the trials with steps converted to epochs, at the batch size that seqatt chooses by itself."""
    options = dict(run.options)
    batch, rows = batch_and_rows(run.data)  # this also loads GPU kernels, before the clock starts
    if "steps" in options:
        options["epochs"] = options.pop("steps") * batch / rows
    return run_trials(Run(run.data, run.setting, run.seeds, options, run.machine))


@lru_cache
def batch_and_rows(data: str) -> tuple[int, int]:
    """Default batch size and number of training rows, from a very short selection."""
    dataset = open_data(data)
    split = dataset.split(split_kind(data))
    short = seqatt.select(split.X_train, split.y_train, 1, task=dataset.task, epochs=1e-3)
    return short.settings["batch_size"], short.settings["rows"]


def seconds_per_trial(results: Results, data: str, setting: str, machine_name: str) -> float | None:
    """Seconds of the selections over the number of trials; None if there are no runs."""
    runs = results.pick(data, setting, machine_name)
    trials = sum(len(run["seeds"]) for run in runs)
    return sum(run["choosing_seconds"] for run in runs) / trials if runs else None


def render(results: Results) -> str:
    parts = []
    for machine_name in results.machines():
        rows = []
        for data in results.data(PAPER_DATA):
            row = [data_title(data), format_reported(paper.ACCURACY.get(data))]
            for setting in SETTINGS:
                seconds = seconds_per_trial(results, data, setting, machine_name)
                accuracy = format_trials(results.values(data, setting, machine=machine_name))
                row.append(MISSING if seconds is None else f"{accuracy}, {seconds:.2f} s")
            rows.append(row)
        parts += [f"### {machine_name}", table(["data set", "paper", *SETTINGS], rows)]
    return section(
        "Smaller training budgets",
        "make paper-budget",
        results,
        ABOUT,
        *parts,
        chart_link(NAME, "Accuracy against seconds per trial, by data set; a ring marks the default"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, panels = charts.make_panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        for machine_name, colour in zip(results.machines(), cycle(charts.MACHINE_COLOURS), strict=False):
            points = {s: charts.mean_and_std(results.values(name, s, machine=machine_name)) for s in SETTINGS}
            seconds = {s: seconds_per_trial(results, name, s, machine_name) for s in SETTINGS}
            known = [(seconds[s], *f) for s, f in points.items() if f is not None]
            if known:
                x, mean, std = zip(*known, strict=True)
                axes.errorbar(
                    x, mean, std, fmt="o-", color=colour, markersize=3, capsize=2, label=machine_name
                )
            if points["default"]:
                x, y = seconds["default"], points["default"][0]
                axes.plot(x, y, "o", mfc="none", color=colour, markersize=9)
        if name in paper.ACCURACY:
            axes.axhline(paper.ACCURACY[name][0], color=charts.PAPER, linestyle="--", label="paper")
        charts.log_seconds_axis(axes)
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    figure.supxlabel("seconds per trial (ring: the default)", fontsize=8)
    figure.supylabel("test accuracy", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
