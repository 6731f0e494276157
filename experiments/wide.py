"""Wide and noisy tables: Sequential Attention against a random forest and mutual information at equal k."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import charts
from experiments.markdown import MISSING, chart_link, data_title, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import evaluate_again, make_runs, open_data, run_trials

__all__ = ["draw", "evaluate_again", "execute", "plan_runs", "render"]

NAME = "wide"
SEEDS = 10  # more than elsewhere, because a split has only ten to forty test rows
WIDE = (
    *("allaml", "arcene", "colon", "glioma", "leukemia", "lymphoma"),
    *("nci9", "orlraws10p", "warpar10p", "yale", "pcmac", "relathe", "planted"),
)
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "forest": {"method": "forest"},
    "mutual information": {"method": "mutual_information"},
    "random": {"method": "random"},
}
COLOURS = (charts.SEQATT, charts.GREEN, charts.ORANGE, charts.GREY)

ABOUT = """\
Test accuracy over ten random splits with a fifth of the rows for testing; the same network evaluates
every method. `default` is Sequential Attention with seqatt's defaults; `forest` selects the features with
the largest decrease of impurity in 500 random trees; `mutual information` selects those with the largest
mutual information with the class, each feature by itself. `planted` is synthetic (2,000 rows): five features
act jointly, fifteen are linear combinations of them, 480 are noise. The best mean of a row is bold, however
small its lead."""


def k_for(data: str) -> int:
    return 20 if data == "planted" else 50


def plan_runs(request: RunRequest) -> list[Run]:
    runs = []
    for data in request.data or WIDE:
        settings = {name: {"k": k_for(data), **options} for name, options in METHODS.items()}
        one_data_set = RunRequest((data,), request.settings, request.seeds, request.epochs)
        runs += make_runs((data,), settings, one_data_set)
    return runs


def execute(run: Run) -> dict[str, Any]:
    measured = run_trials(run)
    if run.data == "planted":
        names = [open_data("planted", seed).feature_names for seed in run.seeds]
        measured["useful"] = [
            sum(not trial_names[i].startswith("noise") for i in columns)
            for trial_names, columns in zip(names, measured["features"], strict=True)
        ]
    return measured


def render(results: Results) -> str:
    rows = []
    for data in results.data(WIDE):
        scores = [results.values(data, method) for method in METHODS]
        best = max((float(np.mean(values)) for values in scores if values), default=None)
        texts = [format_trials(values, expected=SEEDS) for values in scores]
        texts = [f"**{t}**" if v and np.mean(v) == best else t for t, v in zip(texts, scores, strict=True)]
        rows.append([data_title(data), str(k_for(data)), *texts])
    complete = [
        data for data in results.data(WIDE) if all(results.values(data, method) for method in METHODS)
    ]
    means = [[float(np.mean(results.values(data, method))) for data in complete] for method in METHODS]
    rows.append([f"mean of {len(complete)}", "", *(f"{np.mean(m):.3f}" if m else MISSING for m in means)])
    useful = [
        format_trials(results.values("planted", method, "useful"), digits=1, expected=SEEDS)
        for method in METHODS
    ]
    return section(
        "Wide and noisy tables",
        "make paper-wide",
        results,
        ABOUT,
        table(["data set", "k", *METHODS], rows),
        "Number of the 20 features selected on `planted` that are not noise:",
        table(list(METHODS), [useful]),
        chart_link(NAME, "Accuracy of four methods, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(WIDE)
    figure, (axes,) = charts.make_panels(1, size=(6.5, 0.8 + 0.4 * len(data)))
    series = [
        (method, colour, [charts.mean_and_std(results.values(d, method)) for d in data])
        for method, colour in zip(METHODS, COLOURS, strict=True)
    ]
    charts.dot_plot(axes, series, [data_title(d) for d in data])
    axes.set_xlabel("test accuracy, mean and standard deviation over splits")
    charts.add_legend(figure, [axes])
    charts.save(figure, folder / f"{NAME}.svg")
