"""Divides the rows of a pass into shards, each read by one rank.

The rows of a shard depend on the number of shards, not on the number of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # readers of formats need pyarrow
    from seqatt.data.files.formats.file_format import RowGroup


@dataclass(frozen=True)
class ShardSlice:
    """The rows of a row group that belong to one shard: ``start:stop:step``."""

    row_group: RowGroup
    start: int = 0
    stop: int | None = None
    step: int = 1

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the file does not store it."""
        stop = self.row_group.rows if self.stop is None else self.stop
        return None if stop is None else len(range(self.start, stop, self.step))

    @property
    def size(self) -> float:
        """This slice's share of the bytes of its row group."""
        if self.row_group.rows and self.rows is not None:
            return self.row_group.size * self.rows / self.row_group.rows
        return self.row_group.size / self.step

    def ends_before(self, row: int) -> bool:
        """Whether the slice has no rows from this row of the row group on."""
        return self.stop is not None and row >= self.stop

    def row_numbers(self, first: int, count: int) -> NDArray[np.int64]:
        """The rows of the slice, numbered as in the row group, among ``count`` rows from row ``first`` on."""
        stop = first + count if self.stop is None else min(first + count, self.stop)
        start = self.start if self.start >= first else first + (self.start - first) % self.step
        return np.arange(min(start, first + count), stop, self.step)

    def contains(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows of the row group belong to the slice."""
        inside = (rows >= self.start) & ((rows - self.start) % self.step == 0)
        return np.asarray(inside if self.stop is None else inside & (rows < self.stop))

    def cut(self, batch: Any, first: int) -> Any:
        """The rows of the slice in a batch that starts at row ``first`` of the row group."""
        rows = self.row_numbers(first, batch.num_rows) - first
        if self.step == 1:
            return batch.slice(int(rows[0]) if len(rows) else 0, len(rows))
        return batch.take(rows)


def divide_rows(row_groups: Sequence[RowGroup], shards: int) -> list[list[ShardSlice]]:
    """The slices of each shard, in the order of ``row_groups``.

    If all files store their number of rows, shards differ by one row at most; a row group in two shards is
    read twice, each time only as far as needed. Otherwise shards get whole files of about equal size in total,
    or, if there are fewer files than shards, every ``shards``-th row of all files.
    """
    counts = [group.rows for group in row_groups]
    if None not in counts:
        return _by_rows(row_groups, shards, [count for count in counts if count is not None])
    if shards == 1:
        return [[ShardSlice(group) for group in row_groups]]
    if len(row_groups) < shards:
        return [
            [ShardSlice(group, start=shard, step=shards) for group in row_groups] for shard in range(shards)
        ]
    slices: list[list[ShardSlice]] = [[] for _ in range(shards)]
    sizes = [0] * shards
    for group in row_groups:
        smallest = sizes.index(min(sizes))
        slices[smallest].append(ShardSlice(group))
        sizes[smallest] += group.size
    return slices


def _by_rows(row_groups: Sequence[RowGroup], shards: int, counts: list[int]) -> list[list[ShardSlice]]:
    ends = list(accumulate(counts))
    total = ends[-1]
    slices = []
    for shard in range(shards):
        first, last = shard * total // shards, (shard + 1) * total // shards
        slices.append(
            [
                ShardSlice(group, max(0, first - end + count), min(count, last - end + count))
                for group, count, end in zip(row_groups, counts, ends, strict=True)
                if end - count < last and end > first
            ]
        )
    return slices


def count_shards(shards: int | None, ranks: int) -> int:
    """The number of shards: the option ``shards``, or one per rank if it is None."""
    shards = int(shards or ranks)
    if shards % ranks:
        raise ValueError(f"shards: {shards} cannot be shared by {ranks} ranks; use a multiple of {ranks}")
    return shards


def shards_of_rank(shards: int, rank: int, ranks: int) -> range:
    """The shards that one rank reads."""
    per_rank = shards // ranks
    return range(rank * per_rank, (rank + 1) * per_rank)
