"""Accuracy of Sequential Attention at k = 50, and with all features (the paper's small-scale table)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import charts, paper
from experiments.markdown import chart_link, data_title, format_reported, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, PLAIN, make_runs, run_trials

NAME = "accuracy"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"k": 50},
    "plain": {"k": 50, **PLAIN},
    "random": {"k": 50, "method": "random"},
    "all": {"method": "all"},
}
HEADINGS = ("data set", "paper", "default", "plain", "random", "all features", "paper, all features")

ABOUT = """\
Test accuracy of a network with 67 hidden units, trained on the 50 selected features. `default` is
Sequential Attention with seqatt's defaults; `plain` is the paper's one-pass algorithm
(`recipe="paper"`); `random` is 50 features drawn at random.
The two columns of the paper are from its own evaluation; its accuracy with all features shows how that
network differs from the one here."""


def plan_runs(request: RunRequest) -> list[Run]:
    return make_runs(PAPER_DATA, SETTINGS, request)


def execute(run: Run) -> dict[str, Any]:
    return run_trials(run)


def render(results: Results) -> str:
    rows = [
        [
            data_title(data),
            format_reported(paper.ACCURACY.get(data)),
            *(format_trials(results.values(data, setting)) for setting in SETTINGS),
            format_reported(paper.ALL_FEATURES.get(data)),
        ]
        for data in results.data(PAPER_DATA)
    ]
    return section(
        "Accuracy with fifty features",
        "make paper-accuracy",
        results,
        ABOUT,
        table(HEADINGS, rows),
        chart_link(NAME, "Accuracy of every setting beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, panels = charts.make_panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        full = paper.ALL_FEATURES.get(name)
        reported = [paper.ACCURACY.get(name), *[None] * len(SETTINGS), None if full is None else (full, 0.0)]
        measured = [None, *(charts.mean_and_std(results.values(name, setting)) for setting in SETTINGS), None]
        series = [("seqatt", charts.SEQATT, measured), ("paper", charts.PAPER, reported)]
        charts.dot_plot(axes, series, HEADINGS[1:], side_by_side=False)
        charts.set_title(axes, name)
    figure.supxlabel("test accuracy, mean and standard deviation over trials", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
