"""Adaptivity: 64 features, 2^i of them per phase, at equal training budget (the paper's table of that name)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import charts, paper
from experiments.markdown import chart_link, data_title, format_reported, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, PLAIN, make_runs, run_trials

NAME = "adaptivity"
FEATURES_PER_PHASE = tuple(2**i for i in range(7))
SETTINGS: dict[str, dict[str, Any]] = {
    f"{count} per phase": {"k": 64, **PLAIN, "features_per_phase": count} for count in FEATURES_PER_PHASE
}

ABOUT = """\
Test accuracy with 64 features, selected 1 to 64 per phase by the paper's plain algorithm. Every
column trains for the same number of steps."""


def plan_runs(request: RunRequest) -> list[Run]:
    return make_runs(PAPER_DATA, SETTINGS, request)


def execute(run: Run) -> dict[str, Any]:
    return run_trials(run)


def render(results: Results) -> str:
    rows = []
    for data in results.data(PAPER_DATA):
        measured = [format_trials(results.values(data, setting)) for setting in SETTINGS]
        rows.append([data_title(data), "seqatt", *measured])
        if data in paper.ADAPTIVITY:
            rows.append(["", "paper", *map(format_reported, paper.ADAPTIVITY[data])])
    return section(
        "Adaptivity",
        "make paper-adaptivity",
        results,
        ABOUT,
        table(["data set", "", *SETTINGS], rows),
        chart_link(NAME, "Accuracy against the number of features selected per phase, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(PAPER_DATA)
    figure, panels = charts.make_panels(len(data))
    for axes, name in zip(panels, data, strict=True):
        reported = paper.ADAPTIVITY.get(name, (None,) * len(FEATURES_PER_PHASE))
        measured = [charts.mean_and_std(results.values(name, setting)) for setting in SETTINGS]
        for label, colour, style, figures in (
            ("paper", charts.PAPER, "D--", reported),
            ("seqatt", charts.SEQATT, "o-", measured),
        ):
            known = [(x, *f) for x, f in zip(FEATURES_PER_PHASE, figures, strict=True) if f is not None]
            if known:
                x, mean, std = zip(*known, strict=True)
                axes.errorbar(x, mean, std, fmt=style, color=colour, markersize=3, capsize=2, label=label)
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
        axes.set_xticks(FEATURES_PER_PHASE, [str(count) for count in FEATURES_PER_PHASE])
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    figure.supxlabel("features selected per phase", fontsize=8)
    figure.supylabel("test accuracy", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
