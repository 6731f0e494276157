"""Batches of files for training: one stream per trial group, on whose batches all models of the group train."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seqatt.data.files.encoding.rows import EncodedRows, FileBatch
from seqatt.training.loaders.batch import Batch, DeviceTable, IndexedBatch
from seqatt.training.loaders.device_transfer import DeviceTransfer
from seqatt.training.loaders.in_memory import validation_batches
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.reducer import Reducer
from seqatt.training.state import Arrays, copy_state, load_state

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.loader import Cursor, FileLoader

Gather = Callable[[str], list[str]]  # from this rank's text to those of all ranks


class FileStream:
    """Reads one batch after another.

    ``position`` is how much of a training of ``steps`` steps is done: the share of the rows of all passes that were
    read. The number of rows may be an estimate until the first pass ends. With ``drop_weightless`` rows of weight
    zero, which are held out for validation, are removed from a batch; otherwise they stay in it without effect.
    """

    def __init__(
        self,
        batches: FileLoader,
        batch_size: int,
        steps: int,
        passes: int,
        device: torch.device,
        reducer: Reducer,
        *,
        multiclass: bool,
        drop_weightless: bool = False,
        gather: Gather = lambda text: [text],
        unopened: Sequence[dict[str, Any]] = (),
    ) -> None:
        """``unopened`` describes files that were skipped before anything was read."""
        self.batches = batches
        self._gather, self._unopened = gather, list(unopened)
        self.batch_size = batch_size
        self._steps, self._passes = steps, passes
        self._reducer = reducer
        self._multiclass, self._drop_weightless = multiclass, drop_weightless
        self._iterator: Iterator[FileBatch] | None = None
        self._transfer = DeviceTransfer(device)
        self.seen = 0  # rows of all ranks
        self.expected_rows = 1.0  # of one pass
        self.current: FileBatch | None = None
        self.table: DeviceTable | None = None  # the current batch
        self._fixed_table: DeviceTable | None = None  # that of all batches in fixed memory
        self.fixed_memory = False  # whether the current batch is where all batches of its size are

    def facts(self) -> dict[str, Any]:
        """The rows of a pass and, with ``on_bad_file="skip"``, what was skipped: for ``Selection.settings``."""
        facts: dict[str, Any] = {"rows": self.seen // self._passes}
        if self.batches.skips_bad_files:
            facts["skipped"] = [*self._unopened, *self.cursor()["skips"]]
        return facts

    def cursor(self) -> Cursor:
        """The cursor of all ranks' shards: each rank's loader knows only its own."""
        first, *others = (json.loads(text) for text in self._gather(json.dumps(self.batches.cursor())))
        for other in others:
            first["shards"] |= other["shards"]
            first["skips"] += other["skips"]
        return dict(first)

    def position(self) -> float:
        return self._steps * self.seen / (self._passes * self.expected_rows)

    def advance(self) -> bool:
        """Read the next batch; False if there is none."""
        if self._iterator is None:
            self._iterator = iter(self.batches)
        while True:
            batch = next(self._iterator, None)
            if batch is None:
                return False
            rows = batch.rows
            if not self._drop_weightless:
                break
            rows = rows.take(np.flatnonzero(rows.weights))
            # A user's own model may not accept a single row, as a batch normalisation does not.
            if self._reducer.ranks > 1 or rows.count >= min(2, self.batch_size):
                break
            self.seen += batch.total
        self.current, self.expected_rows = batch, batch.expected_rows
        self.seen += batch.total
        self._reducer.total = batch.total
        table = device_table(self._transfer, rows, self._multiclass, weighted=not self._drop_weightless)
        self.fixed_memory = self._transfer.fixed_size == rows.count
        if self.fixed_memory:
            if self._fixed_table is None:
                self._fixed_table = table
            elif self._fixed_table.y.data_ptr() != table.y.data_ptr():  # class numbers, which were converted
                self._fixed_table.y.copy_(table.y)
            table = self._fixed_table
        self.table = table
        return True

    def close(self) -> None:
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()

    def state(self) -> dict[str, Any]:
        """The state from which ``load_state`` continues after the current batch, for JSON."""
        return {"seen": self.seen, "expected_rows": self.expected_rows, "cursor": self.cursor()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.seen, self.expected_rows = state["seen"], state["expected_rows"]
        self.batches.seek(state["cursor"])


def device_table(
    transfer: DeviceTransfer, rows: EncodedRows, multiclass: bool, *, weighted: bool = True
) -> DeviceTable:
    """Encoded rows on the device."""
    batch = transfer.transfer(rows)
    y = batch.target.long() if multiclass else batch.target.unsqueeze(1)
    return DeviceTable(batch.numbers, y, batch.weights if weighted else None, batch.codes)


class StreamLoader:
    """The batches of a ``FileStream`` for T models. The stream is advanced once for all trainers of a group.

    ``noise`` are the generators of the models' dropped inputs. No model trains on the ``validation`` rows; model t
    validates on every ``part_count``-th of them, from number ``parts[t]`` on.
    """

    chunk_steps = 1

    def __init__(
        self,
        stream: FileStream,
        noise: Sequence[torch.Generator],
        dropout: InputDropout | None,
        validation: DeviceTable | None,
        parts: Sequence[int],
        part_count: int,
    ) -> None:
        self._stream, self._noise, self._dropout = stream, list(noise), dropout
        self._validation, self._parts, self._part_count = validation, list(parts), part_count
        self._offsets: Tensor | None = None
        self._indices: dict[int, Tensor] = {}
        self.batch_size = stream.batch_size

    @property
    def graph_capturable(self) -> bool:
        return self._stream.fixed_memory and self._dropout is None

    def load(self, count: int) -> None:
        if self._dropout is not None:
            drawn = [self._dropout.draw_offsets(1, generator) for generator in self._noise]
            assert self._stream.table is not None
            self._offsets = torch.cat(drawn).to(self._stream.table.device).long()

    def batch(self, i: int) -> Batch:
        table = self._stream.table
        assert table is not None
        index = self._index(table)
        if self._dropout is None:
            return table.whole(len(self._noise), index)
        models = len(self._noise)
        w = None if table.w is None else table.w.expand(models, -1)
        y = table.y.expand(models, *table.y.shape)
        assert self._stream.current is not None
        return IndexedBatch(
            table,
            index,
            y,
            w,
            dropout=self._dropout,
            offsets=self._offsets,
            first_row=self._stream.current.first_row,
        )

    def _index(self, table: DeviceTable) -> Tensor:
        """The numbers (T, B) of all rows of the batch, always in the same memory for one size."""
        if table.count not in self._indices:
            if len(self._indices) > 2:
                self._indices.popitem()
            numbers = torch.arange(table.count, device=table.device)
            self._indices[table.count] = numbers.repeat(len(self._noise), 1)
        return self._indices[table.count]

    def validation_batches(self, count: int, *, drop_inputs: bool = True) -> Iterator[Batch]:
        table = self._validation
        assert table is not None, "no rows were held out"
        per_part = max(1, table.count // self._part_count)
        rows = torch.arange(per_part)[:count] * self._part_count
        index = torch.stack([(rows + part).clamp_max(table.count - 1) for part in self._parts])
        generator = torch.Generator().manual_seed(0)
        dropout = self._dropout if drop_inputs else None
        return validation_batches(table, index, count, self.batch_size, dropout, generator)

    def state_arrays(self) -> Arrays:
        return copy_state((f"noise{i}", generator) for i, generator in enumerate(self._noise))

    def load_arrays(self, arrays: Arrays) -> None:
        load_state(((f"noise{i}", generator) for i, generator in enumerate(self._noise)), arrays)
