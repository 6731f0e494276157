"""Batches for networks that train together: each network has the columns of its set and the rows of its seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.training.ensemble import NOISE, ORDER, Member
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.loaders.row_order import shuffle_batches


class Network(NamedTuple):
    """A network to train: the positions of its columns and of its columns of codes, and its seed."""

    columns: tuple[int, ...]
    coded: tuple[int, ...]
    seed: int


class SeedBatches:
    """The rows of the batches of one seed, and their offsets into the bank of dropped inputs.

    A batch as large as the table is the table, in its own order.
    """

    def __init__(
        self, seed: int, rows: int, batch_size: int, queries: NDArray[np.float32] | None = None
    ) -> None:
        self._queries = queries
        member = Member(seed, 0)
        self._order, self._noise = member.generator(ORDER), member.generator(NOISE)
        self._rows, self._batch_size = rows, batch_size
        self._batches: deque[tuple[Tensor, int]] = deque()

    def next(self, dropout: InputDropout | None) -> tuple[Tensor, int]:
        """The rows (B,) of the next batch, sorted, and its offset into the bank of ``dropout``."""
        if not self._batches:
            rows = shuffle_batches(self._rows, self._batch_size, self._order, queries=self._queries)
            offsets = [0] * len(rows)
            if dropout is not None:
                offsets = dropout.draw_offsets(len(rows), self._noise).tolist()
            self._batches.extend(zip(rows.unbind(), offsets, strict=True))
        return self._batches.popleft()


class SetInputs:
    """The inputs of T networks: each network has the columns of its set, padded to a common width."""

    def __init__(self, networks: Sequence[Network], width: int) -> None:
        self._sets = list(dict.fromkeys(network.columns for network in networks))
        self.set_of = torch.tensor([self._sets.index(network.columns) for network in networks])
        self.width, self.coded = width, list(networks[0].coded)

    def tables(self, columns: NDArray[np.float32]) -> Tensor:
        """The columns of each set, padded with zeros, and ones in the last column: (sets, n, width)."""
        tables = np.zeros((len(self._sets), len(columns), self.width), dtype=np.float32)
        for table, positions in zip(tables, self._sets, strict=True):
            table[:, : len(positions)] = columns[:, list(positions)]
            table[:, -1] = 1
        return torch.from_numpy(tables)

    def codes(self, codes: NDArray[np.int32]) -> Tensor | None:
        """The codes (T, n, m) of rows that are the same for every network."""
        coded = torch.from_numpy(codes[:, self.coded])
        return coded.expand(len(self.set_of), *coded.shape) if self.coded else None


class SetBatches:
    """Batches of T networks; networks of one seed are adjacent. ``load`` draws the rows of some steps."""

    def __init__(
        self,
        data: TableData,
        networks: Sequence[Network],
        inputs: SetInputs,
        batch_size: int,
        dropout: InputDropout | None,
    ) -> None:
        assert isinstance(data.columns, np.ndarray)
        self._dropout, self._width, self._batch_size = dropout, inputs.width, batch_size
        seeds = list(dict.fromkeys(network.seed for network in networks))
        self._seed_of = torch.tensor([seeds.index(network.seed) for network in networks])
        ends = np.cumsum(np.bincount(self._seed_of.numpy())).tolist()
        self._slices = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        self._orders = [SeedBatches(seed, data.rows, batch_size, data.target.queries) for seed in seeds]
        self._codes = torch.from_numpy(data.codes[:, inputs.coded]) if inputs.coded else None
        self._y = torch.from_numpy(np.ascontiguousarray(data.target.values))
        self._w = None if data.weights is None else torch.from_numpy(data.weights)
        tables = inputs.tables(data.columns)
        self._whole = tables[inputs.set_of] if batch_size == data.rows else None
        self._table_rows = tables.flatten(0, 1)
        self._first_rows = inputs.set_of[:, None] * data.rows  # of the table of each network
        self._rows: list[Tensor] = []  # (seeds, B) per step
        self._offsets: list[list[int]] = []
        self._targets: tuple[Tensor, Tensor | None] = self._y, self._w

    def load(self, steps: int) -> None:
        """Draw the rows, and gather the targets, of the next steps."""
        self._rows, self._offsets = [], []
        for _ in range(steps):
            rows, offsets = zip(*(order.next(self._dropout) for order in self._orders), strict=True)
            self._rows.append(torch.stack(rows))
            self._offsets.append(list(offsets))
        rows_of_networks = torch.stack(self._rows)[:, self._seed_of]
        weights = None if self._w is None else self._w[rows_of_networks]
        self._targets = self._y[rows_of_networks], weights

    def fill(self, step: int, x: Tensor) -> None:
        """Write the inputs of a step into ``x`` (T, padded rows, width)."""
        inputs = x[:, : self._batch_size]
        if self._whole is None:
            index = self._rows[step].new_zeros(x.shape[:2])
            torch.add(self._rows[step][self._seed_of], self._first_rows, out=index[:, : self._batch_size])
            torch.index_select(self._table_rows, 0, index.flatten(), out=x.flatten(0, 1))
        if self._dropout is None:
            if self._whole is not None:
                inputs.copy_(self._whole)
            return
        cells = self._batch_size * self._width
        source = inputs if self._whole is None else self._whole
        for networks, offset in zip(self._slices, self._offsets[step], strict=True):
            factors = self._dropout.bank[offset : offset + cells].view(self._batch_size, self._width)
            torch.mul(source[networks], factors, out=inputs[networks])
        inputs[:, :, -1] = 1

    def targets(self, step: int) -> tuple[Tensor, Tensor | None]:
        """Targets (T, B) or (T, B, o), and weights (T, B)."""
        y, w = self._targets
        return y[step], None if w is None else w[step]

    def codes(self, step: int) -> Tensor | None:
        """The codes (T, B, m) of a step."""
        if self._codes is None:
            return None
        codes = self._codes[self._rows[step]]
        if self._dropout is not None:
            self._dropout.apply_to_codes(codes, torch.tensor(self._offsets[step]))
        return codes[self._seed_of]
