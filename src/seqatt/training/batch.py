"""Training rows on the device, and batches of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.input_dropout import InputDropout


class Batch:
    """Some rows for each trial: ``x`` (T, B, c), ``y`` (T, B) or (T, B, o), ``w`` (T, B) or None."""

    def __init__(self, x: Tensor, y: Tensor, w: Tensor | None) -> None:
        self._x: Tensor | None = x
        self.y = y
        self.w = w

    @property
    def x(self) -> Tensor:
        assert self._x is not None
        return self._x


class IndexedBatch(Batch):
    """A batch by row numbers (T, B) of a table: its ``x`` is gathered when it is first asked for.

    With a ``room`` (T, B, c) it is gathered into that, and again after every ``renew``. With ``noise`` some
    inputs are dropped, by the draws that start at ``places`` (T,).
    """

    def __init__(
        self,
        rows: DeviceTable,
        index: Tensor,
        y: Tensor,
        w: Tensor | None,
        room: Tensor | None = None,
        noise: InputDropout | None = None,
        places: Tensor | None = None,
    ) -> None:
        self.noise = noise
        self.places = places
        self.rows = rows
        self.index = index
        self.y = y
        self.w = w
        self._flat = index.flatten()
        self._room = room
        self._flat_room = None if room is None else room.flatten(0, 1)
        self._x = None

    @property
    def x(self) -> Tensor:
        if self._x is None:
            found = self.rows.open(self._flat, self._flat_room)
            self._x = found.view(*self.index.shape, -1) if self._room is None else self._room
            if self.noise is not None:
                assert self.places is not None
                self.noise.apply(self._x, self.places)
        return self._x

    def renew(self) -> IndexedBatch:
        self._x = None
        return self


class DeviceTable:
    """All training rows; sparse tables stay sparse and are opened a batch at a time."""

    def __init__(self, source: TableData, device: torch.device) -> None:
        self.device = device
        self.sparse = source.columns if isinstance(source.columns, SparseColumns) else None
        self.x = None if self.sparse else torch.from_numpy(source.columns).to(device)
        self.y = torch.from_numpy(np.ascontiguousarray(source.target.values)).to(device)
        self.w = None if source.weights is None else torch.from_numpy(source.weights).to(device)
        self.count = len(self.y)
        self.columns = source.columns.shape[1]

    def open(self, index: Tensor, out: Tensor | None = None) -> Tensor:
        """Rows by number as (len(index), c), put into ``out`` where that is given."""
        if self.x is not None:
            return torch.index_select(self.x, 0, index, out=out)
        assert self.sparse is not None
        return torch.from_numpy(self.sparse.open(index.cpu().numpy())).to(self.device)

    def take(self, index: Tensor, noise: InputDropout | None = None, places: Tensor | None = None) -> Batch:
        """A batch of the rows numbered by (T, B)."""
        w = None if self.w is None else self.w[index]
        return IndexedBatch(self, index, self.y[index], w, noise=noise, places=places)
