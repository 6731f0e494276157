"""The target and the columns of a table, as numbers or binned, for methods that train no network.

A variable is one input column of the table, however many columns it has after encoding: a category has one code per
level, and a number with a missing-value indicator has a code of its own for missing values. A feature is one variable,
or those of a declared group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import SparseColumns, TableData

Codes = NDArray[np.intp]
BLOCK_COLUMNS = 64  # columns transposed at a time: single columns of a table stored by rows are slow to read


def refuse_row_weights(data: TableData, method: str) -> None:
    """Raise if rows have weights, which the method's library cannot use."""
    if data.weights is not None:
        raise ValueError(
            f"sample_weight, class_weight: {method} cannot use row weights; leave them out, "
            "or use cmim, forest or boosting, which can"
        )


def varying_outputs(data: TableData) -> list[NDArray[Any]]:
    """One array per output of the target that is not constant: class numbers, or standardised numbers."""
    values = data.target.as_numbers().reshape(data.rows, -1)
    values = values.astype(np.float64 if data.target.loss.numeric else np.int64)
    varying = [column for column in values.T if (column != column[0]).any()]
    if not varying:
        raise ValueError(
            "y: no label varies in these rows; at least two different values of a label are needed"
        )
    return varying


def column_blocks(data: TableData) -> Iterator[NDArray[Any]]:
    """The columns, transposed (at most ``BLOCK_COLUMNS``, n) per block; a large sparse table is not standardised."""
    columns = data.columns
    matrix = columns.data.tocsc() if isinstance(columns, SparseColumns) else columns
    for start in range(0, columns.shape[1], BLOCK_COLUMNS):
        block = matrix[:, start : start + BLOCK_COLUMNS]
        yield np.ascontiguousarray((block if isinstance(block, np.ndarray) else block.toarray()).T)


def features_of_variables(data: TableData) -> NDArray[np.int64]:
    """The feature of every variable."""
    first = np.r_[True, np.diff(data.encoder.input_of) > 0]
    return data.feature_of[first]


def code_variables(data: TableData, bins: int) -> Iterator[Codes]:
    """The codes (n,) of every variable; numbers are binned."""
    input_of = data.encoder.input_of
    codes: Codes | None = None
    for c, column in enumerate(chain.from_iterable(column_blocks(data))):
        if input_of[c] in data.encoder.levels:
            # After standardisation, a one-hot column is above zero where it was 1.
            level = 1 + c - int(np.searchsorted(input_of, input_of[c]))
            one_hot = np.where(column > 0, level, 0)
            codes = one_hot if codes is None else codes + one_hot
        else:
            binned = bin_values(column, bins, data.weights)
            codes = binned if codes is None else join_codes(codes, binned)
        if c + 1 == len(input_of) or input_of[c + 1] != input_of[c]:
            yield codes
            codes = None


def bin_values(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> Codes:
    """The bin of each value, in bins of equal frequency; up to ``bins`` distinct values get a bin each.

    A value belongs to the bin of the middle of its share of the rows. A frequent value, such as the zeros of counts
    or pixels, thus has a bin of its own, even if it is the smallest or the largest.
    """
    return np.searchsorted(bin_edges(values, bins, weights), values, side="right")


def bin_edges(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> NDArray[Any]:
    """The smallest value of every bin but the first."""
    ordered = np.sort(values)
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    distinct = ordered[first]
    edges = distinct[1:]
    if len(distinct) > bins:
        if weights is None:
            share = np.diff(np.r_[first, len(values)]).astype(np.float64)
        else:
            share = np.bincount(np.searchsorted(distinct, values), weights)
        middle = np.cumsum(share) - share / 2
        bin_of = np.floor(bins * middle / share.sum())
        edges = edges[np.diff(bin_of) > 0]
    return edges


def join_codes(first: Codes, second: Codes) -> Codes:
    """One code per pair of codes that occurs."""
    pairs = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1]
    return np.asarray(pairs, dtype=np.intp).reshape(-1)
