"""The rows of a comparison on a table: checked, and split into training and test rows for every seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.evaluation.held_out_rows import read_test_table
from seqatt.comparison.splits import Rows, check_test_size, hold_out
from seqatt.data.files.file_data import FileData
from seqatt.data.tables.column_roles import read_columns
from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import InputTable, feature_names, read_input_table
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.row_units import RowUnits, read_row_units, with_queries
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.data.tables.target import Target, is_structured, target_array


class RunRows(NamedTuple):
    """Rows as ``select`` and ``evaluate`` take them: a table and arrays, or files and names of columns."""

    X: Any
    y: Any
    sample_weight: Any = None
    groups_of_rows: Any = None
    time: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """Values per row, as options of ``select``."""
        return dict(zip(self._fields[2:], self[2:], strict=True))


class ComparedRows(NamedTuple):
    """The rows of a comparison: all of them, how they are split by seed, and what is recorded about them.

    ``options`` are those about the data, for every ``select`` and ``evaluate``.
    """

    data: TableData | FileData
    split: Callable[[int], tuple[RunRows, RunRows]]
    options: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True)
class SplitRequest:
    """How the user wants rows to be split: the arguments of ``compare``, and the seeds."""

    test: tuple[Any, Any]
    test_size: Any
    stratify: bool | None
    split_groups: Any
    seeds: Sequence[int]


def read_table_rows(X: Any, y: Any, options: dict[str, Any], request: SplitRequest) -> ComparedRows:
    """Check a table, its target and its test rows, and draw the splits."""
    check_same_order(X, request.split_groups, ("X", "split_groups"))
    if isinstance(request.split_groups, str):
        ignore = (*TableOptions(**options).ignore, request.split_groups)
        request = replace(request, split_groups=_named_column(X, request.split_groups))
        options = options | {"ignore": ignore}
    checked = TableOptions(**options)
    given = {"groups_of_rows": checked.groups_of_rows, "time": checked.time}
    roles = read_columns(X, y, checked.sample_weight, checked.ignore, checked.column_types, ("X", "y"), given)
    table, reconstruct = roles.table, checked.task == "reconstruction" and roles.y is None
    labels = None if reconstruct else target_array(roles.y, "y")
    of_columns = {"ignore": (), "column_types": {}, "sample_weight": roles.sample_weight, **roles.of_rows}
    full_data = read_table_data(table, roles.y if is_structured(roles.y) else labels, **options | of_columns)
    weights = None if roles.sample_weight is None else np.asarray(roles.sample_weight, dtype=np.float64)
    group_of = _check_groups(request.split_groups, table.rows)
    units = read_row_units(**with_queries(roles.of_rows, labels, checked.task), rows=table.rows)
    if units is not None and group_of is not None:
        raise ValueError("split_groups: leave it out; groups_of_rows and time also decide about test rows")
    used = np.arange(table.rows)
    if weights is not None and not weights.all():  # as in select, rows of weight 0 are left out
        used = np.flatnonzero(weights)
    test = _check_test(request.test, y, checked, full_data, table, group_of)
    of_rows = (None if v is None else np.asarray(v) for v in roles.of_rows.values())
    rows = _take(RunRows(table, labels, weights, *of_rows), used)
    target = full_data.target
    splits: dict[int, tuple[Rows, Rows]] = {}
    if test is None:
        groups = None if group_of is None else group_of[used]
        splits, test_settings = _draw_splits(rows, target, groups, request, units and units.take(used))
    else:
        test_settings = {"rows": test.X.rows}

    def split(seed: int) -> tuple[RunRows, RunRows]:
        if test is not None:
            return rows, test
        train_rows, test_rows = splits[seed]
        return _take(rows, train_rows), _take(rows, test_rows)

    settings = {
        "rows": rows.X.rows,
        "test": test_settings,
        "split_rows": [[len(train), len(tested)] for train, tested in splits.values()],
        "table": checked.to_settings(),
        "data": fingerprint(table, labels, weights, group_of, *(() if test is None else test[:2])),
    }
    shared = {n: v for n, v in options.items() if n not in of_columns} | {"task": target.task}
    return ComparedRows(full_data, split, shared, settings)


def _named_column(X: Any, name: str) -> Any:
    table = read_input_table(X, "X")
    feature_names(table.names, (), name, None, "split_groups")  # an unknown one is an error
    return table.column(name)


def _take(rows: RunRows, numbers: Rows) -> RunRows:
    """The rows with these numbers, in their original order."""
    mask = np.zeros(rows.X.rows, dtype=bool)
    mask[numbers] = True
    return RunRows(rows.X.select_rows(mask), *(None if part is None else part[mask] for part in rows[1:]))


def _check_groups(split_groups: Any, rows: int) -> NDArray[np.intp] | None:
    """The number of each row's group, (rows,)."""
    if split_groups is None:
        return None
    values = target_array(split_groups, "split_groups")
    if values.shape != (rows,):
        raise ValueError(f"split_groups: must have one value for each of the {rows} rows")
    return np.unique(values.astype(str), return_inverse=True)[1]


def _check_test(
    test: tuple[Any, Any],
    y: Any,
    options: TableOptions,
    full_data: TableData,
    table: InputTable,
    group_of: Any,
) -> RunRows | None:
    """The user's test rows; raise unless they can be encoded like the training rows."""
    X_test, y_test = test
    if X_test is None and y_test is None:
        return None
    y_test = y if y_test is None and isinstance(y, str) else y_test
    if X_test is None or y_test is None:
        raise ValueError("X_test and y_test: pass both or neither")
    if group_of is not None:
        raise ValueError(
            "split_groups: not used with X_test and y_test, because no rows are split; leave it out"
        )
    tested = read_test_table(X_test, y_test, options, table, range(len(table.names)), "X")
    blocks = tested.encode(full_data)  # encodes the target
    next(blocks(), None)  # encodes the table
    return RunRows(tested.table, target_array(tested.y, "y_test"))


def _draw_splits(
    rows: RunRows, target: Target, group_of: Any, request: SplitRequest, units: RowUnits | None
) -> tuple[dict[int, tuple[Rows, Rows]], dict[str, Any]]:
    """Training and test rows per seed, and how they were drawn, for the settings."""
    stratify, test_size = request.stratify, request.test_size
    has_classes = target.classes is not None
    if stratify and not has_classes:
        raise ValueError(
            f"stratify: needs a binary or multiclass target, this one is {target.task}; leave it out"
        )
    if stratify and group_of is not None:
        raise ValueError("stratify: cannot be combined with split_groups; leave one of them out")
    if stratify and units is not None:
        raise ValueError("stratify: cannot be combined with groups_of_rows or time; leave one of them out")
    check_test_size(test_size, rows.X.rows)
    if units is not None:
        share = test_size if test_size < 1 else test_size / rows.X.rows
        drawn = {seed: units.draw(share, np.random.default_rng(seed)) for seed in request.seeds}
        if has_classes:  # a class without training rows cannot be predicted
            drawn = {s: (a, b[np.isin(rows.y[b], rows.y[a])]) for s, (a, b) in drawn.items()}
        return drawn, {"size": test_size, "stratified": False, "grouped": True}
    stratified = has_classes and group_of is None and stratify is not False
    classes = np.unique(rows.y, return_inverse=True)[1] if has_classes else None
    splits = {
        seed: hold_out(rows.X.rows, test_size, seed, classes=classes, stratify=stratified, groups=group_of)
        for seed in request.seeds
    }
    return splits, {"size": test_size, "stratified": stratified, "grouped": group_of is not None}


def fingerprint(*items: Any) -> str:
    """The BLAKE2b hash (128 bits, hexadecimal) of tables and arrays, in order; None is allowed."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        if isinstance(item, InputTable):
            _add_table(digest, item)
        elif item is not None:
            _add_array(digest, np.asarray(item))
        digest.update(b"|")
    return digest.hexdigest()


def _add_table(digest: Any, table: InputTable) -> None:
    digest.update(repr((table.names, table.kinds, table.rows)).encode())
    if table.sparse:
        for array in (table.data.data, table.data.indices, table.data.indptr):
            _add_array(digest, array)
    elif isinstance(table.data, np.ndarray):
        _add_array(digest, table.data)
    else:
        for column, kind in enumerate(table.kinds):
            numeric = kind != "categorical"
            _add_array(digest, table.numbers([column]) if numeric else table.labels(column))


def _add_array(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype.hasobject:
        digest.update(repr(array.tolist()).encode())
    else:
        digest.update(np.ascontiguousarray(array).view(np.uint8))
