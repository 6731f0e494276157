"""Encodes categories: one-hot columns, or one integer code per row for an embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from seqatt.data.tables.arrow_columns import CategoricalValues

ONE_HOT_VALUES = 16  # values up to which "mixed" categories are one-hot; missing counts as one
MIN_CATEGORY_ROWS = 10  # rows from which a value has a code of its own
MIN_LEVEL_ROWS, ROWS_PER_LEVEL_ROW = 2, 200  # in a one-hot column: two rows, one more per 200 rows beyond 400

Floats = NDArray[np.float64]
Values = list[str | None]  # None is missing


@dataclass(frozen=True)
class FittedCategory:
    """The encoding of one categorical column.

    If ``coded``, ``values`` have the codes 1, 2, ... and any other value the code 0. Otherwise each value has a one-hot
    column, from which ``shift`` is subtracted before it is divided by ``scale``, and any other value is a row of zeros.
    If ``constant``, because all values are the same or all are rare, the one column is zero for every value.
    """

    values: Values
    coded: bool
    constant: bool
    shift: Floats
    scale: float
    distinct: int  # number of distinct values in the training rows

    def one_hot_rows(self) -> NDArray[np.float32]:
        """The encoded row of each value, and of any other value at the end (values + 1, values)."""
        if self.constant:
            return np.zeros((len(self.values) + 1, len(self.values)), dtype=np.float32)
        rows = np.eye(len(self.values) + 1, len(self.values))
        return ((rows - self.shift) / self.scale).astype(np.float32)


def min_level_rows(rows: int) -> int:
    """The rows from which a value has a one-hot column of its own: 2 to ``MIN_CATEGORY_ROWS``, by the table's rows.

    A value of a single row tells nothing about other rows, and a network memorises its target. In a small table a few
    rows are a fair share of them.
    """
    return min(MIN_CATEGORY_ROWS, max(MIN_LEVEL_ROWS, rows // ROWS_PER_LEVEL_ROW))


def fit_category(
    category: CategoricalValues, weights: Floats | None, one_hot_values: int, max_categories: int
) -> FittedCategory:
    """Fit codes if there are more than ``one_hot_values`` frequent values, else up to ``max_categories`` columns.

    Values in fewer than ``min_level_rows`` rows have no column.
    """
    ranked, counts = rank_values(category)
    frequent = int(np.count_nonzero(counts >= MIN_CATEGORY_ROWS))
    if frequent > one_hot_values:
        return FittedCategory(ranked[:frequent], True, False, np.zeros(0), 1.0, len(ranked))
    repeated = int(np.count_nonzero(counts >= min_level_rows(len(category.positions))))
    # One column distinguishes two categories. Where every value is rare, the column of the first is all zeros.
    levels = ranked[1:] if len(ranked) == 2 else ranked[: max(1, min(repeated, max_categories))]
    shift = _level_shares(find_values(category, levels), len(levels), weights)
    variance = float(np.sum(shift * (1 - shift))) if repeated or len(ranked) == 2 else 0.0
    scale = np.sqrt(variance) if variance > 0 else 1.0
    return FittedCategory(levels, False, variance <= 0, shift, scale, len(ranked))


def rank_values(category: CategoricalValues) -> tuple[Values, NDArray[np.int64]]:
    """The values that occur, from the most frequent on, and their numbers of rows.

    Missing is a value too, and the last of those with the same number of rows; the others are sorted by their text.
    """
    from pyarrow.compute import array_sort_indices

    texts, positions = category
    counts = np.bincount(positions + 1, minlength=len(texts) + 1)
    counts = np.append(counts[1:], counts[0])  # missing at the end
    text_rank = np.full(len(counts), len(texts))
    text_rank[array_sort_indices(texts).to_numpy()] = np.arange(len(texts))
    order = np.lexsort((text_rank, -counts))[: np.count_nonzero(counts)]
    known = order[order < len(texts)]
    values: Values = texts.take(known).to_pylist()
    if len(known) < len(order):
        values.insert(int(np.flatnonzero(order == len(texts))[0]), None)
    return values, counts[order]


def find_values(category: CategoricalValues, values: Values) -> NDArray[np.int32]:
    """The position (rows,) in ``values`` of each row's value, -1 for any other value."""
    import pyarrow as pa
    from pyarrow.compute import index_in

    texts, positions = category
    found = np.full(len(texts) + 1, -1, dtype=np.int32)  # the last is missing
    # ``values`` may hold None, but ``texts`` do not: a missing value is found by its position -1.
    at = index_in(texts, value_set=pa.array(values, texts.type)).fill_null(-1)
    found[:-1] = at.to_numpy(zero_copy_only=False)
    found[-1] = values.index(None) if None in values else -1
    return found[positions]


def _level_shares(positions: NDArray[np.int32], levels: int, weights: Floats | None) -> Floats:
    """The weighted share of the rows of each level, the means of the one-hot columns."""
    if weights is None:
        return np.bincount(positions + 1, minlength=levels + 1)[1:] / len(positions)
    if levels == 1:  # as NumPy sums a single column: in pairs, not row by row
        return np.asarray(np.where(positions == 0, weights, 0.0).sum(keepdims=True) / weights.sum())
    return np.asarray(np.bincount(positions + 1, weights, levels + 1)[1:] / weights.sum())
