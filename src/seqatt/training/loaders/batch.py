"""Training rows on the device, and batches of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.loaders.input_dropout import InputDropout

# Cells up to which some columns of a sparse table are made dense: every trial has its own.
SMALL_TABLE_CELLS = 1 << 24


class Batch:
    """B rows for each of T models: ``x`` (T, B, c), ``y`` (T, B) or (T, B, o), ``w`` (T, B) or None.

    ``codes`` (T, B, m) are the categories that a model embeds, None if there are none.
    """

    def __init__(self, x: Tensor, y: Tensor, w: Tensor | None, codes: Tensor | None = None) -> None:
        self._x: Tensor | None = x
        self._codes = codes
        self.y = y
        self.w = w

    @property
    def x(self) -> Tensor:
        assert self._x is not None
        return self._x

    @property
    def codes(self) -> Tensor | None:
        return self._codes

    def blocks(self, count: int) -> Iterator[Batch]:
        """The rows as up to ``count`` batches of the same size, the last of which may be smaller."""
        size = -(-self.x.shape[1] // count)
        for start in range(0, self.x.shape[1], size):
            rows = slice(start, start + size)
            w, codes = (None if part is None else part[:, rows] for part in (self.w, self.codes))
            yield Batch(self.x[:, rows], self.y[:, rows], w, codes)


class IndexedBatch(Batch):
    """A batch given by row numbers ``index`` (T, B) of a table; ``x`` is gathered when first read.

    With a ``buffer`` (T, B, c), ``x`` is gathered into it, and gathered again after ``invalidate``. With
    ``dropout``, some inputs are dropped; model t reads the factors from ``offsets[t]`` on. ``first_row`` is the number
    of rows of the same batch on lower ranks, so that inputs are dropped as in one process.
    """

    def __init__(
        self,
        table: DeviceTable,
        index: Tensor,
        y: Tensor,
        w: Tensor | None,
        buffer: Tensor | None = None,
        dropout: InputDropout | None = None,
        offsets: Tensor | None = None,
        first_row: int = 0,
    ) -> None:
        self.dropout = dropout
        self.offsets = offsets
        self._first_row = first_row
        self.table = table
        self.index = index
        self.y = y
        self.w = w
        self._flat_index = index.flatten()
        self._buffer = buffer
        self._flat_buffer = None if buffer is None else buffer.flatten(0, 1)
        self._x = None

    @property
    def x(self) -> Tensor:
        if self._x is None:
            gathered = self.table.gather(self._flat_index, self._flat_buffer)
            self._x = (
                gathered.view(*self.index.shape, self.table.columns) if self._buffer is None else self._buffer
            )
            if self.dropout is not None:
                self.dropout.apply(self._x, self._offsets_of_row(self.table.columns))
        return self._x

    @property
    def codes(self) -> Tensor | None:
        codes = self.table.codes
        if codes is None:
            return None
        gathered = codes.index_select(0, self._flat_index).view(*self.index.shape, codes.shape[1])
        if self.dropout is not None:
            self.dropout.apply_to_codes(gathered, self._offsets_of_row(codes.shape[1]))
        return gathered

    def _offsets_of_row(self, width: int) -> Tensor:
        """The offsets of the first row, if a row has ``width`` values."""
        assert self.offsets is not None
        return self.offsets + self._first_row * width if self._first_row else self.offsets

    def invalidate(self) -> IndexedBatch:
        """Discard ``x``, because ``index`` has new values or the memory is needed; returns the batch."""
        self._x = None
        return self


class DeviceTable:
    """Rows on the device. A sparse table stays sparse on the host; each batch is made dense when gathered."""

    def __init__(
        self,
        x: Tensor | SparseColumns,
        y: Tensor,
        w: Tensor | None,
        codes: Tensor | None = None,
        queries: NDArray[np.float32] | None = None,
    ) -> None:
        """``queries`` (count,) are those of rows to be ranked, which are in the same batch as far as possible."""
        self.device, self.queries = y.device, queries
        self.sparse = x if isinstance(x, SparseColumns) else None
        self.x = None if isinstance(x, SparseColumns) else x
        self.y, self.w = y, w
        self.codes = None if codes is None or not codes.shape[1] else codes
        self.count, self.columns = len(y), x.shape[1]

    @classmethod
    def of_data(cls, data: TableData, device: torch.device) -> DeviceTable:
        """All rows of a table."""
        columns = data.columns
        if isinstance(columns, SparseColumns):
            x: Tensor | SparseColumns = columns
        else:  # row after row: the Triton kernels read rows by their address
            x = torch.from_numpy(np.ascontiguousarray(columns)).to(device)
        y = torch.from_numpy(np.ascontiguousarray(data.target.values)).to(device)
        w = None if data.weights is None else torch.from_numpy(data.weights).to(device)
        return cls(x, y, w, torch.from_numpy(data.codes).to(device), data.target.queries)

    def select_columns(self, columns: Tensor) -> DeviceTable:
        """The table of these columns alone, copied; a sparse one becomes dense if it is small then."""
        if self.x is not None:
            return DeviceTable(self.x.index_select(1, columns), self.y, self.w, self.codes, self.queries)
        assert self.sparse is not None
        sparse = self.sparse.select(columns.cpu().numpy())
        if self.count * len(columns) > SMALL_TABLE_CELLS:
            return DeviceTable(sparse, self.y, self.w, self.codes, self.queries)
        dense = torch.from_numpy(sparse.to_dense(np.arange(self.count))).to(self.device)
        return DeviceTable(dense, self.y, self.w, self.codes, self.queries)

    def gather(self, index: Tensor, out: Tensor | None = None) -> Tensor:
        """The rows numbered by ``index`` (n,) as (n, c); a dense table writes them into ``out`` if given."""
        if self.x is not None:
            return torch.index_select(self.x, 0, index, out=out)
        assert self.sparse is not None
        return torch.from_numpy(self.sparse.to_dense(index.cpu().numpy())).to(self.device)

    def batch(
        self, index: Tensor, dropout: InputDropout | None = None, offsets: Tensor | None = None
    ) -> Batch:
        """A batch of the rows numbered by ``index`` (T, B)."""
        w = None if self.w is None else self.w[index]
        return IndexedBatch(self, index, self.y[index], w, dropout=dropout, offsets=offsets)

    def whole(self, models: int, index: Tensor | None = None) -> Batch:
        """All rows as one batch, which ``models`` models share without a copy.

        ``index`` are the numbers (T, count) of all rows, where the caller has them.
        """
        if index is None:
            index = torch.arange(self.count, device=self.device).repeat(models, 1)
        y = self.y.expand(models, *self.y.shape)
        w = None if self.w is None else self.w.expand(models, -1)
        if self.x is not None:
            return _WholeTableBatch(self, index, y, w)
        return Batch(self.batch(index[:1]).x.expand(models, -1, -1), y, w)  # a sparse table has no codes


class _WholeTableBatch(IndexedBatch):
    """The table itself as a batch, which the models share without a copy."""

    @property
    def x(self) -> Tensor:
        assert self.table.x is not None
        return self.table.x.expand(len(self.index), -1, -1)

    @property
    def codes(self) -> Tensor | None:
        codes = self.table.codes
        return None if codes is None else codes.expand(len(self.index), -1, -1)
