"""Columns whose far-out values are drawn in.

A value many spreads from the mean is a lever: a network fits the row it stands in by that column alone, so
that of many skewed columns some look useful whatever the target. Their inverse hyperbolic sine is linear
near the mean and a logarithm far out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.encoding import Encoder, map_chunks
from seqatt.data.tables.table_data import SparseColumns, TableData

Floats = NDArray[np.float64]


def asinh_columns(source: TableData) -> TableData:
    """The same rows with asinh of every number, again at mean 0 and variance 1; categories as they are."""
    weights = np.ones(source.rows) if source.weights is None else source.weights.astype(np.float64)
    weights /= weights.sum()
    columns = source.columns
    if isinstance(columns, SparseColumns):
        return replace(source, columns=_sparse(columns, weights))
    return replace(source, columns=_dense(columns, source.encoder, weights))


def _dense(columns: NDArray[np.float32], encoder: Encoder, weights: Floats) -> NDArray[np.float32]:
    """A missing number is 0, the mean, and stays it: the mean of those that are there becomes 0 again."""
    number, present = encoder.holds_number, 1 - encoder.missing
    holed = np.flatnonzero(present < 1)
    out = np.empty_like(columns)
    share = weights.astype(np.float32)

    def draw_in(rows: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        part = np.arcsinh(columns[rows], out=out[rows])
        return share[rows] @ part, share[rows] @ np.square(part)

    mean, square = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    for some_mean, some_square in map_chunks(columns, draw_in):
        mean += some_mean
        square += some_square
    mean /= np.where(present > 0, present, 1.0)
    spread = _spread(mean * np.sqrt(present), square)
    shift, scale = mean.astype(np.float32), spread.astype(np.float32)

    def standardise(rows: slice) -> None:
        out[rows] -= shift
        out[rows] /= scale
        if len(holed):
            out[rows, holed] *= columns[rows, holed] != 0
        if not number.all():
            out[rows, ~number] = columns[rows, ~number]

    for _ in map_chunks(out, standardise):
        pass
    return out


def _sparse(columns: SparseColumns, weights: Floats) -> SparseColumns:
    """What a cell that is not stored becomes is taken off, so that it need not be stored now either."""
    data = columns.data.tocsr().astype(np.float64)
    absent = np.arcsinh(-columns.shift / columns.scale)
    place = data.indices
    data.data = np.arcsinh((data.data - columns.shift[place]) / columns.scale[place]) - absent[place]
    mean = np.asarray(weights @ data).ravel()
    square = np.asarray(weights @ data.multiply(data)).ravel()
    return SparseColumns(data, mean, _spread(mean, square))


def _spread(mean: Floats, square: Floats) -> Floats:
    """Standard deviations, and 1 for what does not vary."""
    variance = square - mean**2
    return np.sqrt(np.where(variance > 1e-12 * square, variance, 1.0))
