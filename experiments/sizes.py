"""How many features: the number that k="auto" finds on planted problems, and the time that finding it takes."""

from __future__ import annotations

import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import charts
from experiments.markdown import MISSING, chart_link, failures, section, table
from experiments.planted_problems import KINDS, Problem, make_problem
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure

NAME = "sizes"
SEEDS = 3
FIRST_DRAW = 100  # of a problem: earlier ones helped to choose defaults
NOISE, NOISE_SIZES = "noise", ((150, 20), (500, 50), (1500, 100))
NOISE_DRAWS = 8  # per draw of another kind: a false finding is rare
MIN_ROWS = 90  # that k="auto" needs
AUTO = "auto"
WITHOUT_TRUTH = (
    "hidden block",
)  # ten features that hold one signal, of which every further one adds something

ABOUT = f"""\
The number of features that `k="auto"` finds on generated problems ([planted problems](#planted-problems)), each kind in
three sizes, and on noise, where there is nothing to find. The draws are none that defaults were chosen on (from draw
{FIRST_DRAW} on), but the kinds of problems are the same. `signals` is the true number. A draw counts as findable if a
selection of that many features has every signal; where none is findable, no number is right. CPU time is that of
`k="auto"`, which includes the selection of the number found, over the time of a selection of `max_k` features, and over
that of the number found, measured one after the other. A fixed number is also tested against chance where no feature
is significant by itself, which `k="auto"` needs not: on such problems the figures are below one."""


def plan_runs(request: RunRequest) -> list[Run]:
    offered = [*(kind for kind in KINDS if _rows(kind) >= MIN_ROWS), NOISE]
    options = {} if request.epochs is None else {"epochs": request.epochs}
    runs = []
    for kind in request.data or offered:
        if kind not in offered:
            raise ValueError(f"--data: there is no kind {kind!r} here; use {', '.join(offered)}")
        if not request.settings or AUTO in request.settings:
            draws = request.seeds * (NOISE_DRAWS if kind == NOISE else 1)
            runs += [Run(kind, AUTO, (seed,), options) for seed in range(draws)]
    return runs


def _rows(kind: str) -> int:
    return min(rows for rows, _ in KINDS[kind][1])


def _draw(kind: str, draw: int) -> Problem:
    if kind != NOISE:
        return make_problem(kind, draw)
    rng, (rows, columns) = np.random.default_rng(draw), NOISE_SIZES[draw % len(NOISE_SIZES)]
    y = rng.integers(2, size=rows) if draw % 2 else rng.standard_normal(rows)
    return Problem(NOISE, rng.standard_normal((rows, columns)), y, "binary" if draw % 2 else "regression", ())


def execute(run: Run) -> dict[str, Any]:
    return catch_failure(_find, run, "chosen", "signals")


def _find(run: Run) -> dict[str, Any]:
    (seed,) = run.seeds
    problem = _draw(run.data, FIRST_DRAW + seed)

    def select(k: Any) -> tuple[seqatt.Selection, float]:
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selection = seqatt.select(problem.X, problem.y, k, seed=seed, task=problem.task, **run.options)
        return selection, round(time.process_time() - started, 3)

    select(1)  # what is loaded or started once counts for none of them
    auto, auto_seconds = select("auto")
    _, largest_seconds = select(auto.settings["max_k"])
    chosen, (_, chosen_seconds) = len(auto.features), select(len(auto.features) or 1)
    findable = False
    if problem.k:
        findable = problem.count_found(select(problem.k)[0].indices.tolist()) == problem.k
    return {
        "signals": [problem.k],
        "chosen": [chosen],
        "found": [problem.count_found(auto.indices.tolist())],
        "findable": [findable],
        "max_k": [auto.settings["max_k"]],
        "cpu_seconds": [[auto_seconds, largest_seconds, chosen_seconds]],
    }


def count_near(results: Results) -> tuple[int, int]:
    """Draws with a findable truth in which the number is within one of it, and all such draws."""
    near = [
        abs(chosen - signals) <= 1
        for kind in results.data_with_runs(tuple(KINDS))
        if kind not in (NOISE, *WITHOUT_TRUTH)
        for chosen, signals, findable in zip(
            *(results.values(kind, AUTO, name) for name in ("chosen", "signals", "findable")), strict=True
        )
        if findable
    ]
    return sum(near), len(near)


def _ratios(results: Results, kind: str) -> list[tuple[float, float]]:
    """CPU time over that of a selection of ``max_k`` features, and over that of the number found, per draw."""
    seconds = results.values(kind, AUTO, "cpu_seconds")
    return [(auto / largest, auto / chosen) for auto, largest, chosen in seconds]


def render(results: Results) -> str:
    rows, ratios = [], []
    for kind in [kind for kind in (*KINDS, NOISE) if results.values(kind, AUTO, "chosen")]:
        values = {name: results.values(kind, AUTO, name) for name in ("chosen", "signals", "findable")}
        texts = [
            f"{chosen}" if findable or not signals else f"({chosen})"
            for chosen, signals, findable in zip(
                values["chosen"], values["signals"], values["findable"], strict=True
            )
        ]
        own = _ratios(results, kind)
        ratios += own
        spans = [_span([pair[i] for pair in own]) for i in (0, 1)]
        rows.append([kind, str(values["signals"][0]), " ".join(texts), *spans])
    near, draws = count_near(results)
    empty = results.values(NOISE, AUTO, "chosen")
    summary = (
        f"Within one of the truth in {near} of {draws} draws in which it is findable (numbers in brackets: it is not; "
        f"{' and '.join(WITHOUT_TRUTH)} has no single truth). Noise: none selected in "
        f"{sum(chosen == 0 for chosen in empty)} of {len(empty)} draws. CPU time: "
        f"{_median(ratios, 0)} times a selection of `max_k` features in the median, {_median(ratios, 1)} times one of "
        "the number found."
    )
    headings = ["problem", "signals", "number found", "CPU time over `max_k`'s", "over that of the number"]
    chart = chart_link(NAME, "The number found beside the number of signals, by kind of problem")
    parts = [
        ABOUT,
        textwrap.fill(summary, 120, break_on_hyphens=False),
        table(headings, rows),
        *failures(results),
        chart,
    ]
    return section("How many features", f"make paper-{NAME}", results, *parts)


def _span(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}" if values else MISSING


def _median(ratios: list[tuple[float, float]], position: int) -> str:
    return f"{np.median([pair[position] for pair in ratios]):.1f}" if ratios else MISSING


def draw(results: Results, folder: Path) -> None:
    kinds = [kind for kind in (*KINDS, NOISE) if results.values(kind, AUTO, "chosen")]
    figure, (axes,) = charts.make_panels(1, size=(6.0, 0.8 + 0.25 * len(kinds)))
    found = [charts.mean_and_std(results.values(kind, AUTO, "chosen")) for kind in kinds]
    truth = [charts.mean_and_std(results.values(kind, AUTO, "signals")) for kind in kinds]
    series: list[charts.Series] = [("signals", charts.GREY, truth), ('k="auto"', charts.SEQATT, found)]
    charts.dot_plot(axes, series, kinds, side_by_side=False)
    axes.set_xlabel("number of features, mean and standard deviation over draws")
    charts.add_legend(figure, [axes])
    charts.save(figure, folder / f"{NAME}.svg")
