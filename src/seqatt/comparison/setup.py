"""The setup of a comparison: arguments checked, defaults resolved and rows split, before any run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.comparison.arguments import (
    check_distinct_seeds,
    check_ks,
    check_methods,
    check_options,
    default_methods,
)
from seqatt.comparison.fingerprint import fingerprint
from seqatt.comparison.splits import Rows, check_test_size, hold_out
from seqatt.comparison.statistics import METRICS
from seqatt.data.tables.containers import InputTable, check_same_columns, read_input_table
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.data.tables.target import target_array
from seqatt.options import to_json
from seqatt.training.backend.device import resolve_device
from seqatt.validation import choice
from seqatt.version import __version__


@dataclass(frozen=True)
class SplitData:
    """A table, its target and its sample weights, or some rows of them."""

    table: InputTable
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None = None

    def take(self, rows: Rows) -> SplitData:
        """These rows, in their original order."""
        mask = np.zeros(self.table.rows, dtype=bool)
        mask[rows] = True
        weights = None if self.weights is None else self.weights[mask]
        return SplitData(self.table.select_rows(mask), self.labels[mask], weights)


@dataclass(frozen=True)
class ComparisonSetup:
    """The data, the splits and the settings of a comparison.

    ``test`` are test rows supplied by the user; ``splits`` maps each seed to training and test rows if there
    are none. ``options`` are those of each method, ``table_options`` those of all methods, and ``settings``
    is saved with the results.
    """

    data: SplitData
    test: SplitData | None
    splits: dict[int, tuple[Rows, Rows]]
    options: dict[str, dict[str, Any]]
    table_options: dict[str, Any]
    settings: dict[str, Any]

    def rows(self, seed: int) -> tuple[SplitData, SplitData]:
        """Training and test data of a seed."""
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
    table_options: dict[str, Any],
) -> ComparisonSetup:
    """Check all arguments of ``compare``; invalid ones raise here, before any run."""
    requested = None if methods is None else check_methods(methods)
    seeds = check_distinct_seeds(seeds)
    device = str(resolve_device(device))
    table, labels = read_input_table(X, "X"), target_array(y, "y")
    full_data = read_table_data(table, labels, **table_options)
    names = default_methods(full_data) if requested is None else requested
    checked_options = check_options(options, names)
    ks = check_ks(k, full_data.features)
    task = full_data.target.task
    choice(list(METRICS[task]))("metric", metric or METRICS[task][0])
    weights = table_options.pop("sample_weight", None)
    data = SplitData(table, labels, None if weights is None else np.asarray(weights, dtype=np.float64))
    group_of = _check_groups(split_groups, table.rows)
    if data.weights is not None and not data.weights.all():  # as in select, rows of weight 0 are left out
        used = np.flatnonzero(data.weights)
        data, group_of = data.take(used), None if group_of is None else group_of[used]
    test_data = _check_test(test, full_data, table, group_of)
    splits: dict[int, tuple[Rows, Rows]] = {}
    test_arrays: tuple[Any, ...] = ()
    if test_data is None:
        splits, test_settings = _draw_splits(data, task, test_size, stratify, group_of, seeds)
    else:
        test_settings = {"rows": test_data.table.rows}
        test_arrays = (test_data.table, test_data.labels)
    settings = {
        "methods": names,
        "k": ks,
        "seeds": seeds,
        "options": checked_options,
        "metric": metric or METRICS[task][0],
        "task": task,
        "rows": data.table.rows,
        "features": full_data.features,
        "test": test_settings,
        "split_rows": [[len(train), len(test)] for train, test in splits.values()],
        "table": TableOptions(**table_options | {"sample_weight": weights}).to_settings(),
        "device": device,
        "seqatt": __version__,
        "data": fingerprint(table, labels, weights, group_of, *test_arrays),
    }
    recorded = json.loads(json.dumps(to_json(settings), default=_describe_code))
    return ComparisonSetup(data, test_data, splits, checked_options, table_options | {"task": task}, recorded)


def _describe_code(value: Any) -> dict[str, str]:
    """The name of a module or function, which JSON cannot represent."""
    return {"code": getattr(value, "__qualname__", type(value).__qualname__)}


def _check_groups(split_groups: Any, rows: int) -> NDArray[np.intp] | None:
    """The number of each row's group, (rows,)."""
    if split_groups is None:
        return None
    values = target_array(split_groups, "split_groups")
    if values.shape != (rows,):
        raise ValueError(f"split_groups: must have one value for each of the {rows} rows")
    return np.unique(values.astype(str), return_inverse=True)[1]


def _check_test(
    test: tuple[Any, Any], full_data: TableData, table: InputTable, group_of: Any
) -> SplitData | None:
    """The user's test rows; raise unless they can be encoded like the training rows."""
    X_test, y_test = test
    if X_test is None and y_test is None:
        return None
    if X_test is None or y_test is None:
        raise ValueError("X_test and y_test: pass both or neither")
    if group_of is not None:
        raise ValueError(
            "split_groups: not used with X_test and y_test, because no rows are split; leave it out"
        )
    test_table, labels = read_input_table(X_test, "X_test"), target_array(y_test, "y_test")
    check_same_columns(table, test_table, ("X", "X_test"))
    if test_table.rows != len(labels):
        raise ValueError(
            f"X_test has {test_table.rows} rows and y_test has {len(labels)}: they must have the same length"
        )
    full_data.target.encode(labels, "y_test")
    full_data.encode(test_table, "X_test")
    return SplitData(test_table, labels)


def _draw_splits(
    data: SplitData, task: str, test_size: Any, stratify: bool | None, group_of: Any, seeds: list[int]
) -> tuple[dict[int, tuple[Rows, Rows]], dict[str, Any]]:
    """Training and test rows per seed, and how they were drawn, for the settings."""
    has_classes = task in ("binary", "multiclass")
    if stratify and not has_classes:
        raise ValueError(f"stratify: needs a binary or multiclass target, this one is {task}; leave it out")
    if stratify and group_of is not None:
        raise ValueError("stratify: cannot be combined with split_groups; leave one of them out")
    check_test_size(test_size, data.table.rows)
    stratified = has_classes and group_of is None and stratify is not False
    classes = np.unique(data.labels, return_inverse=True)[1] if has_classes else None
    splits = {
        seed: hold_out(
            data.table.rows, test_size, seed, classes=classes, stratify=stratified, groups=group_of
        )
        for seed in seeds
    }
    return splits, {"size": test_size, "stratified": stratified, "grouped": group_of is not None}
