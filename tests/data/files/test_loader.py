"""Batches from files: every row once per pass, in an order that depends only on the seed, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqatt.data.files import file_data, file_set, loader, schema_sample, shuffle
from seqatt.data.files.encoding.rows import EncodedRows, FileBatch
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.file_data import FileData
from seqatt.data.files.formats.file_format import RowGroup
from seqatt.data.files.loader import FileLoader, RowReader, ShuffleSettings
from seqatt.data.files.options import FileOptions
from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch, prefetch_parallel, reader_threads
from seqatt.data.files.shards import ShardSlice


def make_rows(first: int, count: int) -> EncodedRows:
    ids = np.arange(first, first + count)
    return EncodedRows(
        ids[:, None].astype(np.float32),
        ids[:, None].astype(np.int32),
        ids.astype(np.float32),
        np.ones(count, dtype=np.float32),
    )


def make_row_groups(sizes: list[int], known: bool = True) -> tuple[RowGroup, ...]:
    return tuple(RowGroup(Path(str(i)), i, n if known else None, 10 * n) for i, n in enumerate(sizes))


def make_reader(sizes: list[int], block: int):
    starts = np.cumsum([0, *sizes])

    def read(shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        size = sizes[shard_slice.row_group.group]
        for start in range(0, size, block):
            stop = min(start + block, size)
            own = range(size)[shard_slice.start : shard_slice.stop : shard_slice.step][skip:]
            in_block = [row for row in own if start <= row < stop]
            if in_block:
                whole = make_rows(int(starts[shard_slice.row_group.group]), size)
                yield whole.take(np.array(in_block)), stop / size

    return read


def make_loader(
    sizes: list[int], *, block: int = 50, known: bool = True, cursor: Any = None, **settings: Any
) -> FileLoader:
    reader = RowReader(make_row_groups(sizes, known), make_reader(sizes, block), make_rows(0, 0))
    return FileLoader(reader, ShuffleSettings(**{"seed": 0} | settings), cursor=cursor)


def ids(batches: Iterable[FileBatch]) -> list[int]:
    return [row for batch in batches for row in batch.rows.codes[:, 0].tolist()]


SIZES = [1_000, 1, 730, 0, 2_345]


@pytest.mark.parametrize(("batch_size", "shuffle_rows"), [(64, 256), (100, 10_000), (7, 1), (5_000, 10)])
def test_every_row_is_seen_once_in_batches_of_one_size(batch_size, shuffle_rows):
    batches = list(make_loader(SIZES, batch_size=batch_size, shuffle_rows=shuffle_rows, seed=3))
    assert sorted(ids(batches)) == list(range(sum(SIZES)))
    assert all(batch.rows.count == batch_size for batch in batches[:-1])
    assert 0 < batches[-1].rows.count <= batch_size


def test_the_order_depends_on_the_seed_and_not_on_the_block_size():
    def order(block: int, seed: int) -> list[int]:
        return ids(make_loader(SIZES, block=block, batch_size=64, shuffle_rows=512, seed=seed))

    assert order(50, 1) == order(50, 1) == order(999, 1)
    assert order(50, 1) != order(50, 2)


def test_rows_are_shuffled_within_a_window():
    order = ids(make_loader([10_000], block=100, batch_size=50, shuffle_rows=1_000))
    moved = np.abs(np.array(order) - np.arange(10_000))
    assert 200 < np.mean(moved) < 500
    assert moved.max() < 1_000


def test_the_number_of_rows_in_memory_is_bounded():
    read_rows = 0

    def read(shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        nonlocal read_rows
        for start in range(0, 100_000, 100):
            read_rows += 100
            yield make_rows(start, 100), 0.0

    shuffle_rows, yielded = 1_000, 0
    reader = RowReader(make_row_groups([100_000]), read, make_rows(0, 0))
    for batch in FileLoader(reader, ShuffleSettings(50, shuffle_rows, 0)):
        yielded += batch.rows.count
        prefetched = 100 * (PREFETCHED_BLOCKS + 1 + reader_threads())
        assert read_rows - yielded <= 2 * shuffle_rows + prefetched


def test_the_rows_of_a_window_and_of_the_schema_sample_are_bounded_in_bytes(tmp_path, monkeypatch):
    wide = {f"x{j}": np.arange(4_000, dtype=np.int8) for j in range(200)}
    pq.write_table(pa.table(wide | {"y": np.arange(4_000) % 2}), tmp_path / "a.parquet")
    monkeypatch.setattr(loader, "WINDOW_BYTES", 1_000 * 4 * 203)
    monkeypatch.setattr(schema_sample, "SAMPLE_BYTES", 500 * (4 * 200 + 8))
    monkeypatch.setattr(file_set, "BATCH_BYTES", 300 * 4 * 203)
    sampled = []
    plain_columns = schema_sample._plain_columns
    monkeypatch.setattr(
        schema_sample,
        "_plain_columns",
        lambda batch, *others: sampled.append(batch.num_rows) or plain_columns(batch, *others),
    )
    options = FileOptions()
    data = file_data.read_file_data(tmp_path / "a.parquet", "y", options, 64)
    assert sum(sampled) == 500
    assert data.row_bytes == 4 * 203
    assert max(rows.count for rows, _ in data.read_slice(ShardSlice(data.files.row_groups[0]), 0)) == 300
    assert loader.count_window_rows(data, options) == 1_000
    assert loader.count_window_rows(data, FileOptions(shuffle_rows=64)) == 64
    windows = list(_windows(data, options))
    assert [window.rows.count for window in windows] == [1_000] * 4
    assert sum(batch.rows.count for batch in loader.make_loader(data, options, 100, 0)) == 4_000


def _windows(data: FileData, options: FileOptions) -> Iterator[shuffle.ShuffleWindow]:
    slices = [ShardSlice(group) for group in data.files.row_groups]
    size = loader.count_window_rows(data, options)
    return shuffle.shuffled_windows(
        slices, data.read_slice, size, [0], start=shuffle.WindowStart(), ended={}, skip=False
    )


@pytest.mark.slow
def test_wide_files_are_read_in_little_memory(tmp_path):
    # In memory as float32 the table has 1.3 GiB, a window of shuffle_rows rows as well.
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.integers(0, 4, 160_000, dtype=np.int8) for j in range(2_200)}
    pq.write_table(pa.table(columns | {"y": columns["x0"] % 2}), tmp_path / "wide.parquet")
    code = (
        "import resource\n"
        "from seqatt.data.files.file_data import read_file_data\n"
        "from seqatt.data.files.loader import make_loader\n"
        "from seqatt.data.files.options import FileOptions\n"
        f"data = read_file_data({str(tmp_path / 'wide.parquet')!r}, 'y', FileOptions(), 64)\n"
        "rows = sum(batch.rows.count for batch in make_loader(data, FileOptions(), 1_024, 0))\n"
        "print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    rows, peak = map(float, done.stdout.split())
    assert rows == 160_000
    assert peak < 1_100


def test_one_warning_per_file_that_is_skipped(tmp_path):
    for name in ("a", "b"):
        x = np.arange(4_000.0)
        if name == "b":
            x[[3_100, 3_600]] = np.inf
        pq.write_table(
            pa.table({"x": x, "y": np.arange(4_000) % 2}), tmp_path / f"{name}.parquet", row_group_size=500
        )
    options = FileOptions(on_bad_file="skip", schema_rows=100)
    data = file_data.read_file_data(tmp_path, "y", options, 64)
    batches = loader.make_loader(data, options, 100, 0, passes=2)
    with pytest.warns(SkippedData) as caught:
        counts = [batch.rows.count for batch in batches]
    assert sum(counts) == 2 * 7_000  # a row group is read as one batch, and both have an infinite value
    assert [str(warning.message).partition("b.parquet")[2] for warning in caught] == [
        ": X: column 'x' contains infinity; replace infinite values, for example by NaN, which is read as "
        "missing; 1,000 rows were skipped"
    ]
    assert len(batches.skips) == 4  # two row groups, in each pass


@pytest.mark.parametrize("block", [50, 999])
def test_an_estimated_number_of_rows_is_exact_at_the_end_of_the_pass(block):
    batches = list(make_loader(SIZES, block=block, known=False, batch_size=64, shuffle_rows=256))
    total = sum(SIZES)
    assert all(0.6 * total < batch.expected_rows < 1.6 * total for batch in batches)
    assert batches[-1].expected_rows == pytest.approx(total)
    assert next(iter(make_loader(SIZES, batch_size=64, shuffle_rows=256))).expected_rows == total


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_loader_continues_from_every_cursor(known, shards):
    def start(cursor: dict[str, Any] | None = None) -> FileLoader:
        return make_loader(
            SIZES,
            block=200,
            known=known,
            batch_size=200,
            shuffle_rows=800,
            passes=2,
            shards=shards,
            own_shards=tuple(range(shards)),
            cursor=cursor,
        )

    whole = start()
    cursors, batches = [whole.cursor()], []
    for batch in whole:
        batches.append(batch)
        cursors.append(json.loads(json.dumps(whole.cursor())))
    for number, cursor in enumerate(cursors):
        rest = list(start(cursor))
        assert ids(rest) == ids(batches[number:])
        assert [b.expected_rows for b in rest] == [b.expected_rows for b in batches[number:]]


def test_continuing_deep_in_a_pass_reads_few_row_groups():
    sizes = [1_000] * 50
    opened: list[int] = []

    def read(shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        opened.append(shard_slice.row_group.group)
        yield from make_reader(sizes, 100)(shard_slice, skip)

    reader = RowReader(make_row_groups(sizes), read, make_rows(0, 0))
    whole = FileLoader(reader, ShuffleSettings(100, 1_000, seed=0))
    batches = iter(whole)
    for _ in range(400):
        next(batches)
    cursor = whole.cursor()
    batches.close()
    opened.clear()
    rest = list(FileLoader(reader, ShuffleSettings(100, 1_000, seed=0), cursor=cursor))
    assert sum(batch.total for batch in rest) == 10_000
    assert len(opened) <= 12


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shards", [2, 3, 7])
def test_every_row_is_in_one_shard_and_shards_do_not_depend_on_who_reads_them(known, shards):
    def read_shards(*own_shards: int) -> list[FileBatch]:
        return list(
            make_loader(
                SIZES, known=known, batch_size=70, shuffle_rows=700, shards=shards, own_shards=own_shards
            )
        )

    separate = [read_shards(shard) for shard in range(shards)]
    assert sorted(row for batches in separate for row in ids(batches)) == list(range(sum(SIZES)))
    together = read_shards(*range(shards))
    for number, batch in enumerate(together):
        expected = [row for batches in separate if number < len(batches) for row in ids([batches[number]])]
        assert ids([batch]) == expected
    if known:
        counts = [len(ids(batches)) for batches in separate]
        assert max(counts) - min(counts) <= 1


def test_an_error_of_the_reader_is_raised_after_the_items_before_it():
    def broken() -> Iterator[int]:
        yield from range(10)
        raise ValueError("one.csv: broken")

    items = prefetch(broken(), 2)
    assert [next(items) for _ in range(10)] == list(range(10))
    with pytest.raises(ValueError, match=r"one\.csv: broken"):
        next(items)


@pytest.mark.parametrize("depth", [1, 3])
def test_items_are_not_computed_further_ahead_than_the_depth(depth):
    computed = threading.Semaphore(0)

    def count() -> Iterator[int]:
        for number in range(10):
            computed.release()
            yield number

    items = prefetch(count(), depth)
    for number in range(4):
        assert next(items) == number
        for _ in range(depth if number == 0 else 0):  # the first items ahead
            assert computed.acquire(timeout=10)
        assert computed.acquire(timeout=10)  # the one that replaces the item just taken
        assert not computed.acquire(timeout=0.05)
    items.close()


def test_stopping_early_leaves_no_thread_behind():
    before = threading.active_count()
    batches = iter(make_loader(SIZES, batch_size=64, shuffle_rows=256))
    next(batches)
    assert threading.active_count() > before
    batches.close()
    assert threading.active_count() == before


def test_several_tasks_run_at_once_and_are_yielded_in_order():
    barrier = threading.Barrier(3, timeout=10)

    def task(number: int) -> Iterator[int]:
        if number < 3:
            barrier.wait()  # fails unless all three run at once
        yield from range(10 * number, 10 * number + number)

    tasks = [partial(task, number) for number in range(5)]
    items = [list(items) for items in prefetch_parallel(tasks, 3)]
    assert items == [[], [10], [20, 21], [30, 31, 32], [40, 41, 42, 43]]


def test_all_tasks_run_on_the_same_threads():
    """Allocators keep memory for each thread, so that a thread per slice would add up."""
    used: list[int] = []

    def task() -> Iterator[int]:
        used.append(threading.get_native_id())
        yield 0

    for items in prefetch_parallel([task] * 20, 2):
        assert list(items) == [0]
    assert len(used) == 20
    assert len(set(used)) <= 2


def test_an_error_of_one_task_is_raised_in_its_turn_and_leaves_no_thread():
    def task(number: int) -> Iterator[int]:
        yield number
        if number == 2:
            raise OSError("disk")

    before = threading.active_count()
    results = prefetch_parallel([partial(task, number) for number in range(9)], 4)
    assert [list(next(results)), list(next(results))] == [[0], [1]]
    third = next(results)
    assert next(third) == 2
    with pytest.raises(OSError, match="disk"):
        next(third)
    results.close()
    assert threading.active_count() == before


def test_the_order_of_rows_does_not_depend_on_the_number_of_reader_threads(monkeypatch):
    def order(threads: int) -> list[int]:
        monkeypatch.setattr(shuffle, "reader_threads", lambda: threads)
        return ids(make_loader(SIZES, batch_size=64, shuffle_rows=512, seed=3))

    assert order(1) == order(4)
