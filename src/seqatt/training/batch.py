"""Training rows on the device, and batches of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.input_dropout import InputDropout


class Batch:
    """B rows for each of T models: ``x`` (T, B, c), ``y`` (T, B) or (T, B, o), ``w`` (T, B) or None."""

    def __init__(self, x: Tensor, y: Tensor, w: Tensor | None) -> None:
        self._x: Tensor | None = x
        self.y = y
        self.w = w

    @property
    def x(self) -> Tensor:
        assert self._x is not None
        return self._x


class IndexedBatch(Batch):
    """A batch given by row numbers ``index`` (T, B) of a table; ``x`` is gathered when first read.

    With a ``buffer`` (T, B, c), ``x`` is gathered into it, and gathered again after ``invalidate``. With
    ``dropout``, some inputs are dropped; model t reads the factors from ``offsets[t]`` on.
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
    ) -> None:
        self.dropout = dropout
        self.offsets = offsets
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
            self._x = gathered.view(*self.index.shape, -1) if self._buffer is None else self._buffer
            if self.dropout is not None:
                assert self.offsets is not None
                self.dropout.apply(self._x, self.offsets)
        return self._x

    def invalidate(self) -> IndexedBatch:
        """Discard ``x``, because ``index`` has new values or the memory is needed; returns the batch."""
        self._x = None
        return self


class DeviceTable:
    """All training rows. A sparse table stays sparse on the host; each batch is made dense when gathered."""

    def __init__(self, data: TableData, device: torch.device) -> None:
        self.device = device
        self.sparse = data.columns if isinstance(data.columns, SparseColumns) else None
        self.x = None if self.sparse else torch.from_numpy(data.columns).to(device)
        self.y = torch.from_numpy(np.ascontiguousarray(data.target.values)).to(device)
        self.w = None if data.weights is None else torch.from_numpy(data.weights).to(device)
        self.count = len(self.y)
        self.columns = data.columns.shape[1]

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
