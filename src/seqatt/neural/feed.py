"""Batches for the engine, in an order drawn trial by trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from seqatt.neural.rows import Batch, Picked, Rows

LAID_OUT = 1 << 22  # row numbers laid out at a time, at most
STRETCH = 64  # batches laid out at a time: the most steps an accelerator is given in one go
SAMPLED_CELLS = 1 << 24  # of a batch for judging: wide tables are judged a few rows at a time
AHEAD = 1024  # batches whose order is drawn at a time, at least: small tables pass by quickly


class Feed:
    """An endless stream of batches; every pass over the rows is a new order, drawn from the seed.

    ``load`` lays out the row numbers, targets and weights of the next few batches in memory that never
    moves, so that a captured step finds its batch where it was. A batch as large as the table is the
    table itself, in its own order: nothing is copied.
    """

    def __init__(self, rows: Rows, batch_size: int, generators: Sequence[torch.Generator]) -> None:
        self._rows = rows
        self.captured = rows.x is not None  # else rows are opened on the host
        self._generators = list(generators)
        trials, size = len(self._generators), min(batch_size, rows.count)
        self.size = size
        self._per_pass = rows.count // size
        self._passes = max(1, AHEAD // self._per_pass) if rows.device.type != "cpu" else 1
        self.stretch = STRETCH
        self._whole: Batch | None = None
        if size == rows.count:
            self._whole = _whole_table(rows, trials)
            return
        self.stretch = min(STRETCH, max(8, LAID_OUT // (trials * size) // 8 * 8))
        self._index = torch.empty(self.stretch, trials, size, dtype=torch.int64, device=rows.device)
        self._y = rows.y.new_empty(self.stretch, trials, size, *rows.y.shape[1:])
        self._w = None if rows.w is None else rows.w.new_empty(self.stretch, trials, size)
        self._room = None if rows.x is None else rows.x.new_empty(trials, size, rows.columns)
        self._batches = [self._batch(place) for place in range(self.stretch)]
        self._current = self._batches[0]
        self._order = torch.empty(0, trials, size, dtype=torch.int32)
        self._cursor = 0
        self._worker = ThreadPoolExecutor(1) if rows.device.type != "cpu" else None
        self._next: Future[Tensor] | None = None

    def load(self, count: int) -> None:
        """Lay out the next ``count`` batches, at most a stretch."""
        if self._whole is not None:
            return
        done = 0
        while done < count:
            if self._cursor == len(self._order):
                self._order, self._cursor = self._next_order(), 0
            some = min(count - done, len(self._order) - self._cursor)
            self._index[done : done + some] = self._order[self._cursor : self._cursor + some]
            self._cursor += some
            done += some
        chosen = self._index[:count].flatten()
        torch.index_select(self._rows.y, 0, chosen, out=self._y[:count].flatten(0, 2))
        if self._w is not None and self._rows.w is not None:
            torch.index_select(self._rows.w, 0, chosen, out=self._w[:count].flatten())

    def at(self, place: int) -> Batch:
        """One of the batches last laid out."""
        if self._whole is not None:
            return self._whole
        self._current.renew()  # rows that were opened for it alone are let go
        self._current = self._batches[place]
        return self._current.renew()

    def _batch(self, place: int) -> Picked:
        w = None if self._w is None else self._w[place]
        return Picked(self._rows, self._index[place], self._y[place], w, self._room)

    def sample(self, count: int) -> Iterator[Batch]:
        """The same up to ``count`` rows for every trial and every call, in batches: for judging."""
        generator = torch.Generator().manual_seed(0)
        count = min(count, self._rows.count)
        index = torch.randperm(self._rows.count, generator=generator)[:count].to(self._rows.device)
        index = index.expand(len(self._generators), -1)
        at_once = min(1024, max(64, SAMPLED_CELLS // (self._rows.columns * len(self._generators))))
        return (self._rows.take(part) for part in torch.split(index, at_once, dim=1))

    def _next_order(self) -> Tensor:
        """Row numbers of the batches to come (m, T, B); an accelerator's are drawn while it works."""
        if self._worker is None:
            return self._draw()
        order = self._draw() if self._next is None else self._next.result()
        self._next = self._worker.submit(self._draw)
        return order.to(self._rows.device)

    def _draw(self) -> Tensor:
        shape = (self._passes, self._per_pass, len(self._generators), self.size)
        order = torch.empty(shape, dtype=torch.int32)
        for some in order:
            for trial, generator in enumerate(self._generators):
                drawn = torch.randperm(self._rows.count, generator=generator)
                batches = drawn[: self._per_pass * self.size].view(self._per_pass, self.size)
                # In the table's own order a CPU gathers a batch's rows faster.
                some[:, trial] = batches if self._worker else torch.from_numpy(np.sort(batches.numpy()))
        return order.flatten(0, 1)


def _whole_table(rows: Rows, trials: int) -> Batch:
    every = torch.arange(rows.count, device=rows.device).repeat(trials, 1)
    y = rows.y.expand(trials, *rows.y.shape)
    w = None if rows.w is None else rows.w.expand(trials, -1)
    if rows.x is not None:
        return _Whole(rows, every, y, w)
    one = rows.take(every[:1])
    return Batch(one.x.expand(trials, -1, -1), y, w)


class _Whole(Picked):
    """The table itself as a batch: the trials share it without a copy."""

    @property
    def x(self) -> Tensor:
        assert self.rows.x is not None
        return self.rows.x.expand(len(self.index), -1, -1)
