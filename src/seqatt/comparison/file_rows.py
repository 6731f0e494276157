"""The rows of a comparison on files: as a table if that fits in memory, else every run reads them batch by batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seqatt.api.read_data import MAX_COUNTED
from seqatt.api.read_files import memory_budget, open_rows
from seqatt.comparison.splits import check_test_size
from seqatt.comparison.table_rows import ComparedRows, RunRows, SplitRequest, fingerprint, read_table_rows
from seqatt.data.files.file_columns import FileColumns, open_columns
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.options import FileOptions
from seqatt.data.files.whole_files import read_whole_table
from seqatt.data.tables.options import TableOptions

REMEDY = "raise memory, so that the files are read into a table"


def read_file_rows(X: Any, target: Any, options: dict[str, Any], request: SplitRequest) -> ComparedRows:
    """Files that fit in memory as the table they make; larger ones as files."""
    if isinstance(request.split_groups, str):  # no feature
        options = options | {"ignore": (*FileOptions(**options).ignore, request.split_groups)}
    checked = FileOptions(**options)
    columns = open_columns(open_rows(X, target, checked), target, checked)
    test = _open_test(columns, request.test, checked)
    # One-hot, as the methods without a network encode it: the largest of the tables that the methods need.
    if columns.table_bytes("one_hot", checked.max_categories) <= memory_budget(checked, ranks=1):
        return _as_table(columns, test, options, request)
    return _as_files(columns, test, options, request)


def _open_test(columns: FileColumns, test: tuple[Any, Any], options: FileOptions) -> FileSet | None:
    X_test, y_test = test
    if y_test is not None:
        raise TypeError("y_test: is not for files; y names the column to predict in X and in X_test")
    if X_test is None:
        return None
    X_test = open_rows(X_test, ",".join(columns.targets), options)
    files = open_files(X_test, "X_test", options, like=columns.files)
    for name in [*columns.inputs, *columns.targets]:
        if name not in files.types:
            raise ValueError(f"X_test: column {name!r} is missing, which the files of X have")
    return files


def _as_table(
    columns: FileColumns, test: FileSet | None, options: dict[str, Any], request: SplitRequest
) -> ComparedRows:
    group_names = [request.split_groups] if isinstance(request.split_groups, str) else []

    checked = FileOptions(**options)

    def read(files: FileSet, names: list[str]) -> Any:
        return read_whole_table(files, names, columns.kinds, checked)

    columns, table = columns.decide(read(columns.files, [*columns.types, *group_names]))
    X, y = columns.separate(table)
    test_rows = (None, None)
    if test is not None:
        test_rows = columns.separate(read(test, [*columns.inputs, *columns.targets]))
    of_table = columns.table_options(options)
    rows = read_table_rows(X, y, of_table, replace(request, test=test_rows))
    given = of_table | {name: options[name] for name in ("ignore", "column_types") if name in options}
    return rows._replace(settings=rows.settings | {"table": TableOptions(**given).to_settings()})


def _as_files(
    columns: FileColumns, test: FileSet | None, options: dict[str, Any], request: SplitRequest
) -> ComparedRows:
    """Test rows are at equal distances in each row group; the seed decides where they start."""
    files, (target, *others) = columns.files, columns.targets
    if others:
        raise ValueError(f"y: files that do not fit in memory have one target; name one, or {REMEDY}")
    for name, given in {
        "stratify": request.stratify,
        "split_groups": request.split_groups is not None,
    }.items():
        if given:
            raise ValueError(f"{name}: is not for files that do not fit in memory; leave it out, or {REMEDY}")
    checked = FileOptions(**options)
    data = read_file_data(files, target, checked, MAX_COUNTED)
    weight = checked.sample_weight
    step = 0
    if test is None:
        check_test_size(request.test_size, data.rows)
        share = request.test_size if request.test_size < 1 else request.test_size / data.rows
        step = round(1 / share)
        if step < 2:
            raise ValueError(
                f"test_size: at most half of the rows of files that do not fit in memory, or {REMEDY}"
            )

    def split(seed: int) -> tuple[RunRows, RunRows]:
        train, tested = (files, test) if test is not None else files.split(step, seed % step)
        return RunRows(train, target, weight), RunRows(tested, None)

    splits = [] if test is not None else [split(seed) for seed in request.seeds]
    settings = {
        "rows": data.rows,
        "test": {"size": 1 / step, "stratified": False, "grouped": False}
        if test is None
        else {"rows": test.rows},
        "split_rows": [_count_rows(both, data.rows, step) for both in splits],
        "table": {name: value for name, value in checked.to_settings().items() if name != "memory"},
        "data": fingerprint(target, _describe(files), None if test is None else _describe(test)),
    }
    of_rows = RunRows._fields[2:]
    shared = {name: value for name, value in options.items() if name not in of_rows}
    return ComparedRows(data, split, shared | {"task": data.target.task}, settings)


def _count_rows(split: tuple[RunRows, RunRows], rows: int, step: int) -> list[int]:
    """Rows to train on and to test on; those of text files, which do not store their number, are estimates."""
    expected = rows - rows // step, rows // step
    return [part.X.rows or count for part, count in zip(split, expected, strict=True)]


def _describe(files: FileSet) -> str:
    """Names, sizes and modification times, by which changed files are noticed."""
    return str([(str(g.path), g.group, g.rows, g.size, g.stamp) for g in files.row_groups])
