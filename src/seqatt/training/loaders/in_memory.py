"""Loaders: batches for training. That of a table draws a random order per model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from seqatt.training.loaders.batch import Batch, DeviceTable, IndexedBatch
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.loaders.row_order import BatchOrder, HashedRows, ShuffledRows
from seqatt.training.state import Arrays, Stateful, copy_state, load_state

CHUNK_STEPS = 64  # batches loaded at a time, at most: the steps an accelerator gets in one chunk
CHUNK_ROWS = 1 << 22  # row numbers loaded at a time, at most
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
        self._dropout = dropout
        self.use_table(table)
        self._order = self._make_order()
        self._rows = torch.empty(0, models, batch_size)  # row numbers (m, T, B) of the batches drawn last,
        self._drawn_offsets = torch.empty(0, models)  # and their offsets (m, T) into the dropout bank
        self._state: Arrays = {}  # from which they were drawn
        self._cursor = 0  # of the next batch among them
        # By the number of rows asked for: row numbers (T, n) for validation, and the generator's state after them.
        self._validation: dict[int, tuple[Tensor, Tensor]] = {}

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
            if self._cursor == len(self._rows):
                self._draw()
            size = min(count - done, len(self._rows) - self._cursor)
            drawn = slice(self._cursor, self._cursor + size)
            self._index[done : done + size] = self._rows[drawn]
            if self._dropout is not None:
                self._offsets[done : done + size] = self._drawn_offsets[drawn]
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
        if count not in self._validation:
            index = self._validation_rows(count, generator).to(self._table.device)
            self._validation[count] = index, generator.get_state()
        index, state = self._validation[count]
        generator.set_state(state)
        dropout = self._dropout if drop_inputs else None
        return validation_batches(self._table, index, count, self.batch_size, dropout, generator)

    def _validation_rows(self, count: int, generator: torch.Generator) -> Tensor:
        held_out = [member.validation_rows for member in self._members if member.validation_rows is not None]
        if held_out:
            return spread_rows(torch.stack(held_out), count)
        count = min(count, self._table.count)
        index = torch.randperm(self._table.count, generator=generator)[:count]
        return index.expand(len(self._members), -1)

    def _make_order(self) -> BatchOrder:
        table, generators = self._table, [member.order for member in self._members]
        train_rows = [member.train_rows for member in self._members]
        # The rows of a query are brought together on the host.
        if table.device.type == "cpu" or table.queries is not None:
            return ShuffledRows(table, self._count, self.batch_size, generators, train_rows)
        return HashedRows(table, self._count, self.batch_size, generators, train_rows, CHUNK_STEPS)

    def _draw(self) -> None:
        """Draw the next batches, in whole passes over the rows."""
        self._state = self._order.state_arrays() | copy_state(self._named_noise())
        self._rows = self._rows[:0]  # their memory is free before that of the next ones is taken
        self._rows, self._cursor = self._order.draw(), 0
        if self._dropout is not None:
            count = len(self._rows)
            offsets = [self._dropout.draw_offsets(count, member.noise) for member in self._members]
            self._drawn_offsets = torch.stack(offsets, 1).to(self._table.device)

    def state_arrays(self) -> Arrays:
        if self._whole is not None:
            return {}
        drawn = len(self._rows) > 0
        state = self._state if drawn else self._order.state_arrays() | copy_state(self._named_noise())
        return {"cursor": np.array(self._cursor), "drawn": np.array(drawn), **state}

    def load_arrays(self, arrays: Arrays) -> None:
        if self._whole is not None:
            return
        self._order.load_arrays(arrays)
        load_state(self._named_noise(), arrays)
        if arrays["drawn"]:
            self._draw()
        self._cursor = int(arrays["cursor"])

    def _named_noise(self) -> Iterator[tuple[str, Stateful]]:
        if self._dropout is not None:
            yield from ((f"noise{number}", member.noise) for number, member in enumerate(self._members))


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
