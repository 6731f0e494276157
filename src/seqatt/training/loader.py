"""Batches for the engine, in an order drawn model by model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqatt.training.batch import Batch, DeviceTable, IndexedBatch
from seqatt.training.input_dropout import InputDropout

LAID_OUT = 1 << 22  # row numbers laid out at a time, at most
CHUNK_STEPS = 64  # batches laid out at a time: the most steps an accelerator is given in one go
SAMPLED_CELLS = 1 << 24  # of a batch for judging: wide tables are judged a few rows at a time
ORDERED_BATCHES = 1024  # batches whose order is drawn at a time, at least: small tables pass by quickly
LOOKS = 4  # at a row that is judged, where inputs are dropped: each time others


@dataclass(frozen=True)
class MemberData:
    """A model's own randomness, and the rows it learns from and is judged on where not all are both."""

    order: torch.Generator
    noise: torch.Generator
    learns: Tensor | None = None
    judged: Tensor | None = None


class BatchOrder(NamedTuple):
    """Batches to come: row numbers (m, T, B), and where each finds its noise (m, T)."""

    rows: Tensor
    places: Tensor


class InMemoryLoader:
    """An endless stream of batches; every pass over the rows is a new order, drawn from the seed.

    ``load`` lays out the row numbers, targets and weights of the next few batches in memory that never
    moves, so that a captured step finds its batch where it was. A batch as large as the table is the
    table itself, in its own order: nothing is copied.
    """

    def __init__(
        self,
        rows: DeviceTable,
        batch_size: int,
        draws: Sequence[MemberData],
        noise: InputDropout | None = None,
    ) -> None:
        self._rows = rows
        self.graph_capturable = rows.x is not None  # else rows are opened on the host
        self._draws = list(draws)
        own = draws[0].learns
        self._count = rows.count if own is None else len(own)
        trials, size = len(draws), min(batch_size, self._count)
        self.size = size
        self._per_pass = self._count // size
        self._passes = max(1, ORDERED_BATCHES // self._per_pass) if rows.device.type != "cpu" else 1
        self.chunk_steps = CHUNK_STEPS
        self._noise = noise
        self._whole: Batch | None = None
        if size == rows.count and self._noise is None:
            self._whole = _whole_table(rows, trials)
            return
        self.chunk_steps = min(CHUNK_STEPS, max(8, LAID_OUT // (trials * size) // 8 * 8))
        self._index = torch.empty(self.chunk_steps, trials, size, dtype=torch.int64, device=rows.device)
        self._places = torch.zeros(self.chunk_steps, trials, dtype=torch.int64, device=rows.device)
        self._y = rows.y.new_empty(self.chunk_steps, trials, size, *rows.y.shape[1:])
        self._w = None if rows.w is None else rows.w.new_empty(self.chunk_steps, trials, size)
        self._room = None if rows.x is None else rows.x.new_empty(trials, size, rows.columns)
        self._batches = [self._batch(place) for place in range(self.chunk_steps)]
        self._current = self._batches[0]
        self._drawn = BatchOrder(torch.empty(0, trials, size), torch.empty(0, trials))
        self._cursor = 0
        self._worker = ThreadPoolExecutor(1) if rows.device.type != "cpu" else None
        self._next: Future[BatchOrder] | None = None

    def load(self, count: int) -> None:
        """Lay out the next ``count`` batches, at most a stretch."""
        if self._whole is not None:
            return
        done = 0
        while done < count:
            if self._cursor == len(self._drawn.rows):
                self._drawn, self._cursor = self._next_drawn(), 0
            some = min(count - done, len(self._drawn.rows) - self._cursor)
            self._index[done : done + some] = self._drawn.rows[self._cursor : self._cursor + some]
            self._places[done : done + some] = self._drawn.places[self._cursor : self._cursor + some]
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

    def _batch(self, place: int) -> IndexedBatch:
        w = None if self._w is None else self._w[place]
        return IndexedBatch(
            self._rows, self._index[place], self._y[place], w, self._room, self._noise, self._places[place]
        )

    def sample(self, count: int) -> Iterator[Batch]:
        """Up to ``count`` rows a model, the same at every call, in batches: for judging.

        They are rows it does not learn from, where it has such. Where inputs are dropped in training they
        are dropped here too, a few times over: what a feature is worth shows when others are missing.
        """
        generator = torch.Generator().manual_seed(0)
        index = self._validation_rows(count, generator).to(self._rows.device)
        models = len(index)
        at_once = min(1024, max(64, SAMPLED_CELLS // (self._rows.columns * models)))
        if self._noise is None:
            yield from (self._rows.take(part) for part in torch.split(index, at_once, dim=1))
            return
        looks = min(LOOKS, max(1, count // index.shape[1]))
        for part in torch.split(index.repeat(1, looks), min(at_once, self.size), dim=1):
            places = self._noise.draw_offsets(1, generator).to(self._rows.device).long().expand(models)
            yield self._rows.take(part, self._noise, places)

    def _validation_rows(self, count: int, generator: torch.Generator) -> Tensor:
        judged = [draws.judged for draws in self._draws if draws.judged is not None]
        if judged:
            return torch.stack(judged)[:, :count]
        count = min(count, self._rows.count)
        index = torch.randperm(self._rows.count, generator=generator)[:count]
        return index.expand(len(self._draws), -1)

    def _next_drawn(self) -> BatchOrder:
        """The batches to come; an accelerator's are drawn while it works."""
        if self._worker is None:
            return self._draw()
        drawn = self._draw() if self._next is None else self._next.result()
        self._next = self._worker.submit(self._draw)
        return BatchOrder(drawn.rows.to(self._rows.device), drawn.places.to(self._rows.device))

    def _draw(self) -> BatchOrder:
        shape = (self._passes, self._per_pass, len(self._draws))
        rows = torch.empty(*shape, self.size, dtype=torch.int32)
        places = torch.zeros(shape, dtype=torch.int32)
        for some, starts in zip(rows, places, strict=True):
            for model, draws in enumerate(self._draws):
                some[:, model] = self._shuffled(draws)
                if self._noise is not None:
                    starts[:, model] = self._noise.draw_offsets(self._per_pass, draws.noise)
        return BatchOrder(rows.flatten(0, 1), places.flatten(0, 1))

    def _shuffled(self, draws: MemberData) -> Tensor:
        """One pass over a model's rows, in batches (m, B)."""
        if self.size == self._count:  # all of them at once, in any order
            return (torch.arange(self._count) if draws.learns is None else draws.learns)[None]
        drawn = torch.randperm(self._count, generator=draws.order)
        drawn = drawn if draws.learns is None else draws.learns[drawn]
        batches = drawn[: self._per_pass * self.size].view(self._per_pass, self.size)
        # In the table's own order a CPU gathers a batch's rows faster.
        return batches if self._worker else torch.from_numpy(np.sort(batches.numpy()))


def _whole_table(rows: DeviceTable, trials: int) -> Batch:
    every = torch.arange(rows.count, device=rows.device).repeat(trials, 1)
    y = rows.y.expand(trials, *rows.y.shape)
    w = None if rows.w is None else rows.w.expand(trials, -1)
    if rows.x is not None:
        return _Whole(rows, every, y, w)
    one = rows.take(every[:1])
    return Batch(one.x.expand(trials, -1, -1), y, w)


class _Whole(IndexedBatch):
    """The table itself as a batch: the trials share it without a copy."""

    @property
    def x(self) -> Tensor:
        assert self.rows.x is not None
        return self.rows.x.expand(len(self.index), -1, -1)
