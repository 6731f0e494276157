"""Planted problems: how many of the useful features each method finds, and what each part of the default adds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import charts
from experiments.compared_methods import COMPARED_METHODS, available_methods
from experiments.lasso_path import select_by_lasso
from experiments.markdown import MISSING, chart_link, failures, section, table
from experiments.planted_problems import KINDS, make_problem
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure

NAME = "suite"
SEEDS = 3
LASSO = "LASSO (scikit-learn)"
PAPER = "the paper's algorithm"
DEFAULT = "sequential_attention"
MAX_GREEDY_COLUMNS = 500  # of a problem that greedy selection gets: it trains a network for every column
ABLATIONS: dict[str, dict[str, Any]] = {
    "one model": {"ensemble": 1},
    "no surplus": {"surplus": 1.0},
    "no replacement": {"replacement": 0},
    "no exchanges": {"exchanges": 0},
    "no univariate test": {"univariate_test": 0.0},
    "slow logits": {"logit_learning_rate": 3e-3},
    "no weight decay": {"weight_decay": 0.0},
    "inputs as they are": {"asinh_inputs": False},
    "input dropout 0.2": {"input_dropout": 0.2},
    "half the steps": {"epochs": 0.5},
    "four times the steps": {"epochs": 4.0},
}
MAIN = (DEFAULT, PAPER, "forest", "mutual_information", LASSO)

ABOUT = """\
Generated problems whose useful features are known, each kind in three sizes (one per seed). A method selects as
many features as there are signals; a figure is how many signals it found with each of the three seeds. Copies of a
feature are one signal, so that a second copy is a wasted choice. [`experiments/planted_problems.py`](
../experiments/planted_problems.py) has the definitions. The default was chosen with the help of these problems, so its
figures are what it was built to reach and no independent evidence; the other methods have their defaults."""

ABOUT_ABLATIONS = """\
What each part of the default adds: the same problems with one part left out or changed. `slow logits` train at the
model's learning rate, as in the paper. `inputs as they are` differ only where there are more columns than rows."""


def plan_runs(request: RunRequest) -> list[Run]:
    settings: dict[str, dict[str, Any]] = {DEFAULT: {}, PAPER: {"recipe": "paper"}, LASSO: {}}
    settings |= {
        method.name: {"method": method.name} for method in available_methods() if method.name != DEFAULT
    }
    settings |= ABLATIONS
    runs = []
    for kind in request.data or KINDS:
        if kind not in KINDS:
            raise ValueError(f"--data: there is no kind {kind!r}; use {', '.join(KINDS)}")
        for setting, options in settings.items():
            if not request.settings or setting in request.settings:
                runs.append(Run(kind, setting, tuple(range(request.seeds)), options))
    return runs


def execute(run: Run) -> dict[str, Any]:
    return catch_failure(_count_found, run, "found")


def _count_found(run: Run) -> dict[str, Any]:
    found, signals, seconds = [], [], []
    for seed in run.seeds:
        problem = make_problem(run.data, seed)
        options = dict(run.options)
        if options.get("method") == "greedy" and problem.X.shape[1] > MAX_GREEDY_COLUMNS:
            raise ValueError(f"more than {MAX_GREEDY_COLUMNS} columns")
        if run.setting == LASSO:
            columns: Sequence[int] = select_by_lasso(problem.X, problem.y, problem.task, problem.k)
        else:
            if "epochs" in options:  # a multiple of the default's
                options["epochs"] *= _select(problem, seed, {}).settings["epochs"]
            selection = _select(problem, seed, options)
            columns = selection.indices.tolist()
            seconds.append(round(selection.seconds, 3))
        found.append(problem.count_found(columns))
        signals.append(problem.k)
    return {"found": found, "signals": signals, "choosing_seconds": seconds}


def _select(problem: Any, seed: int, options: dict[str, Any]) -> seqatt.Selection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seqatt.select(problem.X, problem.y, problem.k, seed=seed, task=problem.task, **options)


def mean_share(results: Results, setting: str) -> float | None:
    """The share of signals found, averaged over all kinds and seeds; None if a kind is missing."""
    shares = [
        np.divide(run["found"], run["signals"])
        for kind in KINDS
        for run in results.pick(kind, setting)
        if run["found"]
    ]
    return float(np.mean(np.concatenate(shares))) if len(shares) == len(KINDS) else None


def render(results: Results) -> str:
    titles = {DEFAULT: "default", PAPER: PAPER, LASSO: LASSO}
    titles |= {method.name: method.title for method in COMPARED_METHODS if method.name != DEFAULT}
    others = [name for name in titles if name not in MAIN]
    ranked = sorted(others, key=lambda name: -(mean_share(results, name) or 0))
    missed = [[titles[name], _share(results, name), _weakest(results, name)] for name in ranked]
    ablations = [[name, _share(results, name), _weakest(results, name)] for name in (DEFAULT, *ABLATIONS)]
    ablations[0][0] = "default"
    return section(
        "Planted problems",
        "make paper-suite",
        results,
        ABOUT,
        table(["problem", "signals", *(titles[name] for name in MAIN)], _found_rows(results)),
        "The other methods, by the mean share of signals found, with the kinds in which they miss most:",
        table(["method", "mean share", "misses most"], missed),
        ABOUT_ABLATIONS,
        table(["default", "mean share", "misses most"], ablations),
        *failures(results),
        chart_link(NAME, "Mean share of the signals that each method finds"),
    )


def _found_rows(results: Results) -> list[list[str]]:
    rows = []
    for kind in KINDS:
        found = [results.values(kind, setting, "found") for setting in MAIN]
        best = max((sum(values) for values in found), default=0)
        texts = [" ".join(map(str, values)) or MISSING for values in found]
        texts = [f"**{t}**" if v and sum(v) == best else t for t, v in zip(texts, found, strict=True)]
        rows.append([kind, str(make_problem(kind, 0).k), *texts])
    rows.append(["mean share", "", *(_share(results, setting) for setting in MAIN)])
    return rows


def _share(results: Results, setting: str) -> str:
    share = mean_share(results, setting)
    return MISSING if share is None else f"{share:.3f}"


def _weakest(results: Results, setting: str, count: int = 3) -> str:
    """The kinds with the lowest share, with what was found."""
    shares = {}
    for kind in KINDS:
        for run in results.pick(kind, setting):
            if run["found"]:
                shares[kind] = (sum(run["found"]) / sum(run["signals"]), run["found"], run["signals"][0])
    lowest = sorted((kind for kind in shares if shares[kind][0] < 1), key=lambda kind: shares[kind][0])[
        :count
    ]
    return "; ".join(f"{kind} {' '.join(map(str, shares[kind][1]))} of {shares[kind][2]}" for kind in lowest)


def draw(results: Results, folder: Path) -> None:
    titles = {DEFAULT: "default", PAPER: PAPER, LASSO: LASSO}
    titles |= {method.name: method.title for method in COMPARED_METHODS if method.name != DEFAULT}
    shares = {title: mean_share(results, name) for name, title in titles.items()}
    ranked = sorted((title for title in shares if shares[title] is not None), key=lambda t: -(shares[t] or 0))
    figure, (axes,) = charts.make_panels(1, size=(6.0, 0.8 + 0.25 * len(ranked)))
    charts.dot_plot(axes, [("found", charts.SEQATT, [(shares[t] or 0.0, 0.0) for t in ranked])], ranked)
    axes.set_xlabel("share of the signals found, mean over kinds and seeds")
    charts.save(figure, folder / f"{NAME}.svg")
