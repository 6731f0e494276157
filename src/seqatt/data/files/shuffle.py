"""Shuffles the rows of a shard within windows, each with its own seed.

A window depends only on where it starts, so a pass can be resumed at the start of any window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from seqatt.data.files.encoding.rows import EncodedRows, concatenate
from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch, prefetch_parallel, reader_threads
from seqatt.data.files.shards import ShardSlice

# From a slice and a number of rows to skip at its start: blocks of its encoded rows, each with the share of the
# slice read so far (0 to 1).
Read = Callable[[ShardSlice, int], Iterator[tuple[EncodedRows, float]]]


class WindowStart(NamedTuple):
    """Where window number ``window`` starts: at row ``row`` of slice number ``slice_index``.

    ``seen`` rows of the shard come before it; ``lost`` rows before it could not be read.
    """

    window: int = 0
    slice_index: int = 0
    row: int = 0
    seen: int = 0
    lost: int = 0


class SkippedSlice(NamedTuple):
    """Slice number ``slice_index`` could not be read from ``row`` on; ``rows`` are lost, None if unknown."""

    slice_index: int
    row: int
    rows: int | None
    reason: str


class ShuffleWindow(NamedTuple):
    """Shuffled rows; None if there are only slices to report that could not be read.

    ``expected_rows`` is the number of rows of the whole shard, as far as it is known by now.
    """

    start: WindowStart
    rows: EncodedRows | None
    expected_rows: float
    skips: tuple[SkippedSlice, ...]


class _Block(NamedTuple):
    """Encoded rows of a slice, from ``row`` on."""

    slice_index: int
    row: int
    rows: EncodedRows | None
    expected_rows: float
    lost: int
    skip: SkippedSlice | None


def shuffled_windows(
    slices: Sequence[ShardSlice],
    read: Read,
    size: int,
    seed: Sequence[int],
    *,
    start: WindowStart,
    ended: Mapping[int, int],
    skip: bool,
) -> Iterator[ShuffleWindow]:
    """Windows of ``size`` rows of a shard, from ``start`` on; the last window may be smaller.

    ``ended`` maps slices that were found unreadable earlier to the row at which they end. With ``skip`` a slice
    that cannot be read ends there and is reported with the window; otherwise it is an error.
    """
    blocks = prefetch(_blocks(slices, read, start, ended, skip), PREFETCHED_BLOCKS)
    window: list[EncodedRows] = []
    skips: list[SkippedSlice] = []
    count, expected = 0, 0.0
    for block in blocks:
        expected = block.expected_rows
        if block.skip:
            skips.append(block.skip)
        rows, row = block.rows, block.row
        while rows is not None and rows.count:
            head = rows.take(slice(size - count))
            rows = rows.take(slice(size - count, None))
            window.append(head)
            count += head.count
            row += head.count
            if count == size:
                yield ShuffleWindow(start, _shuffle(window, [*seed, start.window]), expected, tuple(skips))
                start = WindowStart(start.window + 1, block.slice_index, row, start.seen + size, block.lost)
                window, skips, count = [], [], 0
    if count or skips:
        shuffled = _shuffle(window, [*seed, start.window]) if window else None
        yield ShuffleWindow(start, shuffled, expected, tuple(skips))


def _shuffle(blocks: list[EncodedRows], seed: list[int]) -> EncodedRows:
    rows = concatenate(blocks)
    blocks.clear()  # their memory is free before that of the shuffled rows is taken
    return rows.take(np.random.default_rng(seed).permutation(rows.count))


def _blocks(
    slices: Sequence[ShardSlice], read: Read, start: WindowStart, ended: Mapping[int, int], skip: bool
) -> Iterator[_Block]:
    """Encoded blocks with the expected number of rows, an estimate that improves as more is read."""
    counts = [part.rows for part in slices]
    planned = None if None in counts else sum(count or 0 for count in counts)
    total_size = sum(part.size for part in slices)
    size_before = sum(part.size for part in slices[: start.slice_index])
    rows_before, lost = start.seen - start.row, start.lost  # of the slices before this one

    def expected_rows(seen: int, share: float, size: float) -> float:
        if planned is not None:
            return float(planned - lost)
        return max(seen, seen * total_size / max(1.0, size_before + share * size))

    def reader(number: int) -> Callable[[], Iterator[tuple[EncodedRows, float]]]:
        row = start.row if number == start.slice_index else 0
        end = ended.get(number, slices[number].rows)
        return partial(iter, ()) if end is not None and row >= end else partial(read, slices[number], row)

    numbers = range(start.slice_index, len(slices))
    # Several slices are read at the same time; their blocks are yielded in order.
    for number, blocks in zip(
        numbers, prefetch_parallel(map(reader, numbers), reader_threads()), strict=True
    ):
        current, end = slices[number], ended.get(number)
        row = start.row if number == start.slice_index else 0
        failure: SkippedSlice | None = None
        try:
            for rows, share in blocks:
                if end is not None:
                    rows = rows.take(slice(end - row))
                expected = expected_rows(rows_before + row + rows.count, share, current.size)
                yield _Block(number, row, rows, expected, lost, None)
                row += rows.count
                if row == end:
                    break
        except ValueError as error:
            if not skip:
                raise
            missing = None if current.rows is None else current.rows - row
            failure = SkippedSlice(number, row, missing, str(error))
        if failure or end is not None:
            lost += 0 if current.rows is None else current.rows - row
            expected = expected_rows(rows_before + row, 1.0, current.size)
            yield _Block(number, row, None, expected, lost, failure)
        rows_before += row
        size_before += current.size
