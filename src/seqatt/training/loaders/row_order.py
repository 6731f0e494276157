"""The order in which models see the rows of a table: a new one for every pass, given by the seed of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.row_units import adjacent_order
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.state import Arrays, Stateful, copy_state, load_state

# Constants of SplitMix64 (Steele, Lea and Flood 2014) as signed numbers: its step, and the factors of its hash.
STEP, FACTORS = -7046029254386353131, (-4658895280553007687, -7723592293110705685)

CELLS_AT_A_TIME = 1 << 24  # rows of models and passes that are sorted together, at most


class BatchOrder(Protocol):
    """Draws the rows of the next batches of T models, in whole passes."""

    def draw(self) -> Tensor:
        """Row numbers (m, T, B) of the next m batches, whole numbers of any type on the device of the table."""

    def state_arrays(self) -> Arrays:
        """Copies of everything that the next draw depends on, for a checkpoint."""

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore what ``state_arrays`` returned."""


class ShuffledRows:
    """One pass at a time, a random permutation per model by a generator on the host."""

    def __init__(
        self,
        table: DeviceTable,
        count: int,
        batch_size: int,
        generators: Sequence[torch.Generator],
        train_rows: Sequence[Tensor | None],
    ) -> None:
        """``count`` rows per model, those numbered ``train_rows`` or, if None, all of the table."""
        self._device, self._queries = table.device, table.queries
        self._count, self._batch_size = count, batch_size
        self._generators, self._train_rows = list(generators), list(train_rows)

    def draw(self) -> Tensor:
        pairs = zip(self._generators, self._train_rows, strict=True)
        sort = self._device.type == "cpu"
        passes = [
            shuffle_batches(self._count, self._batch_size, generator, train_rows, self._queries, sort=sort)
            for generator, train_rows in pairs
        ]
        return torch.stack(passes, 1).to(self._device)

    def state_arrays(self) -> Arrays:
        return copy_state(self._named_generators())

    def load_arrays(self, arrays: Arrays) -> None:
        load_state(self._named_generators(), arrays)

    def _named_generators(self) -> Iterator[tuple[str, Stateful]]:
        yield from ((f"order{number}", generator) for number, generator in enumerate(self._generators))


def shuffle_batches(
    count: int,
    batch_size: int,
    generator: torch.Generator,
    train_rows: Tensor | None = None,
    queries: NDArray[np.float32] | None = None,
    *,
    sort: bool = True,
) -> Tensor:
    """One pass over ``count`` rows in random order, in m batches (m, B) of row numbers.

    The rows are those numbered ``train_rows`` or, if None, all of the table; those of one query are adjacent. ``sort``
    the rows of each batch on a CPU, which gathers them faster in the order of the table.
    """
    if batch_size == count:  # a single batch: the order does not matter
        return (torch.arange(count) if train_rows is None else train_rows)[None]
    rows = torch.randperm(count, generator=generator)
    rows = rows if train_rows is None else train_rows[rows]
    if queries is not None:
        rows = rows[torch.from_numpy(adjacent_order(queries[rows.numpy()]))]
    batches = rows[: count // batch_size * batch_size].view(-1, batch_size)
    return torch.from_numpy(np.sort(batches.numpy())) if sort else batches


class HashedRows:
    """Rows sorted by a hash of the model's seed, the pass and the row, on an accelerator.

    A few kernels draw the batches of all models for a chunk of steps, and the host neither draws nor copies row
    numbers: for forty models it took longer than their training.
    """

    def __init__(
        self,
        table: DeviceTable,
        count: int,
        batch_size: int,
        generators: Sequence[torch.Generator],
        train_rows: Sequence[Tensor | None],
        batches: int,
    ) -> None:
        """At least ``batches`` batches are drawn at a time; the other arguments are those of ``ShuffledRows``."""
        device = table.device
        self._count, self._batch_size = count, batch_size
        self._passes, self._done = -(-batches // (count // batch_size)), 0
        self._seeds = torch.tensor([generator.initial_seed() for generator in generators], device=device)
        own = [rows for rows in train_rows if rows is not None]
        self._train_rows = torch.stack(own).to(device) if own else None
        self._rows = torch.arange(count, device=device)

    def draw(self) -> Tensor:
        models, first = len(self._seeds), self._done
        self._done += self._passes
        if self._batch_size == self._count:  # a single batch: the order does not matter
            rows = self._rows.expand(models, -1) if self._train_rows is None else self._train_rows
            return rows.expand(self._passes, -1, -1)
        numbers = first + torch.arange(self._passes, device=self._rows.device)
        size = max(1, CELLS_AT_A_TIME // (self._passes * self._count))
        blocks = [slice(start, start + size) for start in range(0, models, size)]
        return torch.cat([self._sort(numbers, block) for block in blocks], 1)

    def _sort(self, passes: Tensor, models: slice) -> Tensor:
        """The batches (m, t, B) of some models in the passes with these numbers."""
        seeds = self._seeds[models]
        streams = _hash(seeds + (passes[:, None] + 1) * STEP)
        keys = _hash(streams[:, :, None] + (self._rows + 1) * STEP)
        used = self._count // self._batch_size * self._batch_size
        order = keys.argsort(dim=2, stable=True)[:, :, :used]
        if self._train_rows is not None:
            order = self._train_rows[models].expand(len(passes), -1, -1).gather(2, order)
        batches = order.view(len(passes), len(seeds), -1, self._batch_size).transpose(1, 2).flatten(0, 1)
        return batches.to(torch.int32)

    def state_arrays(self) -> Arrays:
        return {"passes": np.array(self._done)}

    def load_arrays(self, arrays: Arrays) -> None:
        self._done = int(arrays["passes"])


def _hash(x: Tensor) -> Tensor:
    """The hash of SplitMix64 of each number, whose products overflow on purpose."""
    for bits, factor in zip((30, 27), FACTORS, strict=True):
        x = (x ^ _shift_right(x, bits)) * factor
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shift the 64 bits of each number; those that come in are 0."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
