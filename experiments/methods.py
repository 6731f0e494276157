"""Every method at k = 50 on the paper's six data sets (the baselines of its small-scale table, and more)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.compared_methods import COMPARED_METHODS, available_methods
from experiments.markdown import (
    MISSING,
    chart_link,
    data_title,
    failures,
    format_reported,
    format_trials,
    section,
    table,
)
from experiments.paper_baselines import ACCURACY_OF
from experiments.rank_chart import CHART_DESCRIPTION, draw_ranking
from experiments.ranking import Ranking, complete_means, describe, rank
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure
from experiments.trials import PAPER_DATA, evaluate_again, make_runs, open_data, run_trials

__all__ = ["draw", "evaluate_again", "execute", "plan_runs", "render"]

NAME = "methods"

ABOUT = """\
Test accuracy of a network with 67 hidden units, trained on the 50 features that each method of
`seqatt.select` selected with its defaults. The paper's figures are below those of the methods that it
reports. Ranks are of mean accuracies, 1 is best, over the paper's six data sets (Mice Protein by row)."""


def plan_runs(request: RunRequest) -> list[Run]:
    settings = {method.name: {"k": 50, "method": method.name} for method in available_methods()}
    return make_runs(PAPER_DATA, settings, request)


def execute(run: Run) -> dict[str, Any]:
    open_data(run.data)  # missing data stop the experiment: they are not a failure of the method
    return catch_failure(run_trials, run, "accuracy", "features")


def ranking(results: Results, machine: str | None = None) -> Ranking | None:
    """Ranks over the data sets that have runs, without Mice Protein by mouse: it would count twice.

    ``machine`` is that of the runs, where those of several machines are kept apart.
    """
    scores: dict[str, dict[str, float]] = {}
    for data in results.data_with_runs(PAPER_DATA):
        if "/" not in data:
            scores[data] = complete_means(
                {m.name: results.values(data, m.name, machine=machine) for m in COMPARED_METHODS}
            )
    return rank(scores)


def render(results: Results) -> str:
    data = results.data(PAPER_DATA)
    ranked = ranking(results)
    rows = []
    for method in COMPARED_METHODS:
        measured = [format_trials(results.values(name, method.name)) for name in data]
        reported = ACCURACY_OF.get(method.paper, {})
        if reported or set(measured) != {MISSING}:
            mean_rank = ranked.ranks.get(method.name) if ranked else None
            rows.append(
                [method.title, "seqatt", *measured, MISSING if mean_rank is None else f"{mean_rank:.2f}"]
            )
        if reported:
            rows.append(["", "paper", *(format_reported(reported.get(name)) for name in data), ""])
    parts = [table(["method", "", *map(data_title, data), "average rank"], rows), *failures(results)]
    if ranked:
        parts += [describe(ranked), chart_link(NAME, CHART_DESCRIPTION)]
    return section("Every method with fifty features", "make paper-methods", results, ABOUT, *parts)


def draw(results: Results, folder: Path) -> None:
    ranked = ranking(results)
    if ranked:
        draw_ranking(ranked, folder / f"{NAME}.svg")
