"""Test rows of an evaluation: encoded in blocks, and predicted by trained networks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from seqatt.column_names import plain_name
from seqatt.data.files.encoding.column_types import compatible, decide_kinds, describe_type
from seqatt.data.files.errors import SkippedData, UnreadableFile
from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import FileSet, read_row_group
from seqatt.data.files.options import FileOptions
from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch
from seqatt.data.tables.column_roles import read_columns, split_targets
from seqatt.data.tables.consistency import check_same_columns, numeric_contents
from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.encoding import EncodedTable, SparseColumns
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.table_data import TableData
from seqatt.training.trial_group import TrialGroup

PREDICTED_ROWS = 8192  # test rows per forward pass, which bounds memory
NO_TEST_ROWS = "X_test: no row of any file could be read"


class RowBlock(NamedTuple):
    """Some encoded test rows: columns (n, c), codes (n, m) and targets."""

    columns: NDArray[np.float32]
    codes: NDArray[np.int32]
    targets: NDArray[Any]


RowBlocks = Callable[[], Iterator[RowBlock]]


@dataclass(frozen=True)
class EvaluationTable:
    """A table of test rows and its target, not yet encoded."""

    table: InputTable
    y: Any

    def encode(self, data: TableData) -> RowBlocks:
        """The rows, encoded as those of ``data``, which has the same columns."""
        reconstruct = data.target.task == "reconstruction"
        targets = np.empty(self.table.rows) if reconstruct else data.target.encode(self.y, "y_test")
        if len(targets) != self.table.rows:
            raise ValueError(
                f"X_test has {self.table.rows} rows and y_test has {len(targets)}: "
                "they must have the same length"
            )
        encoded: list[EncodedTable] = []

        def blocks() -> Iterator[RowBlock]:
            if not encoded:  # several sets of features are evaluated on the same rows
                encoded.append(data.encoder.encode(self.table.select(data.column_order), "X_test"))
            columns, codes = encoded[0]
            for start in range(0, self.table.rows, PREDICTED_ROWS):
                rows = np.arange(start, min(start + PREDICTED_ROWS, self.table.rows))
                dense = columns.to_dense(rows) if isinstance(columns, SparseColumns) else columns[rows]
                yield RowBlock(dense, codes[rows], dense if reconstruct else targets[rows])

        return blocks


def read_test_table(
    X: Any, y: Any, options: TableOptions, train: InputTable, columns: Sequence[int], argument: str
) -> EvaluationTable:
    """The test rows, with the columns that are at the positions ``columns`` of the training rows.

    Columns of a data frame are found by name; it may have others, in any order. An array has all columns of the
    training rows, whose argument is ``argument``.
    """
    names = getattr(X, "column_names", getattr(X, "columns", ()))
    given = {str(plain_name(name)) for name in names}
    by_name = bool(given) and train.named
    expected, ignored = train, set[str]()
    if by_name:
        expected = train.select_rows(np.zeros(train.rows, dtype=bool)).select(columns)
        targets = split_targets(y, given) if isinstance(y, str) else []
        missing = [name for name in expected.names if name not in given or name in targets]
        if missing:
            raise ValueError(f"X_test: column {missing[0]!r} is missing; the training rows have it")
        ignored = given.difference(expected.names, targets)
    column_types = {n: kind for n, kind in options.column_types.items() if n in expected.names}
    contents = numeric_contents(expected)
    roles = read_columns(X, y, None, sorted(ignored), column_types, ("X_test", "y_test"), contents=contents)
    table = roles.table
    if by_name and table.names != expected.names:
        position_of = {name: position for position, name in enumerate(table.names)}
        table = table.select([position_of[name] for name in expected.names])
    check_same_columns(expected, table, (argument, "X_test"))
    return EvaluationTable(table if by_name else table.select(columns), roles.y)


def read_test_files(
    data: TableData | FileData, files: FileSet, targets: list[str], train: FileSet, options: FileOptions
) -> RowBlocks:
    """Files of test rows, encoded as the training rows, block by block."""
    names = [*data.input_names, *targets]
    types = {name: train.types[name] for name in names}
    for name, kind in types.items():
        if name not in files.types:
            raise ValueError(f"X_test: column {name!r} is missing, which the training files have")
        if not compatible(files.types[name], kind):
            raise ValueError(
                f"X_test: column {name!r} holds {describe_type(files.types[name])}, but {describe_type(kind)} in "
                "the training files"
            )
    column_types = {n: kind for n, kind in options.column_types.items() if n in data.input_names}
    kinds = decide_kinds(types, list(data.input_names), column_types)
    if isinstance(data, FileData):
        kinds |= data.kinds
        unweighted = replace(data, types=types, target_column=replace(data.target_column, weight=None))

    def encode(batch: Any) -> RowBlock:
        if isinstance(data, FileData):
            rows = unweighted.encode(batch)
            return RowBlock(rows.numbers, rows.codes, _original(data, rows.target))
        table = pa.Table.from_batches([batch])
        y = table.select(targets) if len(targets) > 1 else table[targets[0]]
        inputs = table.select(list(data.input_names))
        roles = read_columns(inputs, y, None, (), column_types, ("X_test", "y_test"), contents={})
        encoded = data.encoder.encode(roles.table.select(data.column_order), "X_test")
        assert not isinstance(encoded.columns, SparseColumns)
        return RowBlock(encoded.columns, encoded.codes, data.target.encode(roles.y, "y_test"))

    def blocks() -> Iterator[RowBlock]:
        for row_group in files.row_groups:
            try:
                for batch, _ in read_row_group(row_group, types, kinds):
                    try:
                        yield encode(batch)
                    except ValueError as error:
                        raise ValueError(f"{row_group.path}: {error}") from None
            except ValueError as error:
                if not options.skips_bad_files:
                    raise
                warnings.warn(f"{error}; the rest of it was skipped", SkippedData, stacklevel=2)

    return lambda: prefetch(blocks(), PREFETCHED_BLOCKS)


def _original(data: FileData, targets: NDArray[Any]) -> NDArray[Any]:
    """Targets as a table has them: numbers in their own units, one column unless they are class numbers."""
    target = data.target
    if target.classes is None:
        assert target.scale is not None
        assert target.shift is not None
        targets = targets * target.scale + target.shift
    return targets if target.task == "multiclass" else targets[:, None]


@torch.no_grad()
def predict(
    groups: Sequence[TrialGroup], test: RowBlocks, device: torch.device
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Outputs (seeds, rows, outputs) and targets of all test rows; nothing else is kept of a row."""
    outputs, targets = [], []
    for block in test():
        for start in range(0, len(block.columns), PREDICTED_ROWS):
            rows = slice(start, start + PREDICTED_ROWS)
            x, codes = (torch.from_numpy(part[rows]).to(device) for part in (block.columns, block.codes))
            predicted = [group.trainers[0].predict(x, codes if codes.shape[1] else None) for group in groups]
            outputs.append(torch.cat(predicted).double().cpu().numpy())
        targets.append(block.targets)
    if not targets:
        raise UnreadableFile(NO_TEST_ROWS)
    return np.concatenate(outputs, axis=1), np.concatenate(targets)
