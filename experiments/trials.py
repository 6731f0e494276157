"""Trials: choose features on the training rows, judge them by a network on the test rows.

A trial is a seed. It gives one selection and one network, retrained on the chosen features alone with the
default recipe of ``seqatt.evaluate``, the same for every method and data set. Data sets without an
official split are split anew for every seed, except where time is measured: there one split serves all
trials, so that they train together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import seqatt
from experiments.contenders import takes_epochs
from experiments.planted import planted
from experiments.running import Cell, Slice

SIX = ("mice_protein", "mice_protein/groups", "mnist", "fashion_mnist", "isolet", "coil20", "activity")

# The paper's algorithm and no more: one model, exactly k choices, none of them taken back.
PLAIN = {
    "ensemble": 1,
    "surplus": 1.0,
    "replacement": 0,
    "input_dropout": 0.0,
    "univariate_test": 0.0,
    "asinh_inputs": False,
}

Options = Mapping[str, Any]


def make_cells(
    data: Sequence[str], settings: Mapping[str, Options], part: Slice, *, timed_on: str = ""
) -> list[Cell]:
    """Every data set with every setting. Trials that share their training rows share a cell.

    A setting is what ``seqatt.select_trials`` is told. ``method`` may also be "all", for no selection.
    """
    cells = []
    for name in part.data or data:
        _insist_on_data(name)
        for setting, options in settings.items():
            if part.settings and setting not in part.settings:
                continue
            told = dict(options)
            method = told.get("method", "sequential_attention")
            if part.epochs is not None and "steps" not in told and takes_epochs(method):
                told["epochs"] = part.epochs
            seeds = tuple(range(part.seeds))
            alone = not timed_on and split_kind(name) != "official"
            batches = [(seed,) for seed in seeds] if alone else [seeds]
            cells += [Cell(name, setting, batch, told, timed_on) for batch in batches]
    return cells


def run_trials(cell: Cell, *, judge: bool = True) -> dict[str, Any]:
    """Accuracy and features of every trial, the seconds choosing took, and the settings as resolved."""
    accuracy: list[float] = []
    features: list[list[int]] = []
    settings: dict[str, Any] = {}
    choosing = 0.0
    for seeds, split, task in _shared_rows(cell):
        started = time.perf_counter()
        chosen, settings = choose(split, task, seeds, cell.options)
        choosing += time.perf_counter() - started
        features += [[] if columns is None else columns for columns in chosen]
        if judge:
            accuracy += score(split, task, seeds, chosen)
    found: dict[str, Any] = {"accuracy": accuracy} if judge else {}
    if cell.options.get("method") != "all":
        found |= {"choosing_seconds": round(choosing, 4), "features": features}
    return found | ({"settings": settings} if settings else {})


def choose(
    split: seqatt.datasets.Split, task: str, seeds: Sequence[int], options: Options
) -> tuple[list[list[int] | None], dict[str, Any]]:
    """Columns in the order chosen, None for all of them, a list a seed."""
    told = dict(options)
    method = told.get("method")
    X, y = split.X_train, split.y_train
    if method == "all":
        return [None for _ in seeds], {}
    k = min(told.pop("k"), X.shape[1])
    trials = seqatt.select_trials(X, y, k, seeds=seeds, task=task, progress=True, **told)
    resolved = {name: value for name, value in trials[0].settings.items() if value is not None}
    return [trial.indices.tolist() for trial in trials], resolved


def score(
    split: seqatt.datasets.Split, task: str, seeds: Sequence[int], chosen: Sequence[list[int] | None]
) -> list[float]:
    """Test accuracy of one network a trial, R² for regression; those with the same columns train together."""
    found: dict[int, float] = {}
    for columns in {tuple(columns or ()): columns for columns in chosen}.values():
        alike = [seed for seed, other in zip(seeds, chosen, strict=True) if other == columns]
        judged = seqatt.evaluate(*split, columns, seeds=alike, task=task)
        found |= dict(zip(alike, judged[judged.metric].tolist(), strict=True))
    return [round(found[seed], 6) for seed in seeds]


def open_data(name: str, seed: int = 0) -> seqatt.datasets.Dataset:
    """A data set by name; the planted problem is another one for every seed."""
    return planted(seed) if name == "planted" else _load(name.partition("/")[0])


@lru_cache(maxsize=1)
def _load(name: str) -> seqatt.datasets.Dataset:
    return seqatt.datasets.load(name)


def _shared_rows(cell: Cell) -> Iterator[tuple[tuple[int, ...], seqatt.datasets.Split, str]]:
    """Training and test rows, and the trials that share them."""
    kind = split_kind(cell.data)
    together = bool(cell.machine) or kind == "official"
    for seeds in [cell.seeds] if together else [(seed,) for seed in cell.seeds]:
        first = 0 if together else seeds[0]
        dataset = open_data(cell.data, first)
        yield seeds, dataset.split(kind, seed=first), dataset.task


def split_kind(name: str) -> Any:
    """How a data set is split: as its name says after a slash, else as its source offers first."""
    base, _, kind = name.partition("/")
    return kind or ("rows" if base == "planted" else seqatt.datasets.info(base).splits[0])


def _insist_on_data(name: str) -> None:
    """A wrong name is told before any work."""
    base, _, kind = name.partition("/")
    if base == "planted":
        return
    offered = seqatt.datasets.info(base).splits
    if kind and kind not in offered:
        raise ValueError(f"data: {base} has no split {kind!r}; it has {' or '.join(map(repr, offered))}")
