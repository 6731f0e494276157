"""Loaders: batches for training. That of a table draws a random order per model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from seqatt.data.tables.row_units import adjacent_order
from seqatt.training.loaders.batch import Batch, DeviceTable, IndexedBatch
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.state import Arrays, Stateful, copy_state, load_state

CHUNK_STEPS = 64  # batches loaded at a time, at most: the steps an accelerator gets in one chunk
CHUNK_ROWS = 1 << 22  # row numbers loaded at a time, at most
# Batches whose order is drawn at a time for an accelerator, at least: enough for the chunk that trains while a thread
# draws the next ones, and no more, because training waits for the first ones.
ORDERED_BATCHES = 2 * CHUNK_STEPS
VALIDATION_CELLS = 1 << 24  # inputs per validation batch, at most: wide tables get fewer rows per batch
VALIDATION_REPEATS = 4  # times a validation row is used, with different dropped inputs, at most


@dataclass(frozen=True)
class MemberData:
    """One model's random generators, and its training and validation rows where it does not use all."""

    order: torch.Generator
    noise: torch.Generator
    train_rows: Tensor | None = None
    validation_rows: Tensor | None = None


class Loader(Protocol):
    """Batches for the models of one trainer. ``load`` makes some ready, then ``batch`` returns each of them."""

    @property
    def batch_size(self) -> int:
        """The most rows per batch."""

    @property
    def chunk_steps(self) -> int:
        """The most batches that ``load`` makes ready."""

    @property
    def graph_capturable(self) -> bool:
        """Whether the batches made ready are in the same memory as those before, as CUDA graphs require."""

    def load(self, count: int) -> None:
        """Make the next ``count`` batches ready."""

    def batch(self, i: int) -> Batch:
        """Batch ``i`` of those made ready."""

    def validation_batches(self, count: int, *, drop_inputs: bool = True) -> Iterator[Batch]:
        """Up to ``count`` rows per model for validation, in batches; every call returns the same rows."""

    def state_arrays(self) -> Arrays:
        """Copies of everything that later batches depend on, for a checkpoint."""

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore what ``state_arrays`` returned."""


class BatchOrder(NamedTuple):
    """The next m batches: row numbers ``rows`` (m, T, B) and ``offsets`` (m, T) into the dropout bank.

    ``state`` is that of the members' generators before the order was drawn.
    """

    rows: Tensor
    offsets: Tensor
    state: Arrays


class InMemoryLoader:
    """An endless sequence of batches; each pass over the rows uses a new order, drawn from the seed.

    ``load`` writes row numbers, targets and weights of the next few batches into fixed buffers, so that a
    step captured in a CUDA graph finds its batch at the same address. If a batch is as large as the table,
    it is the table itself, in its own order and without a copy; on a CPU, all training rows as one batch are gathered
    once.
    """

    def __init__(
        self,
        table: DeviceTable,
        batch_size: int,
        members: Sequence[MemberData],
        dropout: InputDropout | None = None,
    ) -> None:
        self._members = list(members)
        train_rows = members[0].train_rows
        self._count = table.count if train_rows is None else len(train_rows)
        models, batch_size = len(members), min(batch_size, self._count)
        self.batch_size = batch_size
        self._per_pass = self._count // batch_size
        self._passes = -(-ORDERED_BATCHES // self._per_pass) if table.device.type != "cpu" else 1
        self._dropout = dropout
        self.use_table(table)
        self._order = BatchOrder(torch.empty(0, models, batch_size), torch.empty(0, models), {})
        self._cursor = 0  # of the next batch in the order
        self._worker = ThreadPoolExecutor(1) if table.device.type != "cpu" else None
        self._next: Future[BatchOrder] | None = None

    def use_table(self, table: DeviceTable) -> None:
        """Take batches from this table, which has the same rows, and may have other columns."""
        models, batch_size = len(self._members), self.batch_size
        self._table = table
        self.graph_capturable = table.x is not None  # rows of a sparse table are gathered on the host
        self.chunk_steps = CHUNK_STEPS
        self._whole: Batch | None = None
        if batch_size == table.count and self._dropout is None:
            self._whole = table.whole(models)
            return
        if batch_size == self._count < table.count and self._dropout is None and table.device.type == "cpu":
            self._whole = self._all_training_rows()
            return
        self.chunk_steps = min(CHUNK_STEPS, max(8, CHUNK_ROWS // (models * batch_size) // 8 * 8))
        shape = self.chunk_steps, models, batch_size
        self._index = torch.empty(shape, dtype=torch.int64, device=table.device)
        self._offsets = torch.zeros(shape[:2], dtype=torch.int64, device=table.device)
        self._y = table.y.new_empty(*shape, *table.y.shape[1:])
        self._w = None if table.w is None else table.w.new_empty(shape)
        self._buffer = None if table.x is None else table.x.new_empty(models, batch_size, table.columns)
        self._batches = [self._make_batch(i) for i in range(self.chunk_steps)]
        self._current = self._batches[0]

    def _all_training_rows(self) -> Batch:
        rows = torch.stack([member.train_rows for member in self._members if member.train_rows is not None])
        indexed = self._table.batch(rows)
        # Column after column, as the layers compute: the first product of every step takes a third less, and its
        # result is the same.
        return Batch(indexed.x.mT.contiguous().mT, indexed.y, indexed.w, indexed.codes)

    def load(self, count: int) -> None:
        """Write the next ``count`` batches, at most ``chunk_steps``, into the buffers."""
        if self._whole is not None:
            return
        done = 0
        while done < count:
            if self._cursor == len(self._order.rows):
                self._order, self._cursor = self._next_order(), 0
            size = min(count - done, len(self._order.rows) - self._cursor)
            self._index[done : done + size] = self._order.rows[self._cursor : self._cursor + size]
            self._offsets[done : done + size] = self._order.offsets[self._cursor : self._cursor + size]
            self._cursor += size
            done += size
        rows = self._index[:count].flatten()
        torch.index_select(self._table.y, 0, rows, out=self._y[:count].flatten(0, 2))
        if self._w is not None and self._table.w is not None:
            torch.index_select(self._table.w, 0, rows, out=self._w[:count].flatten())

    def batch(self, i: int) -> Batch:
        """Batch ``i`` of those last loaded."""
        if self._whole is not None:
            return self._whole
        self._current.invalidate()  # releases the rows of a sparse table's last batch
        self._current = self._batches[i]
        return self._current.invalidate()

    def _make_batch(self, i: int) -> IndexedBatch:
        w = None if self._w is None else self._w[i]
        return IndexedBatch(
            self._table, self._index[i], self._y[i], w, self._buffer, self._dropout, self._offsets[i]
        )

    def rows(self, index: Tensor) -> Batch:
        """The rows numbered by ``index`` (n,) as a batch for all models."""
        return self._table.batch(index.expand(len(self._members), -1))

    def validation_batches(self, count: int, *, drop_inputs: bool = True) -> Iterator[Batch]:
        """Up to ``count`` rows per model for validation, in batches; every call returns the same rows.

        They are the model's validation rows, where it has such, else random rows of the table. Where
        training drops inputs, so does validation, unless ``drop_inputs`` is False: how useful a feature is also
        shows where other features are missing. Rows are then used up to ``VALIDATION_REPEATS`` times.
        """
        generator = torch.Generator().manual_seed(0)
        index = self._validation_rows(count, generator)
        dropout = self._dropout if drop_inputs else None
        return validation_batches(self._table, index, count, self.batch_size, dropout, generator)

    def _validation_rows(self, count: int, generator: torch.Generator) -> Tensor:
        held_out = [member.validation_rows for member in self._members if member.validation_rows is not None]
        if held_out:
            return spread_rows(torch.stack(held_out), count)
        count = min(count, self._table.count)
        index = torch.randperm(self._table.count, generator=generator)[:count]
        return index.expand(len(self._members), -1)

    def _next_order(self) -> BatchOrder:
        """The order of the next batches; for an accelerator a thread draws it while the device works."""
        if self._worker is None:
            return self._draw_order()
        order = self._draw_order() if self._next is None else self._next.result()
        self._next = self._worker.submit(self._draw_order)
        return BatchOrder(
            order.rows.to(self._table.device), order.offsets.to(self._table.device), order.state
        )

    def state_arrays(self) -> Arrays:
        if self._whole is not None:
            return {}
        state = self._order.state or copy_state(self._named_generators())
        return {"cursor": np.array(self._cursor), "drawn": np.array(len(self._order.rows) > 0), **state}

    def load_arrays(self, arrays: Arrays) -> None:
        if self._whole is not None:
            return
        if self._next is not None:
            self._next.result()
        load_state(self._named_generators(), arrays)
        self._next = None
        if arrays["drawn"]:
            self._order = self._next_order()
        self._cursor = int(arrays["cursor"])

    def _named_generators(self) -> Iterator[tuple[str, Stateful]]:
        for number, member in enumerate(self._members):
            yield f"order{number}", member.order
            yield f"noise{number}", member.noise

    def _draw_order(self) -> BatchOrder:
        state = copy_state(self._named_generators())
        shape = (self._passes, self._per_pass, len(self._members))
        rows = torch.empty(*shape, self.batch_size, dtype=torch.int32)
        offsets = torch.zeros(shape, dtype=torch.int32)
        for pass_rows, pass_offsets in zip(rows, offsets, strict=True):
            for i, member in enumerate(self._members):
                pass_rows[:, i] = self._shuffle(member)
                if self._dropout is not None:
                    pass_offsets[:, i] = self._dropout.draw_offsets(self._per_pass, member.noise)
        return BatchOrder(rows.flatten(0, 1), offsets.flatten(0, 1), state)

    def _shuffle(self, member: MemberData) -> Tensor:
        """One pass over a model's training rows, in m batches (m, B)."""
        if self.batch_size == self._count:  # a single batch: the order does not matter
            return (torch.arange(self._count) if member.train_rows is None else member.train_rows)[None]
        rows = torch.randperm(self._count, generator=member.order)
        rows = rows if member.train_rows is None else member.train_rows[rows]
        if self._table.queries is not None:
            rows = rows[torch.from_numpy(adjacent_order(self._table.queries[rows.numpy()]))]
        batches = rows[: self._per_pass * self.batch_size].view(self._per_pass, self.batch_size)
        # A CPU gathers the rows of a batch faster in the order of the table.
        return batches if self._worker else torch.from_numpy(np.sort(batches.numpy()))


def spread_rows(rows: Tensor, count: int) -> Tensor:
    """At most ``count`` of the row numbers (T, n) of each model, at equal distances."""
    return rows if rows.shape[1] <= count else rows[:, torch.arange(count) * rows.shape[1] // count]


def validation_batches(
    table: DeviceTable,
    index: Tensor,
    count: int,
    batch_size: int,
    dropout: InputDropout | None,
    generator: torch.Generator,
) -> Iterator[Batch]:
    """The rows numbered by ``index`` (T, n) in batches, up to ``count`` rows where training drops inputs."""
    index, models = index.to(table.device), len(index)
    rows = min(1024, max(64, VALIDATION_CELLS // (max(1, table.columns) * models)))
    if dropout is None:
        yield from (table.batch(part) for part in torch.split(index, rows, dim=1))
        return
    repeats = min(VALIDATION_REPEATS, max(1, count // index.shape[1]))
    for part in torch.split(index.repeat(1, repeats), min(rows, batch_size), dim=1):
        offsets = dropout.draw_offsets(1, generator).to(table.device).long().expand(models)
        yield table.batch(part, dropout, offsets)
