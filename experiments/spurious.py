"""Real tables with spurious columns: which methods find the real features among them?"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments.contenders import CONTENDERS, contenders
from experiments.extended import KINDS, MOST_REAL, extend
from experiments.paper import TITLES
from experiments.rank_chart import CHART_SAYS, draw_ranking
from experiments.ranking import Ranking, describe, means, rank
from experiments.rendering import MISSING, chart, failures, section, table
from experiments.results_file import Results
from experiments.running import Cell, Slice, attempt
from experiments.trials import choose, open_data, score

NAME = "spurious"
TABLES = (
    *("california_housing", "higgs_7500", "sylva", "pcmac", "relathe", "warpar10p"),
    *("mice_protein", "breast_cancer"),
)
SHARES = {50: "half", 75: "three quarters"}
ORIGINAL, ALL = "original", "all"
REFERENCES = {ORIGINAL: "the original features", ALL: "all columns"}
TOGETHER = 5  # trials that share their rows and their extra columns

ABOUT = f"""\
A harder test than the paper's, after Cherepanova et al. (NeurIPS 2023): real tables of numbers with
extra columns, which are half or three quarters of all. `noise` is Gaussian; `copies` are real
features with as much Gaussian noise added as they vary; `products` are those of two real features.
Each method chooses as many columns as there were features; of wider tables {MOST_REAL} features are drawn
first. A figure is the test accuracy (R² for California housing) of a network trained on the columns
chosen, and in brackets the share of them that is extra. Five trials share their rows and extra
columns; with `--seeds 15` there are three such draws. A random fifth of the rows is for testing. Ranks
are of the mean figure within each table; the six tables made of one data set are not independent, so
the critical difference is rather too small."""


def cells(part: Slice) -> list[Cell]:
    methods: dict[str, dict[str, Any]] = {name: {} for name in REFERENCES}
    for contender in contenders():
        shorter = part.epochs is not None and contender.epochs
        methods[contender.name] = {"epochs": part.epochs} if shorter else {}
    draws = [range(first, min(first + TOGETHER, part.seeds)) for first in range(0, part.seeds, TOGETHER)]
    made = []
    for data in part.data or TABLES:
        seqatt.datasets.info(data)  # a wrong name is told before any work
        for name in [f"{data}/{kind}/{percent}" for kind in KINDS for percent in SHARES]:
            for method, options in methods.items():
                if not part.settings or method in part.settings:
                    made += [
                        Cell(name, method, tuple(seeds), {"method": method, **options}) for seeds in draws
                    ]
    return made


def run(cell: Cell) -> dict[str, Any]:
    open_data(cell.data)  # without data there is nothing to attempt
    return attempt(_run, cell, "score", "extra")


def _run(cell: Cell) -> dict[str, Any]:
    data, kind, percent = cell.data.split("/")
    draw = cell.seeds[0] // TOGETHER
    dataset = open_data(data)
    if data == "higgs_7500":  # its own 500 test rows are like the others, and too few to tell methods apart
        dataset = replace(dataset, splits=("rows",))
    split, extra = extend(dataset.split(seed=draw), kind, int(percent) / 100, draw)
    real = np.flatnonzero(~extra).tolist()
    chosen: list[list[int] | None] = [real for _ in cell.seeds]
    settings: dict[str, Any] = {}
    started = time.perf_counter()
    if cell.setting != ORIGINAL:
        chosen, settings = choose(split, dataset.task, cell.seeds, {"k": len(real), **cell.options})
    seconds = time.perf_counter() - started
    taken = [float(extra[slice(None) if columns is None else columns].mean()) for columns in chosen]
    found = {"score": score(split, dataset.task, cell.seeds, chosen), "extra": [round(t, 4) for t in taken]}
    return found | {"k": len(real), "choosing_seconds": round(seconds, 4), "settings": settings}


def ranking(results: Results, kinds: tuple[str, ...] = KINDS) -> Ranking | None:
    """Over all tables of these kinds; the references are no contenders."""
    scores: dict[str, dict[str, float]] = {}
    for name in results.ran(()):
        if name.split("/")[1] in kinds:
            found = {c.name: results.values(name, c.name, "score") for c in CONTENDERS}
            scores[name] = means(found)
    return rank(scores)


def render(results: Results) -> str:
    overall = ranking(results)
    parts = [_summary(results, overall), *failures(results)]
    if overall:
        parts.insert(1, describe(overall))
        parts.append(chart(NAME, CHART_SAYS))
    for kind in KINDS:
        for percent, share in SHARES.items():
            parts += [f"#### {kind.capitalize()}, {share} of the columns", _figures(results, kind, percent)]
    return section("Spurious columns", "make paper-spurious", results, ABOUT, *parts)


def _summary(results: Results, overall: Ranking | None) -> str:
    by_kind = [ranking(results, (kind,)) for kind in KINDS]
    rows = []
    for method, title in _methods(results):
        line = [title]
        for ranked in (overall, *by_kind):
            place = ranked.ranks.get(method) if ranked else None
            line.append(MISSING if place is None else f"{place:.2f}")
        for kind in KINDS:
            names = [name for name in results.ran(()) if name.split("/")[1] == kind]
            shares = [results.values(name, method, "extra") for name in names]
            line.append(f"{np.mean(np.concatenate(shares)):.0%}" if shares and all(shares) else MISSING)
        rows.append(line)
    return table(
        ["method", "average rank", *(f"rank, {k}" for k in KINDS), *(f"extra, {k}" for k in KINDS)], rows
    )


def _figures(results: Results, kind: str, percent: int) -> str:
    tables = list(dict.fromkeys([*TABLES, *(name.split("/")[0] for name in results.ran(()))]))
    rows = []
    for method, title in _methods(results):
        line = [title]
        for data in tables:
            name = f"{data}/{kind}/{percent}"
            scores, extra = (results.values(name, method, what) for what in ("score", "extra"))
            line.append(f"{np.mean(scores):.3f} ({np.mean(extra):.0%})" if scores else MISSING)
        rows.append(line)
    return table(["method", *(TITLES.get(data, data) for data in tables)], rows)


def _methods(results: Results) -> list[tuple[str, str]]:
    """References first, then the methods that were run, as setting and in words."""
    known = [*REFERENCES.items(), *((c.name, c.title) for c in CONTENDERS)]
    ran = {cell["setting"] for cell in results.cells.values()}
    return [(setting, words) for setting, words in known if setting in ran]


def draw(results: Results, folder: Path) -> None:
    overall = ranking(results)
    if overall:
        draw_ranking(overall, folder / f"{NAME}.svg")
