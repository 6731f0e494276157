"""Other scales of encoded columns than mean 0 and variance 1: the range from 0 to 1, or the numbers as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.encoding import SparseColumns
from seqatt.data.tables.numbers.moments import Floats, map_chunks
from seqatt.data.tables.table_data import TableData


def scale_table(data: TableData, scaling: str) -> TableData:
    """The table with columns in the range from 0 to 1 ("min-max") or with the numbers as they are ("none").

    Either way one-hot columns and missing-value indicators are 0 or 1. A missing number is the mean of its column, as
    before, and so inside the range. Constant columns are 0 under "min-max". Rows of weight zero are not in the table,
    so they do not widen a range. With "standard" it is the table itself.
    """
    if scaling == "standard":
        return data
    columns = data.columns
    if isinstance(columns, SparseColumns):
        return replace(data, columns=_scale_sparse(columns, scaling))
    low, span = _ranges(columns)
    if scaling == "none":
        number = data.encoder.is_number
        low[number] = -data.encoder.shift / data.encoder.scale
        span[number] = 1 / data.encoder.scale
    return replace(data, columns=_subtract_and_divide(columns, low, span))


def _ranges(columns: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """The minimum of each column and its maximum minus the minimum, 1 if that is zero."""
    low, high = np.full(columns.shape[1], np.inf), np.full(columns.shape[1], -np.inf)
    for chunk_low, chunk_high in map_chunks(
        columns, lambda rows: (columns[rows].min(0), columns[rows].max(0))
    ):
        low, high = np.minimum(low, chunk_low), np.maximum(high, chunk_high)
    return low, np.where(high > low, high - low, 1.0)


def _subtract_and_divide(columns: NDArray[np.float32], shift: Floats, scale: Floats) -> NDArray[np.float32]:
    """``(columns - shift) / scale``, rounded once, so that the ends of a range are exactly 0 and 1."""
    out = np.empty_like(columns)

    def transform(rows: slice) -> None:
        out[rows] = (columns[rows] - shift) / scale

    for _ in map_chunks(columns, transform):
        pass
    return out


def _scale_sparse(columns: SparseColumns, scaling: str) -> SparseColumns:
    width = columns.shape[1]
    if scaling == "none":
        return replace(columns, shift=np.zeros(width), scale=np.ones(width))
    low, high = (
        np.asarray(values.todense(), dtype=np.float64).ravel()
        for values in (columns.data.min(axis=0), columns.data.max(axis=0))
    )
    return replace(columns, shift=low, scale=np.where(high > low, high - low, 1.0))
