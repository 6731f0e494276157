"""What is to be compared, on which rows: all of it checked before any work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.api.select import plain, record_table
from seqatt.comparison.arguments import (
    check_distinct_seeds,
    check_ks,
    check_methods,
    check_options,
    usual_methods,
)
from seqatt.comparison.fingerprint import fingerprint
from seqatt.comparison.splits import Rows, check_test_size, hold_out
from seqatt.comparison.statistics import METRICS
from seqatt.data.tables.containers import InputTable, check_same_columns, read_input_table
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.data.tables.target import target_array
from seqatt.training.loop import resolve_device
from seqatt.training.options import one_of
from seqatt.version import __version__


@dataclass(frozen=True)
class SplitData:
    """A table and its target, or some rows of both."""

    table: InputTable
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None = None

    def take(self, rows: Rows) -> SplitData:
        mask = np.zeros(self.table.rows, dtype=bool)
        mask[rows] = True
        weights = None if self.weights is None else self.weights[mask]
        return SplitData(self.table.keep_rows(mask), self.labels[mask], weights)


@dataclass(frozen=True)
class ComparisonSetup:
    """Methods, numbers of features and seeds to go through, and the rows for each seed."""

    data: SplitData
    test: SplitData | None
    splits: dict[int, tuple[Rows, Rows]]
    options: dict[str, dict[str, Any]]
    about_table: dict[str, Any]
    settings: dict[str, Any]

    def rows(self, seed: int) -> tuple[SplitData, SplitData]:
        """What is learnt from, and what is tested on."""
        if self.test is not None:
            return self.data, self.test
        train, test = self.splits[seed]
        return self.data.take(train), self.data.take(test)


def prepare(
    X: Any,
    y: Any,
    k: Any,
    *,
    methods: Sequence[str] | None,
    seeds: Sequence[int],
    options: Mapping[str, Mapping[str, Any]] | None,
    test: tuple[Any, Any],
    test_size: float | int,
    stratify: bool | None,
    split_groups: Any,
    metric: str | None,
    device: str,
    about_table: dict[str, Any],
) -> ComparisonSetup:
    """Everything a user can get wrong is an error here."""
    asked = None if methods is None else check_methods(methods)
    seeds = check_distinct_seeds(seeds)
    picked = str(resolve_device(device))
    table, labels = read_input_table(X, "X"), target_array(y, "y")
    whole = read_table_data(table, labels, **about_table)
    names = usual_methods(whole) if asked is None else asked
    own = check_options(options, names)
    ks = check_ks(k, whole.features)
    task = whole.target.task
    one_of("metric", metric or METRICS[task][0], list(METRICS[task]))
    weights = about_table.pop("sample_weight", None)
    data = SplitData(table, labels, None if weights is None else np.asarray(weights, dtype=np.float64))
    apart = _check_groups(split_groups, table.rows)
    if (
        data.weights is not None and not data.weights.all()
    ):  # rows of no weight are no rows, here as in select
        used = np.flatnonzero(data.weights)
        data, apart = data.take(used), None if apart is None else apart[used]
    kept_aside = _check_test(test, whole, table, apart)
    splits: dict[int, tuple[Rows, Rows]] = {}
    if kept_aside is None:
        splits, how = _draw(data, task, test_size, stratify, apart, seeds)
        held: tuple[Any, ...] = ()
    else:
        how, held = {"rows": kept_aside.table.rows}, (kept_aside.table, kept_aside.labels)
    settings = {
        "methods": names,
        "k": ks,
        "seeds": seeds,
        "options": own,
        "metric": metric or METRICS[task][0],
        "task": task,
        "rows": data.table.rows,
        "features": whole.features,
        "test": how,
        "split_rows": [[len(train), len(test)] for train, test in splits.values()],
        "table": record_table(about_table | {"sample_weight": weights}),
        "device": picked,
        "seqatt": __version__,
        "data": fingerprint(table, labels, weights, apart, *held),
    }
    recorded = json.loads(json.dumps(plain(settings), default=_name_code))
    return ComparisonSetup(data, kept_aside, splits, own, about_table | {"task": task}, recorded)


def _name_code(value: Any) -> dict[str, str]:
    """Modules and functions cannot be written down; their names can."""
    return {"code": getattr(value, "__qualname__", type(value).__qualname__)}


def _check_groups(split_groups: Any, rows: int) -> NDArray[np.intp] | None:
    if split_groups is None:
        return None
    values = target_array(split_groups, "split_groups")
    if values.shape != (rows,):
        raise ValueError(f"split_groups: must have one value for each of the {rows} rows")
    return np.unique(values.astype(str), return_inverse=True)[1]


def _check_test(test: tuple[Any, Any], whole: TableData, table: InputTable, apart: Any) -> SplitData | None:
    X_test, y_test = test
    if X_test is None and y_test is None:
        return None
    if X_test is None or y_test is None:
        raise ValueError("X_test and y_test: give both or neither")
    if apart is not None:
        raise ValueError("split_groups: nothing is split where X_test and y_test are given; leave it out")
    given, labels = read_input_table(X_test, "X_test"), target_array(y_test, "y_test")
    check_same_columns(table, given, ("X", "X_test"))
    if given.rows != len(labels):
        raise ValueError(f"X_test has {given.rows} rows and y_test has {len(labels)}")
    whole.target.encode(labels, "y_test")
    whole.encode(given, "X_test")
    return SplitData(given, labels)


def _draw(
    data: SplitData, task: str, test_size: Any, stratify: bool | None, apart: Any, seeds: list[int]
) -> tuple[dict[int, tuple[Rows, Rows]], dict[str, Any]]:
    labelled = task in ("binary", "multiclass")
    if stratify and not labelled:
        raise ValueError(f"stratify: needs a target of classes, this one is {task}")
    if stratify and apart is not None:
        raise ValueError("stratify: rows that stay together (split_groups) cannot also be stratified")
    check_test_size(test_size, data.table.rows)
    evenly = labelled and apart is None and stratify is not False
    codes = np.unique(data.labels, return_inverse=True)[1] if labelled else None
    splits = {
        seed: hold_out(data.table.rows, test_size, seed, classes=codes, stratify=evenly, groups=apart)
        for seed in seeds
    }
    return splits, {"size": test_size, "stratified": evenly, "grouped": apart is not None}
