"""Rows of numbers as float64, centred, scaled and weighted a block at a time: X is never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqatt.linear.threads import Floats, add_square, mirror, share

BLOCK_CELLS = 1 << 20  # cells of a block that has to be made: a few megabytes, within a core's reach
PARTS = 4  # pieces a pass over the rows is cut into, whatever the number of cores
Span = tuple[int, int]


@dataclass(frozen=True)
class DesignMatrix:
    """``data``'s rows in ``spans``, minus ``shift``, over ``scale``, times the root of their weight."""

    data: Any
    spans: tuple[Span, ...]
    shift: Floats | None = None
    scale: Floats | None = None
    root: Floats | None = None

    @property
    def n(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    @property
    def d(self) -> int:
        return int(self.data.shape[1])

    def block(self, start: int, stop: int) -> Floats:
        """Rows ``start`` to ``stop``; a view where nothing has to be done to them."""
        return self._ready(self.data[start:stop], slice(None), start, stop)

    def columns(self, chosen: NDArray[np.intp]) -> Floats:
        """All rows of some columns, (n, chosen)."""
        out = np.empty((self.n, len(chosen)), order="F")
        at = 0
        for start, stop in self._blocks():
            out[at : at + stop - start] = self._ready(self.data[start:stop][:, chosen], chosen, start, stop)
            at += stop - start
        return out

    def products(self, chosen: NDArray[np.intp], others: Floats | None = None) -> Floats:
        """``X' [X_chosen, others]``, transposed: (chosen + others, d), in one pass over the rows."""
        wide = 0 if others is None else others.shape[1]
        m = len(chosen) + wide
        cost = float(self.n) * self.d * m
        if self.plain and self.n <= self.d:
            left = self.data[:, chosen] if others is None else np.hstack([self.data[:, chosen], others])
            out = np.empty((m, self.d))
            step = max(128, -(-self.d // PARTS))

            def strip(start: int) -> None:
                out[:, start : start + step] = left.T @ self.data[:, start : start + step]

            share(strip, range(0, self.d, step), cost)
            return out
        blocks = list(self._blocks())
        places = np.cumsum([0] + [stop - start for start, stop in blocks])
        cuts = [round(i * len(blocks) / PARTS) for i in range(PARTS + 1)]

        def part(piece: int) -> Floats:
            total = np.zeros((m, self.d))
            for b in range(cuts[piece], cuts[piece + 1]):
                rows = self.block(*blocks[b])
                left = np.empty((m, len(rows)))
                left[: len(chosen)] = rows.T[chosen]
                if others is not None:
                    left[len(chosen) :] = others[places[b] : places[b + 1]].T
                total += left @ rows
            return total

        return np.asarray(sum(share(part, range(PARTS), cost)))

    def square(self) -> Floats:
        """``X'X`` in one pass."""
        total = np.zeros((self.d, self.d))
        for start, stop in self._blocks(8):
            add_square(total, self.block(start, stop))
        return mirror(total)

    def norms(self) -> Floats:
        """Squared length of every column."""

        def part(span: Span) -> Floats:
            rows = self.block(*span)
            return np.asarray(np.einsum("ij,ij->j", rows, rows))

        return np.asarray(sum(share(part, self._blocks(), 4.0 * self.n * self.d)))

    def sample(self, rows: int, chunks: int = 16) -> DesignMatrix:
        """About ``rows`` of the rows, in chunks spread over them."""
        size = -(-rows // chunks)
        starts = np.linspace(0, self.n - size, chunks).astype(int)
        return replace(self, spans=tuple((int(s), int(s) + size) for s in starts))

    @property
    def plain(self) -> bool:
        """Whether the numbers can be used where they lie."""
        asis = isinstance(self.data, np.ndarray) and self.data.dtype == np.float64
        return asis and len(self.spans) == 1 and self.shift is self.scale is self.root is None

    def _ready(self, rows: Any, chosen: Any, start: int, stop: int) -> Floats:
        dense = rows.toarray() if sp.issparse(rows) else rows
        dense = np.asarray(dense, dtype=np.float64)
        if self.shift is not None:
            dense = dense - self.shift[chosen]
        if self.scale is not None:
            dense = dense / self.scale[chosen]
        if self.root is not None:
            dense = dense * self.root[start:stop, None]
        return np.asarray(dense)

    def _blocks(self, times: int = 1) -> Iterator[Span]:
        if self.plain:  # enough rows that adding up their products costs little, few enough for a cache
            rows = int(np.clip(5 * self.d // 2, 512, 2048))
        else:
            rows = int(np.clip(BLOCK_CELLS // self.d, 64, 16_384))
        size = times * rows
        size = min(size, max(64, -(-self.n // PARTS)))
        for first, last in self.spans:
            for start in range(first, last, size):
                yield start, min(last, start + size)
