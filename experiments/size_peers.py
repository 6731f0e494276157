"""How many features on real tables: k="auto" beside scikit-learn's RFECV and mlxtend's parsimonious choice.

``python -m experiments.size_peers RFECV digits 0`` selects on the rows of one seed and prints what it found: a peer has
a process of its own, which is stopped when its CPU time is over.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.record_file import machine

import seqatt
from experiments import charts
from experiments.markdown import MISSING, chart_link, data_title, failures, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import ROOT, Run, RunRequest, catch_failure
from experiments.trials import PAPER_DATA, check_data, open_data, score, split_kind

NAME = "size_peers"
SEEDS = 2
MAX_ROWS = 2_000  # of training rows, for all of them: the peers train thousands of models
MAX_SECONDS = 120  # of CPU time that a peer may take
AUTO, AUTO_ALL, RFECV, MLXTEND = "auto", "auto, all rows", "RFECV", "mlxtend"
DATA = ("breast_cancer", "digits", *(name for name in PAPER_DATA if name != "mice_protein/groups"))
TREES, FOLDS, ELIMINATED = 100, 3, 0.05

ABOUT = f"""\
The number of features that is chosen, and the test accuracy of networks with these features. All have the same at most
{MAX_ROWS:,} training rows, also for these networks, except `auto, all rows`. `auto` is `k="auto"`, which chooses at
most 50 features unless `max_k` says otherwise; `RFECV` is scikit-learn's recursive elimination with a random forest of
{TREES} trees, a twentieth of the features at a time, and {FOLDS} folds; `mlxtend` is its SequentialFeatureSelector with
logistic regression, forward from 1 to all features, {FOLDS} folds and `k_features="parsimonious"`. Seconds are CPU
seconds of the selection, which other work on the machine hardly changes; a peer that takes more than {MAX_SECONDS} is
stopped. Peers have one trial. `auto` over `max_k`'s is the CPU time of `auto` over that of a selection of `max_k`
features of the same rows."""


def plan_runs(request: RunRequest) -> list[Run]:
    runs = []
    for data in request.data or DATA:
        check_data(data)
        for setting in (AUTO, AUTO_ALL, RFECV, MLXTEND):
            if request.settings and setting not in request.settings:
                continue
            seeds = range(request.seeds if setting in (AUTO, AUTO_ALL) else 1)
            short = setting in (AUTO, AUTO_ALL) and request.epochs is not None
            options = {"epochs": request.epochs} if short else {}
            runs += [Run(data, setting, (seed,), options, machine()) for seed in seeds]
    return runs


def execute(run: Run) -> dict[str, Any]:
    return catch_failure(_choose, run, "accuracy", "size", "choosing_seconds", "largest_seconds")


def _choose(run: Run) -> dict[str, Any]:
    (seed,) = run.seeds
    by_peer = run.setting in PEERS
    found = _in_process(run.setting, run.data, seed) if by_peer else _choose_with_seqatt(run, seed)
    if found is None:  # a result, not a failure, which would be tried again
        return {"accuracy": [], "size": [], "choosing_seconds": [], "stopped": [MAX_SECONDS]}
    split, task = read_rows(run.data, seed, None if run.setting == AUTO_ALL else MAX_ROWS)
    columns = found["features"]
    accuracy = score(split, task, [seed], [columns]) if columns else []
    facts = {name: [value] for name, value in found.items()}
    return {"accuracy": accuracy, "size": [len(columns)], **facts}


def read_rows(data: str, seed: int, max_rows: int | None = MAX_ROWS) -> tuple[seqatt.datasets.Split, str]:
    """Some training rows, drawn by the seed, all test rows, and the task."""
    dataset = open_data(data, seed)
    split = dataset.split(split_kind(data), seed=seed)
    rows = np.random.default_rng(seed).permutation(len(split.y_train))[:max_rows]
    return seqatt.datasets.Split(split.X_train[rows], split.y_train[rows], *split[2:]), dataset.task


def _choose_with_seqatt(run: Run, seed: int) -> dict[str, Any]:
    split, task = read_rows(run.data, seed, None if run.setting == AUTO_ALL else MAX_ROWS)

    def select(k: Any) -> tuple[seqatt.Selection, float]:
        started = time.process_time()
        selection = seqatt.select(split.X_train, split.y_train, k, seed=seed, task=task, **run.options)
        return selection, round(time.process_time() - started, 2)

    auto, seconds = select("auto")
    found = {"features": auto.indices.tolist(), "choosing_seconds": seconds}
    if run.setting == AUTO:
        found["largest_seconds"] = select(auto.settings["max_k"])[1]
    return found


def _in_process(peer: str, data: str, seed: int) -> dict[str, Any] | None:
    """What a peer finds in a new process; None if that took too long."""
    command = [sys.executable, "-m", "experiments.size_peers", peer, data, str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def select_by_rfecv(X: Any, y: Any, seed: int) -> list[int]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import RFECV as Elimination

    forest = RandomForestClassifier(TREES, random_state=seed)
    search = Elimination(forest, step=ELIMINATED, cv=FOLDS).fit(X, y)
    return np.flatnonzero(search.support_).tolist()


def select_by_mlxtend(X: Any, y: Any, seed: int) -> list[int]:
    from mlxtend.feature_selection import SequentialFeatureSelector
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    search = SequentialFeatureSelector(
        LogisticRegression(max_iter=200), k_features="parsimonious", scoring="accuracy", cv=FOLDS
    )
    search.fit(make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(X), y)
    return [int(column) for column in search.k_feature_idx_]


PEERS: dict[str, Callable[[Any, Any, int], list[int]]] = {
    RFECV: select_by_rfecv,
    MLXTEND: select_by_mlxtend,
}


def render(results: Results) -> str:
    rows = []
    for data in results.data(DATA):
        cells = [_cell(results, data, setting) for setting in (AUTO_ALL, AUTO, RFECV, MLXTEND)]
        both = (results.values(data, AUTO, name) for name in ("choosing_seconds", "largest_seconds"))
        ratios = [auto / largest for auto, largest in zip(*both, strict=True)]
        rows.append([data_title(data), *cells, f"{np.mean(ratios):.1f}" if ratios else MISSING])
    headings = ["data set", AUTO_ALL, AUTO, RFECV, MLXTEND, "`auto` over `max_k`'s"]
    chart = chart_link(NAME, "Accuracy and number of features of each, by data set")
    note = "A cell is the number of features, the accuracy with them, and the CPU seconds of the selection."
    parts = [ABOUT, note, table(headings, rows), *failures(results), chart]
    return section("How many features, beside other libraries", f"make paper-{NAME}", results, *parts)


def _cell(results: Results, data: str, setting: str) -> str:
    runs = results.pick(data, setting)
    if any("stopped" in run for run in runs):
        return f"stopped after {MAX_SECONDS} s"
    sizes = results.values(data, setting, "size")
    if not sizes:
        return MISSING
    accuracy = format_trials(results.values(data, setting), expected=len(sizes))
    seconds = float(np.mean(results.values(data, setting, "choosing_seconds")))
    return f"{', '.join(map(str, sizes))}: {accuracy}, {seconds:.0f} s"


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(DATA)
    figure, panels = charts.make_panels(len(data))
    colours = (charts.SEQATT, charts.GREEN, charts.ORANGE, charts.GREY)
    for axes, name in zip(panels, data, strict=True):
        for setting, colour in zip((AUTO_ALL, AUTO, RFECV, MLXTEND), colours, strict=True):
            accuracy, sizes = results.values(name, setting), results.values(name, setting, "size")
            axes.plot(sizes[: len(accuracy)], accuracy, "o", color=colour, markersize=4, label=setting)
        axes.set_xscale("log")
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    figure.supxlabel("number of features; upwards: test accuracy, one dot per trial", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")


def main(peer: str, data: str, seed: int) -> None:
    import resource  # here, because Windows has none

    warnings.simplefilter("ignore")
    split, _ = read_rows(data, seed)
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + MAX_SECONDS, used + MAX_SECONDS + 5))
    started = time.process_time()
    features = PEERS[peer](split.X_train, split.y_train, seed)
    print(json.dumps({"features": features, "choosing_seconds": round(time.process_time() - started, 2)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
