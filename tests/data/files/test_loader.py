"""Batches from files: every row once a pass, in an order that the seed alone decides, in bounded memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqatt.data.files import shuffle as windows
from seqatt.data.files.file_set import RowGroup
from seqatt.data.files.loader import FileBatch, FileLoader, RowReader, ShuffleSettings
from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch, prefetch_parallel, reader_threads
from seqatt.data.files.rows import EncodedRows
from seqatt.data.files.shards import ShardSlice


def rows(first: int, count: int) -> EncodedRows:
    ids = np.arange(first, first + count)
    return EncodedRows(
        ids[:, None].astype(np.float32),
        ids[:, None].astype(np.int32),
        ids.astype(np.float32),
        np.ones(count, dtype=np.float32),
    )


def parts(sizes: list[int], known: bool = True) -> tuple[RowGroup, ...]:
    return tuple(RowGroup(Path(str(i)), i, n if known else None, 10 * n) for i, n in enumerate(sizes))


def reader(sizes: list[int], block: int):
    starts = np.cumsum([0, *sizes])

    def read(piece: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        size = sizes[piece.part.group]
        for start in range(0, size, block):
            stop = min(start + block, size)
            own = range(size)[piece.start : piece.stop : piece.step][skip:]
            some = [row for row in own if start <= row < stop]
            if some:
                whole = rows(int(starts[piece.part.group]), size)
                yield whole.take(np.array(some)), stop / size

    return read


def passes(
    sizes: list[int], *, block: int = 50, known: bool = True, position: Any = None, **mixing: Any
) -> FileLoader:
    source = RowReader(parts(sizes, known), reader(sizes, block), rows(0, 0))
    return FileLoader(source, ShuffleSettings(**{"seed": 0} | mixing), position=position)


def ids(batches: Iterable[FileBatch]) -> list[int]:
    return [row for batch in batches for row in batch.rows.places[:, 0].tolist()]


SIZES = [1_000, 1, 730, 0, 2_345]


@pytest.mark.parametrize(("size", "buffer"), [(64, 256), (100, 10_000), (7, 1), (5_000, 10)])
def test_every_row_is_seen_once_in_batches_of_one_size(size, buffer):
    batches = list(passes(SIZES, size=size, buffer=buffer, seed=3))
    assert sorted(ids(batches)) == list(range(sum(SIZES)))
    assert all(batch.rows.count == size for batch in batches[:-1])
    assert 0 < batches[-1].rows.count <= size


def test_the_order_depends_on_the_seed_and_on_no_block():
    def order(block: int, seed: int) -> list[int]:
        return ids(passes(SIZES, block=block, size=64, buffer=512, seed=seed))

    assert order(50, 1) == order(50, 1) == order(999, 1)
    assert order(50, 1) != order(50, 2)


def test_rows_mix_within_a_window_and_windows_take_them_all():
    found = ids(passes([10_000], block=100, size=50, buffer=1_000))
    moved = np.abs(np.array(found) - np.arange(10_000))
    assert 200 < np.mean(moved) < 500
    assert moved.max() < 1_000


def test_the_buffer_and_what_is_read_ahead_are_bounded():
    made = 0

    def read(piece: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        nonlocal made
        for start in range(0, 100_000, 100):
            made += 100
            yield rows(start, 100), 0.0

    buffer, taken = 1_000, 0
    for batch in FileLoader(RowReader(parts([100_000]), read, rows(0, 0)), ShuffleSettings(50, buffer, 0)):
        taken += batch.rows.count
        assert made - taken <= 3 * buffer + 100 * (PREFETCHED_BLOCKS + 2 + 2 * reader_threads())


@pytest.mark.parametrize("block", [50, 999])
def test_where_no_file_says_how_many_rows_it_has_the_guess_ends_exact(block):
    batches = list(passes(SIZES, block=block, known=False, size=64, buffer=256))
    total = sum(SIZES)
    assert all(0.6 * total < batch.expected < 1.6 * total for batch in batches)
    assert batches[-1].expected == pytest.approx(total)
    assert next(iter(passes(SIZES, size=64, buffer=256))).expected == total


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shards", [1, 3])
def test_every_position_can_be_taken_up_again(known, shards):
    def start(position: dict[str, Any] | None = None) -> FileLoader:
        mine = tuple(range(shards))
        return passes(
            SIZES,
            block=200,
            known=known,
            size=200,
            buffer=800,
            passes=2,
            shards=shards,
            mine=mine,
            position=position,
        )

    whole = start()
    positions, given = [whole.position()], []
    for batch in whole:
        given.append(batch)
        positions.append(json.loads(json.dumps(whole.position())))
    for number, position in enumerate(positions):
        later = list(start(position))
        assert ids(later) == ids(given[number:])
        assert [b.expected for b in later] == [b.expected for b in given[number:]]


def test_a_position_deep_in_a_pass_is_reached_by_reading_little():
    sizes = [1_000] * 50
    started: list[int] = []

    def read(piece: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        started.append(piece.part.group)
        yield from reader(sizes, 100)(piece, skip)

    source = RowReader(parts(sizes), read, rows(0, 0))
    whole = FileLoader(source, ShuffleSettings(100, 1_000, seed=0))
    going = iter(whole)
    for _ in range(400):
        next(going)
    position = whole.position()
    going.close()
    started.clear()
    rest = list(FileLoader(source, ShuffleSettings(100, 1_000, seed=0), position=position))
    assert sum(batch.total for batch in rest) == 10_000
    assert len(started) <= 12


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shards", [2, 3, 7])
def test_shards_share_every_row_out_and_whoever_reads_them_finds_the_same(known, shards):
    def of(*mine: int) -> list[FileBatch]:
        return list(passes(SIZES, known=known, size=70, buffer=700, shards=shards, mine=mine))

    apart = [of(shard) for shard in range(shards)]
    assert sorted(row for some in apart for row in ids(some)) == list(range(sum(SIZES)))
    together = of(*range(shards))
    for number, batch in enumerate(together):
        expected = [row for some in apart if number < len(some) for row in ids([some[number]])]
        assert ids([batch]) == expected
    if known:
        counts = [len(ids(some)) for some in apart]
        assert max(counts) - min(counts) <= 1


def test_an_error_of_the_reader_arrives_after_the_rows_before_it():
    def broken() -> Iterator[int]:
        yield from range(10)
        raise ValueError("part.csv: broken")

    items = prefetch(broken(), 2)
    assert [next(items) for _ in range(10)] == list(range(10))
    with pytest.raises(ValueError, match=r"part\.csv: broken"):
        next(items)


def test_stopping_early_leaves_no_thread_behind():
    before = threading.active_count()
    batches = iter(passes(SIZES, size=64, buffer=256))
    next(batches)
    assert threading.active_count() > before
    batches.close()
    assert threading.active_count() == before


def test_several_works_go_on_at_once_and_are_given_out_in_their_order():
    together = threading.Barrier(3, timeout=10)

    def work(number: int) -> Iterator[int]:
        if number < 3:
            together.wait()  # breaks unless all three are under way
        yield from range(10 * number, 10 * number + number)

    works = [partial(work, number) for number in range(5)]
    found = [list(items) for items in prefetch_parallel(works, 3)]
    assert found == [[], [10], [20, 21], [30, 31, 32], [40, 41, 42, 43]]


def test_an_error_of_one_work_is_raised_in_its_turn_and_leaves_no_thread():
    def work(number: int) -> Iterator[int]:
        yield number
        if number == 2:
            raise OSError("disk")

    before = threading.active_count()
    given = prefetch_parallel([partial(work, number) for number in range(9)], 4)
    assert [list(next(given)), list(next(given))] == [[0], [1]]
    third = next(given)
    assert next(third) == 2
    with pytest.raises(OSError, match="disk"):
        next(third)
    given.close()
    assert threading.active_count() == before


def test_the_order_of_rows_does_not_depend_on_how_many_parts_are_read_at_once(monkeypatch):
    def order(workers: int) -> list[int]:
        monkeypatch.setattr(windows, "readers", lambda: workers)
        return ids(passes(SIZES, size=64, buffer=512, seed=3))

    assert order(1) == order(4)
