"""Batches from files: every row once a pass, in an order that the seed alone decides, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from seqatt.stream.batches import AHEAD, Batch, one_pass, read_ahead, shuffle
from seqatt.stream.files import Part
from seqatt.stream.rows import Rows


def rows(first: int, count: int) -> Rows:
    ids = np.arange(first, first + count)
    return Rows(
        ids[:, None].astype(np.float32),
        ids[:, None].astype(np.int32),
        ids.astype(np.float32),
        np.ones(count, dtype=np.float32),
    )


def parts(sizes: list[int], known: bool = True) -> tuple[Part, ...]:
    return tuple(Part(Path(str(i)), i, n if known else None, 10 * n) for i, n in enumerate(sizes))


def reader(sizes: list[int], block: int):
    starts = np.cumsum([0, *sizes])

    def read(part: Part) -> Iterator[tuple[Rows, float]]:
        size = sizes[part.group]
        for start in range(0, size, block):
            stop = min(start + block, size)
            yield rows(int(starts[part.group]) + start, stop - start), stop / size

    return read


def ids(batches: list[Batch]) -> list[int]:
    return np.concatenate([batch.rows.places[:, 0] for batch in batches]).tolist()


SIZES = [1_000, 1, 730, 0, 2_345]


@pytest.mark.parametrize(("size", "buffer"), [(64, 256), (100, 10_000), (7, 1), (5_000, 10)])
def test_every_row_is_seen_once_in_batches_of_one_size(size, buffer):
    batches = list(one_pass(parts(SIZES), reader(SIZES, 50), size, buffer, seed=3))
    assert sorted(ids(batches)) == list(range(sum(SIZES)))
    assert all(batch.rows.count == size for batch in batches[:-1])
    assert 0 < batches[-1].rows.count <= size


def test_the_order_depends_on_the_seed_and_on_no_block():
    def order(block: int, seed: int) -> list[int]:
        return ids(list(one_pass(parts(SIZES), reader(SIZES, block), 64, 512, seed)))

    assert order(50, 1) == order(50, 1) == order(999, 1)
    assert order(50, 1) != order(50, 2)


def test_rows_mix_within_the_buffer_and_across_its_ends():
    stream = (Batch(rows(start, 100), 10_000) for start in range(0, 10_000, 100))
    found = np.array(ids(list(shuffle(stream, 50, 1_000, np.random.default_rng(0)))))
    moved = np.abs(found - np.arange(10_000))
    assert np.mean(moved) > 200
    assert (moved > 1_000).any()  # some wait in the half that stays behind


def test_the_buffer_and_what_is_read_ahead_are_bounded():
    made = 0

    def source() -> Iterator[Batch]:
        nonlocal made
        for start in range(0, 100_000, 100):
            made += 100
            yield Batch(rows(start, 100), 100_000)

    buffer, taken = 1_000, 0
    for batch in shuffle(read_ahead(source(), AHEAD), 50, buffer, np.random.default_rng(0)):
        taken += batch.rows.count
        assert made - taken <= 2 * buffer + 100 * (AHEAD + 2)


def test_where_no_file_says_how_many_rows_it_has_the_guess_ends_exact():
    batches = list(one_pass(parts(SIZES, known=False), reader(SIZES, 50), 64, 256, seed=0))
    total = sum(SIZES)
    assert all(0.8 * total < batch.expected < 1.2 * total for batch in batches)
    assert batches[-1].expected == pytest.approx(total)
    assert one_pass(parts(SIZES), reader(SIZES, 50), 64, 256, seed=0).__next__().expected == total


def test_an_error_of_the_reader_arrives_after_the_rows_before_it():
    def broken() -> Iterator[int]:
        yield from range(10)
        raise ValueError("part.csv: broken")

    items = read_ahead(broken(), 2)
    assert [next(items) for _ in range(10)] == list(range(10))
    with pytest.raises(ValueError, match=r"part\.csv: broken"):
        next(items)


def test_stopping_early_leaves_no_thread_behind():
    before = threading.active_count()
    batches = one_pass(parts(SIZES), reader(SIZES, 50), 64, 256, seed=0)
    next(batches)
    assert threading.active_count() > before
    batches.close()
    assert threading.active_count() == before
