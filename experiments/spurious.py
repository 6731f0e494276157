"""Real tables with spurious columns: which methods find the real features?"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments.compared_methods import COMPARED_METHODS, available_methods
from experiments.extra_columns import KINDS, MAX_REAL_FEATURES, add_columns
from experiments.markdown import MISSING, chart_link, failures, section, table
from experiments.paper import TITLES
from experiments.rank_chart import CHART_DESCRIPTION, draw_ranking
from experiments.ranking import Ranking, complete_means, describe, rank
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure
from experiments.trials import open_data, score, select_columns

NAME = "spurious"
TABLES = (
    *("california_housing", "higgs_7500", "sylva", "pcmac", "relathe", "warpar10p"),
    *("mice_protein", "breast_cancer"),
)
SHARES = {50: "half", 75: "three quarters"}  # extra columns in percent of all
ORIGINAL, ALL = "original", "all"
REFERENCES = {ORIGINAL: "the original features", ALL: "all columns"}
TRIALS_PER_DRAW = 5  # trials that share their split and their extra columns

ABOUT = f"""\
A harder test than the paper's, after Cherepanova et al. (NeurIPS 2023): real numeric tables with extra
columns, which are half or three quarters of all columns. `noise` is Gaussian; `copies` are real features
with Gaussian noise of the same standard deviation added; `products` are those of two real features. Each
method selects as many columns as there were features; of wider tables {MAX_REAL_FEATURES} features are sampled first.
A figure is the test accuracy (R² for California housing) of a network trained on the selected columns, and
in brackets the share of extra columns among them. Five trials share their split and extra columns; with
`--seeds 15` there are three such draws. A random fifth of the rows is for testing. Ranks are of the mean
figure within each table; the six tables made from one data set are not independent, so the critical
difference is somewhat too small."""


def plan_runs(request: RunRequest) -> list[Run]:
    options: dict[str, dict[str, Any]] = {name: {} for name in REFERENCES}
    for method in available_methods():
        shortened = request.epochs is not None and method.epochs
        options[method.name] = {"epochs": request.epochs} if shortened else {}
    starts = range(0, request.seeds, TRIALS_PER_DRAW)
    draws = [range(start, min(start + TRIALS_PER_DRAW, request.seeds)) for start in starts]
    runs = []
    for data in request.data or TABLES:
        seqatt.datasets.info(data)  # raises ValueError for an unknown name, before anything is run
        for name in [f"{data}/{kind}/{percent}" for kind in KINDS for percent in SHARES]:
            for setting in options:
                if not request.settings or setting in request.settings:
                    arguments = {"method": setting, **options[setting]}
                    runs += [Run(name, setting, tuple(seeds), arguments) for seeds in draws]
    return runs


def execute(run: Run) -> dict[str, Any]:
    open_data(run.data)  # missing data stop the experiment: they are not a failure of the method
    return catch_failure(_select_and_score, run, "score", "extra")


def _select_and_score(run: Run) -> dict[str, Any]:
    data, kind, percent = run.data.split("/")
    draw = run.seeds[0] // TRIALS_PER_DRAW
    dataset = open_data(data)
    if data == "higgs_7500":  # its official 500 test rows are too few to separate methods
        dataset = replace(dataset, splits=("rows",))
    split, is_extra = add_columns(dataset.split(seed=draw), kind, int(percent) / 100, draw)
    real = np.flatnonzero(~is_extra).tolist()
    selected: list[list[int] | None] = [real for _ in run.seeds]
    settings: dict[str, Any] = {}
    started = time.perf_counter()
    if run.setting != ORIGINAL:
        selected, settings = select_columns(split, dataset.task, run.seeds, {"k": len(real), **run.options})
    seconds = time.perf_counter() - started
    shares = [float(is_extra[slice(None) if columns is None else columns].mean()) for columns in selected]
    return {
        "score": score(split, dataset.task, run.seeds, selected),
        "extra": [round(share, 4) for share in shares],
        "k": len(real),
        "choosing_seconds": round(seconds, 4),
        "settings": settings,
    }


def ranking(results: Results, kinds: tuple[str, ...] = KINDS) -> Ranking | None:
    """Ranks over all tables of these kinds; the references are not ranked."""
    scores: dict[str, dict[str, float]] = {}
    for name in results.data_with_runs(()):
        if name.split("/")[1] in kinds:
            by_method = {m.name: results.values(name, m.name, "score") for m in COMPARED_METHODS}
            scores[name] = complete_means(by_method)
    return rank(scores)


def render(results: Results) -> str:
    overall = ranking(results)
    parts = [_summary_table(results, overall), *failures(results)]
    if overall:
        parts.insert(1, describe(overall))
        parts.append(chart_link(NAME, CHART_DESCRIPTION))
    for kind in KINDS:
        for percent, share in SHARES.items():
            heading = f"#### {kind.capitalize()}, {share} of the columns"
            parts += [heading, _score_table(results, kind, percent)]
    return section("Spurious columns", "make paper-spurious", results, ABOUT, *parts)


def _summary_table(results: Results, overall: Ranking | None) -> str:
    by_kind = [ranking(results, (kind,)) for kind in KINDS]
    rows = []
    for setting, title in _settings_with_runs(results):
        row = [title]
        for ranked in (overall, *by_kind):
            mean_rank = ranked.ranks.get(setting) if ranked else None
            row.append(MISSING if mean_rank is None else f"{mean_rank:.2f}")
        for kind in KINDS:
            names = [name for name in results.data_with_runs(()) if name.split("/")[1] == kind]
            shares = [results.values(name, setting, "extra") for name in names]
            row.append(f"{np.mean(np.concatenate(shares)):.0%}" if shares and all(shares) else MISSING)
        rows.append(row)
    return table(
        ["method", "average rank", *(f"rank, {k}" for k in KINDS), *(f"extra, {k}" for k in KINDS)], rows
    )


def _score_table(results: Results, kind: str, percent: int) -> str:
    tables = list(dict.fromkeys([*TABLES, *(name.split("/")[0] for name in results.data_with_runs(()))]))
    rows = []
    for setting, title in _settings_with_runs(results):
        row = [title]
        for data in tables:
            name = f"{data}/{kind}/{percent}"
            scores, extra = (results.values(name, setting, measure) for measure in ("score", "extra"))
            row.append(f"{np.mean(scores):.3f} ({np.mean(extra):.0%})" if scores else MISSING)
        rows.append(row)
    return table(["method", *(TITLES.get(data, data) for data in tables)], rows)


def _settings_with_runs(results: Results) -> list[tuple[str, str]]:
    """Settings that have runs, with their titles: references first, then methods."""
    known = [*REFERENCES.items(), *((method.name, method.title) for method in COMPARED_METHODS)]
    recorded = {run["setting"] for run in results.runs.values()}
    return [(setting, title) for setting, title in known if setting in recorded]


def draw(results: Results, folder: Path) -> None:
    overall = ranking(results)
    if overall:
        draw_ranking(overall, folder / f"{NAME}.svg")
