"""Batches for the engine: rows on the device, in an order drawn trial by trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqatt.neural.body import Batch
from seqatt.source import Source, SparseColumns


class Rows:
    """The training rows on the device; sparse tables stay sparse and are opened a batch at a time."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self.device = device
        self.sparse = source.columns if isinstance(source.columns, SparseColumns) else None
        self.x = None if self.sparse else torch.from_numpy(source.columns).to(device)
        self.y = torch.from_numpy(source.target.values).to(device)
        self.w = None if source.weights is None else torch.from_numpy(source.weights).to(device)
        self.count = len(self.y)

    def open(self, index: Tensor, out: Tensor | None = None) -> Tensor:
        """Rows by number as (len(index), c), put into ``out`` where that is given."""
        if self.x is not None:
            return torch.index_select(self.x, 0, index, out=out)
        assert self.sparse is not None
        return torch.from_numpy(self.sparse.open(index.cpu().numpy())).to(self.device)

    def take(self, index: Tensor) -> Batch:
        """A batch of the rows numbered by (T, B)."""
        x = self.open(index.flatten()).view(*index.shape, -1)
        return Batch(x, self.y[index], None if self.w is None else self.w[index])


class Feed:
    """An endless stream of batches; every pass over the rows is a new order, drawn from the seed.

    A batch as large as the table is the table itself, in its own order: nothing is copied.
    """

    def __init__(self, rows: Rows, batch_size: int, generators: Sequence[torch.Generator]) -> None:
        self._rows = rows
        self._generators = list(generators)
        self._size = min(batch_size, rows.count)
        self._per_pass = rows.count // self._size
        self._cursor = self._per_pass
        self._room: Tensor | None = None
        self._whole: Batch | None = None
        if self._size == rows.count:
            every = torch.arange(rows.count, device=rows.device)[None]
            self._whole = Batch(*(_repeat(part, len(generators)) for part in rows.take(every)))

    def next(self) -> Batch:
        if self._whole is not None:
            return self._whole
        if self._cursor == self._per_pass:
            self._shuffle()
        index, y, w = self._plan[self._cursor]
        self._cursor += 1
        x = self._rows.open(index, self._room)
        self._room = x
        return Batch(x.view(len(self._generators), self._size, -1), y, w)

    def sample(self, count: int) -> list[Batch]:
        """The same up to ``count`` rows for every trial and every call, in batches: for judging."""
        generator = torch.Generator().manual_seed(0)
        count = min(count, self._rows.count)
        index = torch.randperm(self._rows.count, generator=generator)[:count].to(self._rows.device)
        index = index.expand(len(self._generators), -1)
        return [self._rows.take(part) for part in torch.split(index, 1024, dim=1)]

    def _shuffle(self) -> None:
        """A new pass: targets and weights are put in order at once, rows a batch at a time."""
        orders = [torch.randperm(self._rows.count, generator=g) for g in self._generators]
        order = torch.stack(orders)[:, : self._per_pass * self._size].to(self._rows.device)
        index = [part.flatten() for part in torch.split(order, self._size, 1)]
        y = torch.split(self._rows.y[order], self._size, 1)
        w: Sequence[Tensor | None] = [None] * self._per_pass
        if self._rows.w is not None:
            w = torch.split(self._rows.w[order], self._size, 1)
        self._plan = list(zip(index, y, w, strict=True))
        self._cursor = 0


def _repeat(part: Tensor | None, trials: int) -> Any:
    return None if part is None else part.expand(trials, *part.shape[1:])
