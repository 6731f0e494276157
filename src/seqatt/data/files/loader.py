"""Batches from files: read ahead, mixed within windows, every row once a pass.

The order depends on the seed, the files and the number of shards alone: on no clock, thread, rank or size of
a block. ``FileLoader`` can say where it is, and another one goes on from there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from seqatt.data.files.errors import SkippedData
from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import RowGroup
from seqatt.data.files.options import FileOptions
from seqatt.data.files.prefetch import prefetch
from seqatt.data.files.rows import EncodedRows, concatenate
from seqatt.data.files.shards import ShardSlice, divide_rows
from seqatt.data.files.shuffle import Read, ShuffleWindow, SkippedSlice, WindowStart, shuffled_windows

Cursor = dict[str, Any]  # where a pass is, as JSON has it


class FileBatch(NamedTuple):
    """Some rows, and how many there will have been at the end of the pass, as far as is known by now.

    ``total`` counts those of all ranks. ``save`` and ``stop`` are what the ranks agreed to do after it.
    """

    rows: EncodedRows
    expected: float
    total: int
    save: bool = False
    stop: bool = False


class Vote(NamedTuple):
    """What all ranks together say of the next batch."""

    total: int
    expected: float
    save: bool = False
    stop: bool = False


Synchronize = Callable[[int, float, bool], Vote]  # my rows, those I expect, and whether I have failed


def single_process(rows: int, expected: float, failed: bool) -> Vote:
    """The vote of one who has nobody to ask."""
    return Vote(rows, expected)


class RowReader(NamedTuple):
    """Where rows come from: the parts, how they are read, and what a batch of none is."""

    parts: Sequence[RowGroup]
    read: Read
    none: EncodedRows


class ShuffleSettings(NamedTuple):
    """How they are mixed and dealt: ``size`` rows in a batch of all ``shards``, ``mine`` are read here."""

    size: int
    buffer: int
    seed: int
    passes: int = 1
    shards: int = 1
    mine: tuple[int, ...] = (0,)
    skip: bool = False


class FileLoader:
    """All passes, each in an order of its own; once one is over, the number of rows is known."""

    def __init__(
        self,
        reader: RowReader,
        mixing: ShuffleSettings,
        *,
        agree: Synchronize = single_process,
        position: Cursor | None = None,
    ) -> None:
        self._reader, self._mixing = reader, mixing
        self._agree = agree
        self._pass, self._rows, self._known = 0, 0, 0
        self.skips: list[dict[str, Any]] = []
        self._from: dict[str, list[int]] = {}
        if position is not None:
            self._pass, self._rows, self._known = position["pass"], position["rows"], position["known"]
            self.skips = [skip for skip in position["skips"] if skip["shard"] in mixing.mine]
            self._from = position["shards"]
        self._shards: list[_ShardCursor] = []

    def __iter__(self) -> Iterator[FileBatch]:
        try:
            while self._pass < self._mixing.passes:
                self._open()
                while batch := self._next():
                    self._rows += batch.total
                    yield batch
                self._close()
                self._known, self._rows, self._from = self._rows, 0, {}
                self._pass += 1
        finally:
            self._close()

    def position(self) -> Cursor:
        """Behind the last batch given; each rank knows of its own shards alone."""
        return {
            "pass": self._pass,
            "rows": self._rows,
            "known": self._known,
            "shards": {str(shard.number): shard.position() for shard in self._shards},
            "skips": list(self.skips),
        }

    def _open(self) -> None:
        mixing = self._mixing
        seed = [mixing.seed, self._pass]
        order = np.random.default_rng(seed).permutation(len(self._reader.parts))
        dealt = divide_rows([self._reader.parts[i] for i in order], mixing.shards)
        edges = [mixing.size * shard // mixing.shards for shard in range(mixing.shards + 1)]
        for shard in mixing.mine:
            size = max(1, edges[shard + 1] - edges[shard])
            window = max(1, mixing.buffer // mixing.shards // size) * size
            mark = self._from.get(str(shard), [*WindowStart(), 0])
            ended = {
                s["piece"]: s["row"] for s in self.skips if (s["pass"], s["shard"]) == (self._pass, shard)
            }
            coming = shuffled_windows(
                dealt[shard],
                self._reader.read,
                window,
                [*seed, shard],
                mark=WindowStart(*mark[:-1]),
                ended=ended,
                skip=mixing.skip,
            )
            self._shards.append(_ShardCursor(shard, dealt[shard], prefetch(coming, 1), size, mark))

    def _next(self) -> FileBatch | None:
        try:
            taken = [shard.take(self._skipped) for shard in self._shards]
        except Exception:
            self._agree(0, 0.0, True)
            raise
        some = [rows for rows in taken if rows is not None]
        rows = concatenate(some) if some else self._reader.none
        vote = self._agree(rows.count, sum(shard.expected for shard in self._shards), False)
        if not vote.total:
            return None
        expected = float(self._known) if self._pass else vote.expected
        return FileBatch(rows, expected, vote.total, vote.save, vote.stop)

    def _skipped(self, shard: _ShardCursor, skip: SkippedSlice) -> None:
        part = shard.pieces[skip.piece].part
        about = skip._asdict() | {"pass": self._pass, "shard": shard.number, "file": str(part.path)}
        self.skips.append(about | {"group": part.group})
        lost = "an unknown number of" if skip.rows is None else f"{skip.rows:,}"
        warnings.warn(f"{skip.why}; {lost} rows were skipped", SkippedData, stacklevel=2)

    def _close(self) -> None:
        for shard in self._shards:
            shard.close()
        self._shards = []


class _ShardCursor:
    """Cuts the windows of one shard into batches."""

    def __init__(
        self,
        number: int,
        pieces: Sequence[ShardSlice],
        coming: Iterator[ShuffleWindow],
        size: int,
        mark: list[int],
    ) -> None:
        self.number, self.pieces = number, pieces
        self.expected = 0.0
        self._coming, self._size = coming, size
        self._window: ShuffleWindow | None = None
        self._mark, self._taken = mark[:-1], mark[-1]  # batches taken of the window that begins there

    def take(self, skipped: Callable[[_ShardCursor, SkippedSlice], None]) -> EncodedRows | None:
        """The next rows, or None where there are no more."""
        while self._window is None or self._taken * self._size >= _count(self._window):
            window = next(self._coming, None)
            if window is None:
                return None
            if self._window is not None:
                self._taken = 0
            self._window, self._mark, self.expected = window, list(window.mark), window.expected
            for skip in window.skips:
                skipped(self, skip)
        assert self._window.rows is not None
        start = self._taken * self._size
        self._taken += 1
        return self._window.rows.take(slice(start, start + self._size))

    def position(self) -> list[int]:
        return [*self._mark, self._taken]

    def close(self) -> None:
        close = getattr(self._coming, "close", None)
        if close is not None:
            close()


def _count(window: ShuffleWindow) -> int:
    return 0 if window.rows is None else window.rows.count


def make_loader(
    stream: FileData,
    options: FileOptions,
    size: int,
    seed: int,
    *,
    passes: int = 1,
    mine: Sequence[int] = (0,),
    shards: int = 1,
    **others: Any,
) -> FileLoader:
    """All passes, each in an order of its own."""
    reader = RowReader(stream.files.parts, stream.read_piece, stream.no_rows())
    skip = options.on_bad_file == "skip"
    mixing = ShuffleSettings(size, options.buffer, seed, passes, shards, tuple(mine), skip)
    return FileLoader(reader, mixing, **others)
