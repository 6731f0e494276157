"""A shard's rows in windows that are mixed whole, each from a seed of its own.

A window depends on nothing but where it begins, so a pass can be taken up again at any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch, prefetch_parallel, reader_threads
from seqatt.data.files.rows import EncodedRows, concatenate
from seqatt.data.files.shards import ShardSlice

Read = Callable[
    [ShardSlice, int], Iterator[tuple[EncodedRows, float]]
]  # a piece, without so many of its rows


class WindowStart(NamedTuple):
    """Where a window begins: at a row of a piece, after ``seen`` rows in all, of which ``lost`` were planned
    but could not be read."""

    window: int = 0
    piece: int = 0
    row: int = 0
    seen: int = 0
    lost: int = 0


class SkippedSlice(NamedTuple):
    """A piece that could not be read to its end. ``rows`` are those lost, where that is known."""

    piece: int
    row: int
    rows: int | None
    why: str


class ShuffleWindow(NamedTuple):
    mark: WindowStart
    rows: EncodedRows | None
    expected: float
    skips: tuple[SkippedSlice, ...]


class _Block(NamedTuple):
    piece: int
    row: int
    rows: EncodedRows | None
    expected: float
    lost: int
    skip: SkippedSlice | None


def shuffled_windows(
    pieces: Sequence[ShardSlice],
    read: Read,
    size: int,
    seed: Sequence[int],
    *,
    mark: WindowStart,
    ended: Mapping[int, int] | None = None,
    skip: bool = False,
) -> Iterator[ShuffleWindow]:
    """Windows of ``size`` rows from ``mark`` on; the last one may be smaller.

    ``ended`` are pieces known to end early, and where. With ``skip`` a piece that cannot be read ends there,
    and the window says so; without, that is an error.
    """
    blocks = prefetch(_blocks(pieces, read, mark, dict(ended or {}), skip), PREFETCHED_BLOCKS)
    held: list[EncodedRows] = []
    skips: list[SkippedSlice] = []
    count, expected = 0, 0.0
    for block in blocks:
        expected = block.expected
        if block.skip:
            skips.append(block.skip)
        rows, row = block.rows, block.row
        while rows is not None and rows.count:
            some = rows.take(slice(size - count))
            rows = rows.take(slice(size - count, None))
            held.append(some)
            count += some.count
            row += some.count
            if count == size:
                yield ShuffleWindow(mark, _mix(held, [*seed, mark.window]), expected, tuple(skips))
                mark = WindowStart(mark.window + 1, block.piece, row, mark.seen + size, block.lost)
                held, skips, count = [], [], 0
    if count or skips:
        mixed = _mix(held, [*seed, mark.window]) if held else None
        yield ShuffleWindow(mark, mixed, expected, tuple(skips))


def _mix(held: list[EncodedRows], seed: list[int]) -> EncodedRows:
    rows = concatenate(held)
    return rows.take(np.random.default_rng(seed).permutation(rows.count))


def _blocks(
    pieces: Sequence[ShardSlice], read: Read, mark: WindowStart, ended: dict[int, int], skip: bool
) -> Iterator[_Block]:
    """Decoded blocks, each with the number of rows to expect, which gets surer as files end."""
    counts = [piece.rows for piece in pieces]
    planned = None if None in counts else sum(count or 0 for count in counts)
    whole = sum(piece.size for piece in pieces)
    before = sum(piece.size for piece in pieces[: mark.piece])
    given, lost = mark.seen - mark.row, mark.lost  # rows of the pieces before

    def expect(seen: int, share: float, size: float) -> float:
        if planned is not None:
            return float(planned - lost)
        return max(seen, seen * whole / max(1.0, before + share * size))

    def reading(number: int) -> Callable[[], Iterator[tuple[EncodedRows, float]]]:
        row = mark.row if number == mark.piece else 0
        left = ended.get(number, pieces[number].rows)
        return partial(iter, ()) if left is not None and row >= left else partial(read, pieces[number], row)

    numbers = range(mark.piece, len(pieces))
    # Several pieces are read at once and given out in their order.
    for number, found in zip(
        numbers, prefetch_parallel(map(reading, numbers), reader_threads()), strict=True
    ):
        piece, last = pieces[number], ended.get(number)
        row = mark.row if number == mark.piece else 0
        failure: SkippedSlice | None = None
        try:
            for rows, share in found:
                if last is not None:
                    rows = rows.take(slice(last - row))
                expected = expect(given + row + rows.count, share, piece.size)
                yield _Block(number, row, rows, expected, lost, None)
                row += rows.count
                if row == last:
                    break
        except ValueError as error:
            if not skip:
                raise
            failure = SkippedSlice(number, row, None if piece.rows is None else piece.rows - row, str(error))
        if failure or last is not None:
            lost += 0 if piece.rows is None else piece.rows - row
            yield _Block(number, row, None, expect(given + row, 1.0, piece.size), lost, failure)
        given += row
        before += piece.size
