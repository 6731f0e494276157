"""Some rows of a table, for tests that need not see all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqatt.source import Source, SparseColumns

Floats = NDArray[np.float64]

BLOCK = 1 << 10  # columns looked at in one go
CELLS, FEWEST = 1 << 22, 1 << 11  # rows are drawn by lot, not fewer than these, where there are more cells


@dataclass(frozen=True)
class Sample:
    """Rows by number, with weights that add up to how many rows of weight 1 say as much."""

    source: Source
    rows: NDArray[np.int64]
    weights: Floats

    def centred(self, columns: slice | NDArray[np.int64]) -> Floats:
        """Some columns of these rows, less their means."""
        held = self.source.columns
        if isinstance(held, SparseColumns):
            opened = held.data[:, columns].toarray()
            found = np.asarray((opened - held.shift[columns]) / held.scale[columns], dtype=np.float64)
        else:
            place = (self.rows, columns) if isinstance(columns, slice) else np.ix_(self.rows, columns)
            found = held[place].astype(np.float64)
        return np.asarray(found - self.weights @ found / self.weights.sum())

    def products(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Every column's products with vectors that sum to nothing, and its own squared length."""
        columns, weights = self.source.columns, self.weights
        weighted = weights[:, None] * vectors
        if isinstance(columns, SparseColumns):
            data = columns.data.astype(np.float64, copy=False)
            return data.T @ weighted / columns.scale[:, None], self._sparse_squares
        products = np.empty((columns.shape[1], vectors.shape[1]))
        squares = np.empty(columns.shape[1])
        for start in range(0, columns.shape[1], BLOCK):
            some = self.centred(slice(start, start + BLOCK))
            products[start : start + BLOCK] = some.T @ weighted
            squares[start : start + BLOCK] = weights @ some**2
        squares[squares < 1e-9] = 0
        return products, squares

    @cached_property
    def _sparse_squares(self) -> Floats:
        columns, weights = self.source.columns, self.weights
        assert isinstance(columns, SparseColumns)
        data = columns.data.astype(np.float64, copy=False)
        lengths = data.multiply(data).T @ weights
        squares = lengths - (data.T @ weights) ** 2 / weights.sum()
        squares[squares < 1e-9 * lengths] = 0
        return np.asarray(squares / columns.scale**2)


def draw(source: Source) -> Sample:
    """All rows, but of a large table some that have weight, the same every time."""
    rows = np.arange(source.rows)
    enough = max(FEWEST, CELLS // len(source.owner))
    share = 1.0
    if source.rows > enough and not isinstance(source.columns, SparseColumns):
        counting = rows if source.weights is None else np.flatnonzero(source.weights)
        rows = np.sort(np.random.default_rng(0).permutation(counting)[:enough])
        share = len(rows) / len(counting)
    weights = np.ones(len(rows)) if source.weights is None else source.weights[rows].astype(np.float64)
    return Sample(source, rows, weights * share * source.worth / weights.sum())
