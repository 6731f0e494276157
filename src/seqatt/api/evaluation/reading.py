"""Input of an evaluation: its options, and the selected columns of the training rows and of the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.evaluation.held_out_rows import RowBlocks, read_test_files, read_test_table
from seqatt.api.lookup import find_positions
from seqatt.api.read_data import EMBEDDED, ONE_HOT, are_files, read_table
from seqatt.api.read_files import make_source, open_rows, read_files
from seqatt.data.files.file_columns import report_read_as, split_target
from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.column_roles import read_columns
from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.options import Categories, TableOptions
from seqatt.data.tables.table_data import TableData
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.options import names_of
from seqatt.selection import Selection
from seqatt.training.defaults import evaluation_learning_rate, evaluation_noise
from seqatt.training.group_factory import StreamSource
from seqatt.training.options import TrainingOptions
from seqatt.validation import check_option_names


class EvaluationData(NamedTuple):
    """Training rows, test rows, and how files are read batch by batch. ``table`` is X_train with all columns."""

    data: TableData | FileData
    test: RowBlocks
    source: StreamSource | None = None
    table: InputTable | None = None

    def find_features(self, indices: Selection | Sequence[int | str] | None) -> NDArray[np.int64]:
        """The features of ``data``, which are all columns of ``table``, at these positions or with these names."""
        assert self.table is not None
        assert isinstance(self.data, TableData)
        return np.argsort(self.data.column_order)[find_columns(self.table, indices)]


def read_options(
    given: dict[str, Any], about_data: dict[str, Any], *, files: bool
) -> tuple[dict[str, Any], TableOptions]:
    """The given options of training, and all options of the data, checked before any work."""
    data_class = FileOptions if files else TableOptions
    of_training = names_of(TrainingOptions)
    of_data = [name for name in names_of(data_class) if name != "groups"]
    check_option_names("evaluate", given, of_training, of_data)
    training = {name: value for name, value in given.items() if name in of_training}
    TrainingOptions(**training)
    others = {name: value for name, value in given.items() if name not in of_training}
    return training, data_class(**about_data | others)


def resolve_options(data: TableData | FileData, given: dict[str, Any]) -> TrainingOptions:
    """The given options, and defaults that follow the data and differ from those of ``select``."""
    noise = evaluation_noise(data.rows)
    defaults = {"learning_rate": evaluation_learning_rate(data.rows), "input_dropout": noise}
    # Not with two classes: smoothed labels would spoil the probabilities that log loss measures.
    if data.target.task == "multiclass" and given.get("loss") is None:
        defaults["label_smoothing"] = noise
    options = TrainingOptions(
        **defaults | {name: value for name, value in given.items() if value is not None}
    )
    if options.label_smoothing and not data.target.loss.smoothed:
        raise ValueError("label_smoothing: is for classes, and the target is numeric; leave it at 0")
    return options


def read_tables(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    indices: Any,
    options: TableOptions,
    categories: Categories,
    *,
    by_name: bool = True,
) -> EvaluationData:
    """The selected columns of the training rows and of the test rows; ``by_name`` as in ``read_table_data``."""
    arguments = "X_train", "y_train"
    roles = read_columns(
        X_train,
        y_train,
        options.sample_weight,
        options.ignore,
        options.column_types,
        arguments,
        {"groups_of_rows": options.groups_of_rows, "time": options.time},
    )
    y_test = y_train if y_test is None and isinstance(y_train, str) else y_test
    columns = sorted(find_columns(roles.table, indices))  # the order of selection must not matter
    test = read_test_table(X_test, y_test, options, roles.table, columns, "X_train")
    train_table = roles.table.select(columns)
    names = set(train_table.names)
    options = replace(
        options,
        sample_weight=roles.sample_weight,
        groups_of_rows=None,
        time=None,
        ignore=(),
        column_types={},
        log1p=only_columns(options.log1p, names),
    )
    data = read_table(train_table, roles.y, options, categories, by_name=by_name, arguments=arguments)
    return EvaluationData(data, test.encode(data), table=roles.table)


def find_columns(table: InputTable, indices: Selection | Sequence[int | str] | None) -> list[int]:
    """The positions of the selected columns: all of them if ``indices`` is None."""
    if indices is None:
        return list(range(len(table.names)))
    columns = find_positions(
        indices,
        table.names,
        named=table.named,
        kind="column",
        argument="indices",
        table="X_train",
        given_names=[table.given_names.get(name, name) for name in table.names],
    )
    if not columns:
        raise ValueError(
            "indices: at least one feature is needed, got no features; select with a number as k"
        )
    return columns


def read_evaluation_files(
    X_train: Any,
    target: Any,
    X_test: Any,
    y_test: Any,
    indices: Any,
    options: FileOptions,
    categories: Categories,
    *,
    by_name: bool = True,
) -> EvaluationData:
    """The selected columns of the training files, as a table if that fits in memory, and those of the test files."""
    if options.task == "reconstruction":
        raise ValueError("task: 'reconstruction' is evaluated on tables; read the files into one")
    if not are_files(X_test):
        raise TypeError("X_test: must be files, as X_train is")
    if y_test is not None and not (isinstance(y_test, str) and y_test == target):
        raise TypeError("y_test: is not for files; y_train names the column of both")
    X_train, X_test = (open_rows(X, target, options) for X in (X_train, X_test))
    files = open_files(X_train, "X_train", options)
    targets = split_target(files, target)
    options = ignore_unselected(files, targets, indices, options)
    if files is not X_train:  # else they were opened, and reported, before
        report_read_as(files, [name for name in files.types if name not in options.ignore], options)
    encoding = ONE_HOT if categories == "one_hot" else EMBEDDED
    reading = read_files(
        files, target, options, categories, encoding=encoding, ranks=SINGLE_PROCESS, by_name=by_name
    )
    test_files = open_files(X_test, "X_test", options, like=files)
    data, source = reading.data, None
    if isinstance(data, FileData):
        data, source = make_source(data, options, SINGLE_PROCESS, hold_out=False)
    return EvaluationData(data, read_test_files(data, test_files, targets, files, options), source)


def ignore_unselected(files: FileSet, targets: list[str], features: Any, options: FileOptions) -> FileOptions:
    """The options, with all unselected features in ``ignore`` and absent from the other options."""
    if features is None:
        return options
    roles = (options.sample_weight, options.groups_of_rows, options.time)
    no_features = (*targets, *roles, *options.ignore)
    names = [name for name in files.types if name not in no_features]
    positions = find_positions(
        features, names, named=True, kind="column", argument="indices", table="the training files"
    )
    if not positions:
        raise ValueError("indices: at least one feature is needed")
    selected = {names[position] for position in positions}
    unselected = [name for name in names if name not in selected]
    column_types = {name: kind for name, kind in options.column_types.items() if name not in unselected}
    return replace(
        options,
        ignore=(*options.ignore, *unselected),
        log1p=only_columns(options.log1p, selected),
        column_types=column_types,
    )


def only_columns(log1p: bool | tuple[str, ...], names: set[str]) -> bool | tuple[str, ...]:
    """The option ``log1p`` without columns that are not in ``names``."""
    return log1p if isinstance(log1p, bool) else tuple(name for name in log1p if name in names)
