"""X as float64, centred, scaled and weighted one block of rows at a time; X is never copied as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqatt.linear.threads import Floats, add_square, fill_lower_triangle, parallel_map

BLOCK_ENTRIES = 1 << 20  # matrix entries per converted block: 8 MiB of float64, which a core's caches hold
CHUNKS = 4  # work items per pass over the rows, independent of the number of cores
NO_COLUMNS = np.empty(0, dtype=np.intp)
Span = tuple[int, int]  # rows start to stop


@dataclass(frozen=True)
class DesignMatrix:
    """``(data - shift) / scale * sqrt_weights``, computed on access.

    ``shift`` and ``scale`` have one value per column, ``sqrt_weights`` (the square root of the sample
    weights) one per row of ``data``; None skips the operation.
    """

    data: Any
    shift: Floats | None = None
    scale: Floats | None = None
    sqrt_weights: Floats | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    def block(self, start: int, stop: int) -> Floats:
        """Rows ``start`` to ``stop``, (stop - start, d); a view if they need no conversion."""
        return self._convert(self.data[start:stop], slice(None), start, stop)

    def columns(self, indices: NDArray[np.intp]) -> Floats:
        """All rows of some columns, (n, len(indices))."""
        out = np.empty((self.n, len(indices)), order="F")
        for start, stop in self._blocks():
            out[start:stop] = self._convert(self.data[start:stop][:, indices], indices, start, stop)
        return out

    def products(self, indices: NDArray[np.intp], vectors: Floats | None = None) -> Floats:
        """``[X_indices, vectors]' X``, (len(indices) + vectors.shape[1], d), in one pass over the rows."""
        m = len(indices) + (0 if vectors is None else vectors.shape[1])
        cost = float(self.n) * self.d * m
        if self.zero_copy and self.n <= self.d:  # column panels: there is nothing to sum
            left = self.data[:, indices] if vectors is None else np.hstack([self.data[:, indices], vectors])
            out = np.empty((m, self.d))

            def panel_products(columns: slice) -> None:
                out[:, columns] = left.T @ self.data[:, columns]

            step = -(-self.d // CHUNKS)
            parallel_map(panel_products, [slice(i * step, (i + 1) * step) for i in range(CHUNKS)], cost)
            return out
        blocks = self._blocks()

        def chunk_products(chunk: int) -> Floats:
            total = np.zeros((m, self.d))
            for start, stop in blocks[chunk::CHUNKS]:
                rows = self.block(start, stop)
                left = rows[:, indices]
                total += (left if vectors is None else np.hstack([left, vectors[start:stop]])).T @ rows
            return total

        return np.asarray(sum(parallel_map(chunk_products, range(min(CHUNKS, len(blocks))), cost)))

    def square(self) -> Floats:
        """``X'X``, (d, d), in one pass."""
        total = np.zeros((self.d, self.d))
        for start, stop in self._blocks(8):
            add_square(total, self.block(start, stop))
        return fill_lower_triangle(total)

    def squared_norms(self) -> Floats:
        """Squared length of every column, (d,)."""

        def block_squared_norms(span: Span) -> Floats:
            rows = self.block(*span)
            return np.asarray(np.einsum("ij,ij->j", rows, rows))

        return np.asarray(sum(parallel_map(block_squared_norms, self._blocks(), 4.0 * self.n * self.d)))

    @property
    def zero_copy(self) -> bool:
        """Whether ``data`` is used as it is, without conversion."""
        float64 = isinstance(self.data, np.ndarray) and self.data.dtype == np.float64
        return float64 and self.shift is self.scale is self.sqrt_weights is None

    def _convert(self, rows: Any, columns: Any, start: int, stop: int) -> Floats:
        dense = rows.toarray() if sp.issparse(rows) else rows
        dense = np.asarray(dense, dtype=np.float64)
        if self.shift is not None:
            dense = dense - self.shift[columns]
        if self.scale is not None:
            dense = dense / self.scale[columns]
        if self.sqrt_weights is not None:
            dense = dense * self.sqrt_weights[start:stop, None]
        return np.asarray(dense)

    def _blocks(self, factor: int = 1) -> list[Span]:
        """Row ranges of one block each; ``factor`` multiplies the usual number of rows per block."""
        if self.zero_copy:  # enough rows that summing the products costs little, few enough for a cache
            rows = int(np.clip(5 * self.d // 2, 512, 2048))
        else:
            rows = int(np.clip(BLOCK_ENTRIES // self.d, 64, 16_384))
        # As many blocks for every chunk, and blocks of equal size, so that the threads end together.
        count = CHUNKS * -(-self.n // (CHUNKS * factor * rows)) if self.n >= 64 * CHUNKS else 1
        bounds = np.linspace(0, self.n, count + 1).astype(int).tolist()
        return list(pairwise(bounds))
