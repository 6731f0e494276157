"""What a method without a network sees of a data.

A variable is one input of the table, whatever columns the encoder made of it: a category has one code, and a
number that is marked where it is missing a code more. A feature is a variable, or those of a declared group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.binning import Codes, bin_values, join
from seqatt.data.tables.table_data import SparseColumns, TableData

BLOCK = 64  # columns turned at a time: a column of a table laid out by rows is slow to walk alone


def varying_outputs(data: TableData) -> list[NDArray[Any]]:
    """The target, an array for each output that is not constant: class numbers, or standardised numbers."""
    values = data.target.values.reshape(data.rows, -1)
    values = values.astype(np.float64 if data.target.task == "regression" else np.int64)
    varying = [column for column in values.T if (column != column[0]).any()]
    if not varying:
        raise ValueError("y: no label varies in the rows there are; there is nothing to tell apart")
    return varying


def each_block(data: TableData) -> Iterator[NDArray[Any]]:
    """Some columns at a time, a column a row; those of a large sparse table are not standardised."""
    columns = data.columns
    matrix = columns.data.tocsc() if isinstance(columns, SparseColumns) else columns
    for start in range(0, columns.shape[1], BLOCK):
        some = matrix[:, start : start + BLOCK]
        yield np.ascontiguousarray((some if isinstance(some, np.ndarray) else some.toarray()).T)


def inputs(data: TableData) -> NDArray[np.int64]:
    """The feature of every variable."""
    first = np.r_[True, np.diff(data.encoder.input_of) > 0]
    return data.feature_of[first]


def code_variables(data: TableData, bins: int) -> Iterator[Codes]:
    """The codes of every variable, numbers binned."""
    positions = data.encoder.input_of
    made: Codes | None = None
    for c, column in enumerate(chain.from_iterable(each_block(data))):
        if positions[c] in data.encoder.levels:
            # Standardised, the one column of a category that was hot is above zero.
            level = 1 + c - int(np.searchsorted(positions, positions[c]))
            hot = np.where(column > 0, level, 0)
            made = hot if made is None else made + hot
        else:
            codes = bin_values(column, bins, data.weights)
            made = codes if made is None else join(made, codes)
        if c + 1 == len(positions) or positions[c + 1] != positions[c]:
            yield made
            made = None
