"""Who reads which rows: every row of a pass belongs to one shard.

A shard is read by one rank. Its rows depend on the number of shards, not on who reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from seqatt.data.files.file_set import RowGroup


@dataclass(frozen=True)
class ShardSlice:
    """Rows of a part that belong to one shard: from ``start`` to ``stop``, every ``step``-th."""

    part: RowGroup
    start: int = 0
    stop: int | None = None
    step: int = 1

    @property
    def rows(self) -> int | None:
        """How many, where the file says."""
        stop = self.part.rows if self.stop is None else self.stop
        return None if stop is None else len(range(self.start, stop, self.step))

    @property
    def size(self) -> float:
        """Bytes, as far as this piece is a share of its part's."""
        if self.part.rows and self.rows is not None:
            return self.part.size * self.rows / self.part.rows
        return self.part.size / self.step

    def ends_before(self, row: int) -> bool:
        """Whether nothing from this row of the part on belongs to it."""
        return self.stop is not None and row >= self.stop

    def cut(self, batch: Any, first: int) -> Any:
        """Its own rows of some that start at row ``first`` of the part."""
        stop = batch.num_rows if self.stop is None else min(batch.num_rows, self.stop - first)
        start = self.start - first
        start = min(start, batch.num_rows) if start >= 0 else start % self.step
        if self.step == 1:
            return batch.slice(start, max(0, stop - start))
        return batch.take(np.arange(start, stop, self.step))


def divide_rows(parts: Sequence[RowGroup], shards: int) -> list[list[ShardSlice]]:
    """Pieces for each shard, in the order of ``parts``.

    Where all files say how many rows they have, shards differ by a row at most, and a part that two of them
    share is read by both as far as they need it. Where not, shards take whole files, by their sizes; if there
    are fewer files than shards, every shard takes every so-manieth row of all.
    """
    counts = [part.rows for part in parts]
    if None not in counts:
        return _by_rows(parts, shards, [count for count in counts if count is not None])
    if shards == 1:
        return [[ShardSlice(part) for part in parts]]
    if len(parts) < shards:
        return [[ShardSlice(part, start=shard, step=shards) for part in parts] for shard in range(shards)]
    dealt: list[list[ShardSlice]] = [[] for _ in range(shards)]
    load = [0] * shards
    for part in parts:
        least = load.index(min(load))
        dealt[least].append(ShardSlice(part))
        load[least] += part.size
    return dealt


def _by_rows(parts: Sequence[RowGroup], shards: int, counts: list[int]) -> list[list[ShardSlice]]:
    ends = list(accumulate(counts))
    total = ends[-1]
    dealt = []
    for shard in range(shards):
        first, last = shard * total // shards, (shard + 1) * total // shards
        dealt.append(
            [
                ShardSlice(part, max(0, first - end + count), min(count, last - end + count))
                for part, count, end in zip(parts, counts, ends, strict=True)
                if end - count < last and end > first
            ]
        )
    return dealt


def count_shards(shards: int | None, ranks: int) -> int:
    """How many shards there are: what the user says, else one a rank."""
    shards = int(shards or ranks)
    if shards % ranks:
        raise ValueError(f"shards: {shards} cannot be shared by {ranks} ranks; use a multiple of {ranks}")
    return shards


def shards_of_rank(shards: int, rank: int, ranks: int) -> range:
    each = shards // ranks
    return range(rank * each, (rank + 1) * each)
