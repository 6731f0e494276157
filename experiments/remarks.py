"""The paper's remarks on its one-pass form (appendix B.2.4), and Algorithm 1 as printed, at k = 50."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import charts
from experiments.markdown import chart_link, data_title, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, PLAIN, make_runs, run_trials

NAME = "remarks"
LEARNING_RATE = 9e-3  # three times the default
SETTINGS: dict[str, dict[str, Any]] = {
    "one pass": {"k": 50, **PLAIN},
    "Algorithm 1": {"k": 50, "recipe": "algorithm_1"},
    "logits kept": {"k": 50, **PLAIN, "reset_logits": False},
    "model reset": {"k": 50, **PLAIN, "reset_model": True},
    "temperature 0.25": {"k": 50, **PLAIN, "temperature": 0.25},
    "temperature 4": {"k": 50, **PLAIN, "temperature": 4.0},
    "learning rate x 3": {"k": 50, **PLAIN, "learning_rate": LEARNING_RATE},
}

ABOUT = """\
Test accuracy with 50 features, selected by the paper's algorithm and by what its remarks vary. `one pass`
is `recipe="paper"`: one model, logits reset after each phase. `Algorithm 1` is `recipe="algorithm_1"`, as
printed: a new model is trained in full for every feature, fifty times the steps. The paper remarks that
resetting the logits is important (`logits kept` does not) and that resetting the model is not (`model
reset` does), and that where features are many, the small weights of the softmax slow training down, which
a temperature or a larger learning rate makes up for."""


def plan_runs(request: RunRequest) -> list[Run]:
    return make_runs(PAPER_DATA, SETTINGS, request)


def execute(run: Run) -> dict[str, Any]:
    return run_trials(run)


def render(results: Results) -> str:
    rows = [
        [data_title(data), *(format_trials(results.values(data, setting)) for setting in SETTINGS)]
        for data in results.data(PAPER_DATA)
    ]
    return section(
        "Algorithm 1 and the paper's remarks",
        "make paper-remarks",
        results,
        ABOUT,
        table(["data set", *SETTINGS], rows),
        chart_link(
            NAME, "Accuracy of Algorithm 1 and of the variations that the paper remarks on, by data set"
        ),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, panels = charts.make_panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        measured = [charts.mean_and_std(results.values(name, setting)) for setting in SETTINGS]
        charts.dot_plot(axes, [("seqatt", charts.SEQATT, measured)], list(SETTINGS))
        charts.set_title(axes, name)
    figure.supxlabel("test accuracy, mean and standard deviation over trials", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
