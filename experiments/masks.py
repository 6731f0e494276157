"""The five masks of the paper's Hadamard table, with its plain algorithm at k = 50."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import charts, paper
from experiments.markdown import chart_link, data_title, format_reported, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, PLAIN, make_runs, run_trials

NAME = "masks"
NOT_REPORTED = (None,) * len(paper.MASK_NAMES)
SETTINGS: dict[str, dict[str, Any]] = {mask: {"k": 50, **PLAIN, "mask": mask} for mask in paper.MASK_NAMES}

ABOUT = """\
Test accuracy with 50 features, by mask: the function that turns logits into feature weights. All are
selected by the paper's plain algorithm."""


def plan_runs(request: RunRequest) -> list[Run]:
    return make_runs(PAPER_DATA, SETTINGS, request)


def execute(run: Run) -> dict[str, Any]:
    return run_trials(run)


def render(results: Results) -> str:
    rows = []
    for data in results.data(PAPER_DATA):
        measured = [format_trials(results.values(data, mask)) for mask in SETTINGS]
        rows.append([data_title(data), "seqatt", *measured])
        if data in paper.MASKS:
            rows.append(["", "paper", *map(format_reported, paper.MASKS[data])])
    return section(
        "The five masks",
        "make paper-masks",
        results,
        ABOUT,
        table(["data set", "", *(f"`{mask}`" for mask in SETTINGS)], rows),
        chart_link(NAME, "Accuracy of the five masks beside the paper's, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, panels = charts.make_panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        measured = [charts.mean_and_std(results.values(name, mask)) for mask in SETTINGS]
        series = [
            ("seqatt", charts.SEQATT, measured),
            ("paper", charts.PAPER, paper.MASKS.get(name, NOT_REPORTED)),
        ]
        charts.dot_plot(axes, series, [mask.replace("_", " ") for mask in SETTINGS])
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    charts.save(figure, folder / f"{NAME}.svg")
