"""The columns of files before their rows are read: features with their kinds, targets and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from seqatt.data.files.encoding.column_types import decide_kinds, is_text
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.formats.parquet import is_pandas_index
from seqatt.data.files.options import FileOptions
from seqatt.data.files.whole_files import Skips, estimate_table_bytes, read_whole_table
from seqatt.data.number_texts import (
    distinct_texts,
    examine_texts,
    report_columns,
    rows_per_value,
    to_numbers_or_dates,
)
from seqatt.data.tables.column_roles import split_targets
from seqatt.data.tables.containers import Kind, feature_names
from seqatt.data.tables.options import Categories, TableOptions
from seqatt.options import names_of
from seqatt.validation import show

# Options that the table read from files does not take.
FILE_OPTIONS = {*names_of(FileOptions)} - {*names_of(TableOptions)} | {"ignore"}


class FileColumns(NamedTuple):
    """Files, their features and targets, kinds of the features, and types of all columns to read.

    ``texts`` are text features (not of a dictionary type) whose values decide whether they are numbers.
    """

    files: FileSet
    inputs: list[str]
    targets: list[str]
    kinds: dict[str, Kind]
    types: dict[str, Any]
    texts: tuple[str, ...] = ()

    def table_bytes(self, categories: Categories, max_categories: int) -> int:
        """Estimated bytes of the table that all rows make, while it is encoded."""
        return estimate_table_bytes(
            self.files, self.inputs, self.kinds, self.types, categories, max_categories
        )

    def read_table(self, options: FileOptions, skips: Skips | None = None) -> tuple[Any, Any]:
        """All rows, as X and y of ``select``; see ``read_whole_table``."""
        table = read_whole_table(self.files, list(self.types), self.kinds, options, skips)
        return self.separate(self.decide(table)[1])

    def decide(self, table: Any, rows: float = 0.0) -> tuple[FileColumns, Any]:
        """The columns with the kinds that the values of this table decide, and the table with text as numbers.

        Other text becomes a dictionary, so that it is not examined for numbers again.
        ``rows`` is the number of rows of all files, if the table is a sample of them.
        """
        kinds = find_numbers({name: table[name] for name in self.texts}, self.files, rows or table.num_rows)
        for position, name in enumerate(table.column_names):
            if name in kinds:
                table = table.set_column(position, name, to_numbers_or_dates(table[name])[0])
            elif name in self.inputs and is_text(table[name].type):
                table = table.set_column(position, name, table[name].dictionary_encode())
        return self._replace(kinds=self.kinds | kinds, texts=()), table

    def separate(self, table: Any) -> tuple[Any, Any]:
        """A table of these columns as X and y of ``select``: a single target is the name of a column of X."""
        if len(self.targets) < 2:
            return table, self.targets[0] if self.targets else None
        return table.drop_columns(self.targets), table.select(self.targets)

    def table_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options for the table: without those of files and those of columns that are not read."""
        of_table = {name: value for name, value in options.items() if name not in FILE_OPTIONS}
        kinds = options.get("column_types", {})
        return of_table | {"column_types": {name: kinds[name] for name in kinds if name in self.inputs}}


def open_columns(where: Any, target: Any, options: FileOptions) -> FileColumns:
    """Open files and check what their columns are."""
    files = open_files(where, options=options)
    # The task "reconstruction" predicts all columns.
    targets = [] if target is None and options.task == "reconstruction" else split_target(files, target)
    weight = options.sample_weight
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"sample_weight: must name a column of the files, got {type(weight).__name__}")
    of_rows = _columns_of_rows(files, options)
    # An index may be named, though it is left out anyway.
    ignored = [
        name for name in options.ignore if name in files.types or not (is_pandas_index(name) or not name)
    ]
    not_features = [*ignored, *targets[1:], *of_rows]
    inputs = feature_names(list(files.types), not_features, targets[0] if targets else None, weight, "target")
    kinds = decide_kinds(files.types, inputs, options.column_types)
    if files is not where:  # else they were opened, and reported, before
        report_read_as(files, inputs, options)
    columns = dict.fromkeys([*inputs, *targets, *([weight] if weight else []), *of_rows])
    decided = {*options.column_types, *(name for group in files.row_groups for name, _ in group.read_as)}
    texts = tuple(name for name in inputs if is_text(files.types[name]) and name not in decided)
    return FileColumns(files, inputs, targets, kinds, {name: files.types[name] for name in columns}, texts)


def find_numbers(columns: Mapping[str, Any], files: FileSet, rows: float) -> dict[str, Kind]:
    """The kinds of the text columns that hold numbers, with a warning that names them and those that nearly do.

    ``rows`` is the number of rows of all files; the columns may be a sample of them.
    """
    read = {n: examine_texts(distinct_texts(c), rows_per_value(c, rows)) for n, c in columns.items()}
    if read:
        report_columns(read, str(files.row_groups[0].path))
    return {name: "numeric" for name, each in read.items() if each.numeric}


def report_read_as(files: FileSet, inputs: Sequence[str], options: FileOptions) -> None:
    """Warn about features whose values in text files allow several types, unless ``column_types`` states the type."""
    stated = options.column_types
    for path, groups in groupby(files.row_groups, lambda group: group.path):
        found = {name: read for group in groups for name, read in group.read_as}
        read = {name: found[name] for name in inputs if name in found and name not in stated}
        report_columns(read, str(path))


def _columns_of_rows(files: FileSet, options: FileOptions) -> list[str]:
    """The columns of groups of rows and of times."""
    columns = {"groups_of_rows": options.groups_of_rows, "time": options.time}
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise TypeError(f"{name}: must name a column of the files, got {type(column).__name__}")
        feature_names(list(files.types), (), column, None, name)  # an unknown one is an error
    return [column for column in columns.values() if column is not None]


def split_target(files: FileSet, target: Any) -> list[str]:
    """The columns to predict: one, or several with commas."""
    if not isinstance(target, str):
        shown = show(target) if isinstance(target, int | float) else f"a {type(target).__name__}"
        raise TypeError(
            f"target: must name the column of the files to predict, got {shown}; add it as a column"
        )
    targets = split_targets(target, files.types)
    if len(targets) > 1:
        for name in targets:
            feature_names(list(files.types), (), name, None, "target")  # an unknown one is an error
    return targets
