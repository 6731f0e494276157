"""The inverse hyperbolic sine of the columns, which reduces the influence of extreme values.

A value many standard deviations from the mean has high leverage: a network can fit its row through that
column alone. So of many skewed columns some look useful whatever the target is. asinh is linear near the mean
and logarithmic far from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.numbers.moments import map_chunks
from seqatt.data.tables.table_data import SparseColumns, TableData

Floats = NDArray[np.float64]


def asinh_columns(data: TableData) -> TableData:
    """The table with asinh of every number, standardised again; columns of categories do not change."""
    weights = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    weights /= weights.sum()
    columns = data.columns
    if isinstance(columns, SparseColumns):
        return replace(data, columns=_asinh_sparse(columns, weights))
    return replace(data, columns=_asinh_dense(columns, data.encoder, weights))


def _asinh_dense(columns: NDArray[np.float32], encoder: Encoder, weights: Floats) -> NDArray[np.float32]:
    """Missing numbers are encoded as 0, the mean, and stay 0: the other numbers get mean 0 again."""
    number, present = encoder.is_number, 1 - encoder.missing_shares
    with_missing = np.flatnonzero(present < 1)
    out = np.empty_like(columns)
    row_weights = weights.astype(np.float32)

    def transform(rows: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        chunk = np.arcsinh(columns[rows], out=out[rows])
        return row_weights[rows] @ chunk, row_weights[rows] @ np.square(chunk)

    mean, mean_square = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    for chunk_mean, chunk_mean_square in map_chunks(columns, transform):
        mean += chunk_mean
        mean_square += chunk_mean_square
    mean /= np.where(present > 0, present, 1.0)
    scale = _standard_deviation(mean * np.sqrt(present), mean_square).astype(np.float32)
    shift = mean.astype(np.float32)

    def standardise(rows: slice) -> None:
        out[rows] -= shift
        out[rows] /= scale
        if len(with_missing):
            out[rows, with_missing] *= columns[rows, with_missing] != 0
        if not number.all():
            out[rows, ~number] = columns[rows, ~number]

    for _ in map_chunks(out, standardise):
        pass
    return out


def _asinh_sparse(columns: SparseColumns, weights: Floats) -> SparseColumns:
    """The value of cells that are not stored is subtracted from all, so that these remain not stored."""
    data = columns.data.tocsr().astype(np.float64)
    not_stored = np.arcsinh(-columns.shift / columns.scale)
    column = data.indices
    data.data = np.arcsinh((data.data - columns.shift[column]) / columns.scale[column]) - not_stored[column]
    mean = np.asarray(weights @ data).ravel()
    mean_square = np.asarray(weights @ data.multiply(data)).ravel()
    return SparseColumns(data, mean, _standard_deviation(mean, mean_square))


def _standard_deviation(mean: Floats, mean_square: Floats) -> Floats:
    """Standard deviations from first and second moments; 1 for constant columns."""
    variance = mean_square - mean**2
    return np.sqrt(np.where(variance > 1e-12 * mean_square, variance, 1.0))
