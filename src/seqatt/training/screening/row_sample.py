"""Some rows of a table, for tests that need not see all.

What is summed over them does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.backend.matmul import matmul

Floats = NDArray[np.float64]

BLOCK = 1 << 10  # columns looked at in one go
CELLS, FEWEST = 1 << 22, 1 << 11  # rows are drawn by lot, not fewer than these, where there are more cells


@dataclass(frozen=True)
class RowSample:
    """Rows by number, with weights that add up to how many rows of weight 1 say as much."""

    source: TableData
    rows: NDArray[np.int64]
    weights: Floats

    @property
    def count(self) -> float:
        return float(self.weights.sum())

    def centred(self, columns: slice | NDArray[np.int64]) -> Floats:
        """Some columns of these rows, less their means."""
        held = self.source.columns
        if isinstance(held, SparseColumns):
            opened = held.data[:, columns].toarray()
            found = np.asarray((opened - held.shift[columns]) / held.scale[columns], dtype=np.float64)
        else:
            place = (self.rows, columns) if isinstance(columns, slice) else np.ix_(self.rows, columns)
            found = held[place].astype(np.float64)
        return self.less_mean(found)

    def less_mean(self, values: Floats) -> Floats:
        return np.asarray(values - (self.weights[:, None] * values).sum(0) / self.count)

    def products(self, vectors: Floats) -> Floats:
        """Every column's products with vectors that sum to nothing."""
        columns, weighted = self.source.columns, self.weights[:, None] * vectors
        if isinstance(columns, SparseColumns):
            data = columns.data.astype(np.float64, copy=False)
            return np.asarray(data.T @ weighted / columns.scale[:, None])
        blocks = range(0, columns.shape[1], BLOCK)
        return np.concatenate(
            [weighted_products(self.centred(slice(at, at + BLOCK)), weighted) for at in blocks]
        )

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Every column's squared length, and its skewness; 0 of what does not vary."""
        columns, weights = self.source.columns, self.weights
        if isinstance(columns, SparseColumns):
            squares, cubes = self._sparse_moments(columns)
        else:
            squares, cubes = np.empty(columns.shape[1]), np.empty(columns.shape[1])
            for at in range(0, columns.shape[1], BLOCK):
                some = self.centred(slice(at, at + BLOCK))
                weighted = weights[:, None] * some**2
                squares[at : at + BLOCK] = weighted.sum(0)
                cubes[at : at + BLOCK] = (weighted * some).sum(0)
            squares[squares < 1e-9] = 0
        safe = np.where(squares > 0, squares, np.inf)
        return squares, np.asarray(cubes * np.sqrt(self.count) / safe**1.5)

    def _sparse_moments(self, columns: SparseColumns) -> tuple[Floats, Floats]:
        data = columns.data.astype(np.float64, copy=False)
        first, second, third = (data.power(n).T @ self.weights for n in (1, 2, 3))
        mean = first / self.count
        squares = second - mean * first
        squares[squares < 1e-9 * second] = 0
        cubes = third - 3 * mean * second + 2 * mean**2 * first
        return squares / columns.scale**2, cubes / columns.scale**3


def weighted_products(a: Floats, b: Floats) -> Floats:
    """``a.T @ b`` over rows."""
    out = torch.empty(1, a.shape[1], b.shape[1], dtype=torch.float64)
    matmul(torch.from_numpy(a.T)[None], torch.from_numpy(np.ascontiguousarray(b))[None], out)
    return np.asarray(out[0].numpy())


def draw_sample(source: TableData) -> RowSample:
    """All rows, but of a large table some that have weight, the same every time."""
    rows = np.arange(source.rows)
    enough = max(FEWEST, CELLS // len(source.feature_of))
    share = 1.0
    if source.rows > enough and not isinstance(source.columns, SparseColumns):
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:enough])
        share = len(rows) / source.rows
    weights = np.ones(len(rows)) if source.weights is None else source.weights[rows].astype(np.float64)
    return RowSample(source, rows, weights * share * source.effective_rows / weights.sum())
