"""Trials: select features on the training rows, evaluate them with a network on the test rows.

A trial is one seed: one selection, and one network trained from scratch on the selected features with the
default settings of ``seqatt.evaluate``, the same for every method and data set. Data sets without an official
split are split anew for every seed, except where seconds are measured: there all trials share one split, so
that they train together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import seqatt
from experiments.compared_methods import takes_epochs
from experiments.planted import planted
from experiments.runs import Run, RunRequest

# The six data sets of the paper; Mice Protein is split by rows and by mice.
PAPER_DATA = ("mice_protein", "mice_protein/groups", "mnist", "fashion_mnist", "isolet", "coil20", "activity")

# The paper's one-pass algorithm without seqatt's additions.
PLAIN = {"recipe": "paper"}

Options = Mapping[str, Any]


def make_runs(
    data: Sequence[str], settings: Mapping[str, Options], request: RunRequest, *, timed_on: str = ""
) -> list[Run]:
    """Every data set with every setting. Trials that share their training rows share a run.

    A setting holds the arguments of ``seqatt.select_trials``; method "all" stands for no selection.
    ``timed_on`` is the machine's name where seconds are measured.
    """
    runs = []
    for name in request.data or data:
        check_data(name)
        for setting, given in settings.items():
            if request.settings and setting not in request.settings:
                continue
            options = dict(given)
            method = options.get("method", "sequential_attention")
            if request.epochs is not None and "steps" not in options and takes_epochs(method):
                options["epochs"] = request.epochs
            seeds = tuple(range(request.seeds))
            one_per_run = not timed_on and split_kind(name) != "official"
            seed_groups = [(seed,) for seed in seeds] if one_per_run else [seeds]
            runs += [Run(name, setting, group, options, timed_on) for group in seed_groups]
    return runs


def run_trials(run: Run, *, evaluate: bool = True) -> dict[str, Any]:
    """Accuracy and features of every trial, the seconds of the selections, and the resolved settings."""
    accuracy: list[float] = []
    features: list[list[int]] = []
    settings: dict[str, Any] = {}
    select_seconds = 0.0
    for seeds, split, task in _shared_splits(run):
        started = time.perf_counter()
        selected, settings = select_columns(split, task, seeds, run.options)
        select_seconds += time.perf_counter() - started
        features += [[] if columns is None else columns for columns in selected]
        if evaluate:
            accuracy += score(split, task, seeds, selected)
    measured: dict[str, Any] = {"accuracy": accuracy} if evaluate else {}
    if run.options.get("method") != "all":
        measured |= {"choosing_seconds": round(select_seconds, 4), "features": features}
    return measured | ({"settings": settings} if settings else {})


def evaluate_again(run: Run, features: Sequence[list[int]]) -> dict[str, Any]:
    """The accuracy of every trial of a run whose features are recorded, by today's evaluation."""
    selected = iter(features)
    accuracy = [
        value
        for seeds, split, task in _shared_splits(run)
        for value in score(split, task, seeds, [next(selected) for _ in seeds])
    ]
    return {"accuracy": accuracy}


def select_columns(
    split: seqatt.datasets.Split, task: str, seeds: Sequence[int], options: Options
) -> tuple[list[list[int] | None], dict[str, Any]]:
    """One list of columns per seed, in the order of selection (None: all columns), and the resolved settings."""
    options = dict(options)
    X, y = split.X_train, split.y_train
    if options.get("method") == "all":
        return [None for _ in seeds], {}
    k = min(options.pop("k"), X.shape[1])
    trials = seqatt.select_trials(X, y, k, seeds=seeds, task=task, progress=True, **options)
    resolved = {name: value for name, value in trials[0].settings.items() if value is not None}
    return [trial.indices.tolist() for trial in trials], resolved


def score(
    split: seqatt.datasets.Split, task: str, seeds: Sequence[int], selected: Sequence[list[int] | None]
) -> list[float]:
    """Test accuracy (R² for regression) of one network per trial; trials with equal columns train together."""
    scores: dict[int, float] = {}
    for columns in {tuple(columns or ()): columns for columns in selected}.values():
        same = [seed for seed, other in zip(seeds, selected, strict=True) if other == columns]
        evaluation = seqatt.evaluate(*split, columns, seeds=same, task=task)
        scores |= dict(zip(same, evaluation[evaluation.metric].tolist(), strict=True))
    return [round(scores[seed], 6) for seed in seeds]


def open_data(name: str, seed: int = 0) -> seqatt.datasets.Dataset:
    """A data set by name; "planted" is generated from ``seed``."""
    return planted(seed) if name == "planted" else _load(name.partition("/")[0])


@lru_cache(maxsize=1)
def _load(name: str) -> seqatt.datasets.Dataset:
    return seqatt.datasets.load(name)


def _shared_splits(run: Run) -> Iterator[tuple[tuple[int, ...], seqatt.datasets.Split, str]]:
    """Groups of seeds with the split that they share, and the task."""
    kind = split_kind(run.data)
    together = bool(run.machine) or kind == "official"
    for seeds in [run.seeds] if together else [(seed,) for seed in run.seeds]:
        split_seed = 0 if together else seeds[0]
        dataset = open_data(run.data, split_seed)
        yield seeds, dataset.split(kind, seed=split_seed), dataset.task


def split_kind(name: str) -> Any:
    """The kind of split: what follows the slash in the name, else the first that the data set offers."""
    base, _, kind = name.partition("/")
    return kind or ("rows" if base == "planted" else seqatt.datasets.info(base).splits[0])


def check_data(name: str) -> None:
    """Raise ValueError for an unknown data set or split, before anything is run."""
    base, _, kind = name.partition("/")
    if base == "planted":
        return
    offered = seqatt.datasets.info(base).splits
    if kind and kind not in offered:
        raise ValueError(f"data: {base} has no split {kind!r}; use {' or '.join(map(repr, offered))}")
