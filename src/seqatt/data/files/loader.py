"""Batches from files: prefetched, shuffled within windows, every row once per pass.

The order of the rows depends only on the seed, the files and the number of shards, not on threads, ranks or the
size of a block. The state of a ``FileLoader`` is its cursor, from which another loader continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from seqatt.data.files.encoding.rows import BatchAgreement, EncodedRows, FileBatch, concatenate
from seqatt.data.files.errors import warn_skipped
from seqatt.data.files.file_data import FileData
from seqatt.data.files.formats.file_format import RowGroup
from seqatt.data.files.options import FileOptions
from seqatt.data.files.prefetch import prefetch
from seqatt.data.files.shards import ShardSlice, divide_rows
from seqatt.data.files.shuffle import Read, ShuffleWindow, SkippedSlice, WindowStart, shuffled_windows

WINDOW_BYTES = 64 << 20  # of the rows that are shuffled at a time, over all shards

Cursor = dict[str, Any]  # the state of a loader, as JSON


# Arguments: rows of this rank's next batch, rows it expects in the pass, and whether reading them failed.
Synchronize = Callable[[int, float, bool], BatchAgreement]


def single_process(rows: int, expected: float, failed: bool) -> BatchAgreement:
    """The agreement of a single process: its own numbers."""
    return BatchAgreement(rows, expected)


class RowReader(NamedTuple):
    """The row groups, the function that reads a slice of one, and a batch of zero rows."""

    row_groups: Sequence[RowGroup]
    read: Read
    empty: EncodedRows


class ShuffleSettings(NamedTuple):
    """How rows are shuffled and divided.

    ``batch_size`` and ``shuffle_rows`` (rows per window) count the rows of all ``shards``; this rank reads
    ``own_shards``. With ``skip`` unreadable slices are skipped.
    """

    batch_size: int
    shuffle_rows: int
    seed: int
    passes: int = 1
    shards: int = 1
    own_shards: tuple[int, ...] = (0,)
    skip: bool = False


class FileLoader:
    """Iterates over the batches of all passes; each pass has its own order.

    During the first pass the number of rows may be an estimate; after it, the number is known.
    """

    def __init__(
        self,
        reader: RowReader,
        settings: ShuffleSettings,
        *,
        synchronize: Synchronize = single_process,
        cursor: Cursor | None = None,
    ) -> None:
        self._reader, self._settings = reader, settings
        self._synchronize = synchronize
        self._pass, self._rows, self._pass_rows = 0, 0, 0
        self.skips: list[dict[str, Any]] = []
        self._warned: set[str] = set()  # files
        self._starts: dict[str, list[int]] = {}
        self._shards: list[_ShardBatches] = []
        if cursor is not None:
            self.seek(cursor)

    @property
    def skips_bad_files(self) -> bool:
        return self._settings.skip

    def seek(self, cursor: Cursor) -> None:
        """Continue from a cursor, before the first batch is read."""
        self._pass, self._rows, self._pass_rows = cursor["pass"], cursor["rows"], cursor["pass_rows"]
        self.skips = [skip for skip in cursor["skips"] if skip["shard"] in self._settings.own_shards]
        self._starts = cursor["shards"]

    def __iter__(self) -> Iterator[FileBatch]:
        try:
            while self._pass < self._settings.passes:
                self._open()
                while batch := self._next():
                    self._rows += batch.total
                    yield batch
                self._close()
                self._pass_rows, self._rows, self._starts = self._rows, 0, {}
                self._pass += 1
        finally:
            self._close()

    def cursor(self) -> Cursor:
        """The position after the last batch; each rank knows only its own shards."""
        return {
            "pass": self._pass,
            "rows": self._rows,
            "pass_rows": self._pass_rows,
            "shards": {str(shard.number): shard.cursor() for shard in self._shards},
            "skips": list(self.skips),
        }

    def _open(self) -> None:
        settings = self._settings
        seed = [settings.seed, self._pass]
        order = np.random.default_rng(seed).permutation(len(self._reader.row_groups))
        slices = divide_rows([self._reader.row_groups[i] for i in order], settings.shards)
        edges = [settings.batch_size * shard // settings.shards for shard in range(settings.shards + 1)]
        for shard in settings.own_shards:
            batch_size = max(1, edges[shard + 1] - edges[shard])
            window_rows = max(1, settings.shuffle_rows // settings.shards // batch_size) * batch_size
            cursor = self._starts.get(str(shard), [*WindowStart(), 0])
            ended = {
                skip["slice_index"]: skip["row"]
                for skip in self.skips
                if (skip["pass"], skip["shard"]) == (self._pass, shard)
            }
            windows = shuffled_windows(
                slices[shard],
                self._reader.read,
                window_rows,
                [*seed, shard],
                start=WindowStart(*cursor[:-1]),
                ended=ended,
                skip=settings.skip,
            )
            self._shards.append(_ShardBatches(shard, slices[shard], prefetch(windows, 1), batch_size, cursor))

    def _next(self) -> FileBatch | None:
        try:
            blocks = [shard.take(self._record_skips) for shard in self._shards]
        except Exception:
            self._synchronize(0, 0.0, True)
            raise
        present = [rows for rows in blocks if rows is not None]
        rows = concatenate(present) if present else self._reader.empty
        agreed = self._synchronize(rows.count, sum(shard.expected_rows for shard in self._shards), False)
        if not agreed.total:
            return None
        expected = float(self._pass_rows) if self._pass else agreed.expected_rows
        return FileBatch(rows, expected, agreed.total, agreed.save, agreed.stop, agreed.first_row)

    def _record_skips(self, shard: _ShardBatches, skips: Sequence[SkippedSlice]) -> None:
        """Record what was skipped, and warn once per file, with the rows of it that are known to be lost by now."""
        for skip in skips:
            row_group = shard.slices[skip.slice_index].row_group
            about = skip._asdict() | {"pass": self._pass, "shard": shard.number, "file": str(row_group.path)}
            self.skips.append(about | {"group": row_group.group})
        of_pass = [skip for skip in self.skips if skip["pass"] == self._pass]
        for last in of_pass[len(of_pass) - len(skips) :]:
            if last["file"] not in self._warned:
                self._warned.add(last["file"])
                warn_skipped(last["reason"], [s["rows"] for s in of_pass if s["file"] == last["file"]])

    def _close(self) -> None:
        for shard in self._shards:
            shard.close()
        self._shards = []


class _ShardBatches:
    """Divides the windows of one shard into batches of ``batch_size`` rows.

    ``cursor`` is a ``WindowStart`` followed by the number of batches already taken from that window.
    """

    def __init__(
        self,
        number: int,
        slices: Sequence[ShardSlice],
        windows: Iterator[ShuffleWindow],
        batch_size: int,
        cursor: list[int],
    ) -> None:
        self.number, self.slices = number, slices
        self.expected_rows = 0.0
        self._windows, self._batch_size = windows, batch_size
        self._window: ShuffleWindow | None = None
        self._start, self._taken = cursor[:-1], cursor[-1]

    def take(self, on_skips: Callable[[_ShardBatches, Sequence[SkippedSlice]], None]) -> EncodedRows | None:
        """The rows of the next batch; None at the end of the shard."""
        while self._window is None or self._taken * self._batch_size >= _count(self._window):
            # Arrow keeps what it has freed, which would add up to several windows.
            pa.default_memory_pool().release_unused()
            window = next(self._windows, None)
            if window is None:
                return None
            if self._window is not None:
                self._taken = 0
            self._window, self._start, self.expected_rows = window, list(window.start), window.expected_rows
            on_skips(self, window.skips)
        assert self._window.rows is not None
        start = self._taken * self._batch_size
        self._taken += 1
        return self._window.rows.take(slice(start, start + self._batch_size))

    def cursor(self) -> list[int]:
        return [*self._start, self._taken]

    def close(self) -> None:
        close = getattr(self._windows, "close", None)
        if close is not None:
            close()


def _count(window: ShuffleWindow) -> int:
    return 0 if window.rows is None else window.rows.count


def count_window_rows(data: FileData, options: FileOptions) -> int:
    """Rows that are shuffled at a time: ``shuffle_rows``, or fewer if these take more than ``WINDOW_BYTES``.

    The order of rows depends on it, so it does not depend on the memory of the machine.
    """
    return max(1, min(options.shuffle_rows, WINDOW_BYTES // data.row_bytes))


class RememberedSlices:
    """Reads each slice once and keeps its encoded rows, for several passes over files of one shuffle window or less."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._blocks: dict[ShardSlice, list[tuple[EncodedRows, float]]] = {}

    def __call__(self, shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        blocks = self._blocks.get(shard_slice)
        if blocks is None:
            blocks = []
            for block in self._read(shard_slice, skip):
                blocks.append(block)
                yield block
            if not skip:
                self._blocks[shard_slice] = blocks
            return
        for rows, share in blocks:
            skipped = min(skip, rows.count)
            skip -= skipped
            if rows.count > skipped:
                yield rows.take(slice(skipped, None)), share


def make_loader(
    data: FileData,
    options: FileOptions,
    batch_size: int,
    seed: int,
    *,
    passes: int = 1,
    own_shards: Sequence[int] = (0,),
    shards: int = 1,
    **loader_options: Any,
) -> FileLoader:
    """A loader of the batches of all passes; ``loader_options`` are ``synchronize`` and ``cursor``."""
    read: Read = data.read_slice
    if passes > 1 and data.rows * data.row_bytes <= WINDOW_BYTES:
        read = RememberedSlices(read)
    reader = RowReader(data.files.row_groups, read, data.empty_rows())
    settings = ShuffleSettings(
        batch_size,
        count_window_rows(data, options),
        seed,
        passes,
        shards,
        tuple(own_shards),
        options.skips_bad_files,
    )
    return FileLoader(reader, settings, **loader_options)
