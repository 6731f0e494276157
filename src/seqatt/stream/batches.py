"""Batches from files: read ahead, shuffled within a bounded buffer, every row once a pass.

The order depends on the seed and the files alone: on no clock, thread or size of a block.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from seqatt.stream.files import Part
from seqatt.stream.rows import Rows, join

AHEAD = 4  # blocks decoded and batches drawn before they are needed

Item = TypeVar("Item")
Read = Callable[[Part], Iterator[tuple[Rows, float]]]


class Batch(NamedTuple):
    """Some rows, and how many there will have been at the end of the pass, as far as is known by now."""

    rows: Rows
    expected: float


def one_pass(parts: tuple[Part, ...], read: Read, size: int, buffer: int, seed: int) -> Iterator[Batch]:
    """Every row once, in batches of ``size``; only the last may be smaller."""
    rng = np.random.default_rng(seed)
    order = [parts[i] for i in rng.permutation(len(parts))]
    blocks = read_ahead(_blocks(order, read), AHEAD)
    return read_ahead(shuffle(blocks, size, max(buffer, 2 * size), rng), AHEAD)


def shuffle(blocks: Iterable[Batch], size: int, buffer: int, rng: np.random.Generator) -> Iterator[Batch]:
    """A full buffer is mixed and half of it given out, so that rows mix across its ends too."""
    held: list[Rows] = []
    count = 0
    expected = 0.0
    out = max(size, buffer // 2 // size * size)
    for rows, expected in blocks:
        while rows.count:
            some = rows.take(slice(buffer - count))
            rows = rows.take(slice(buffer - count, None))
            held.append(some)
            count += some.count
            if count == buffer:
                mixed = join(held).take(rng.permutation(count))
                yield from _cut(mixed.take(slice(out)), size, expected)
                held, count = [mixed.take(slice(out, None))], buffer - out
    if count:
        yield from _cut(join(held).take(rng.permutation(count)), size, expected)


def _cut(rows: Rows, size: int, expected: float) -> Iterator[Batch]:
    for start in range(0, rows.count, size):
        yield Batch(rows.take(slice(start, start + size)), expected)


def _blocks(parts: list[Part], read: Read) -> Iterator[Batch]:
    """Decoded blocks, each with the number of rows to expect, which gets surer as files end."""
    known = [part.rows for part in parts]
    total = None if None in known else float(sum(rows or 0 for rows in known))
    whole = sum(part.size for part in parts)
    before = seen = 0
    for part in parts:
        for rows, share in read(part):
            seen += rows.count
            yield Batch(rows, total or max(seen, seen * whole / max(1.0, before + share * part.size)))
        before += part.size


def read_ahead(items: Iterator[Item], depth: int) -> Iterator[Item]:
    """The same items, made on a thread of their own, at most ``depth`` before they are asked for."""
    made: queue.Queue[tuple[str, Item | BaseException | None]] = queue.Queue(depth)
    enough = threading.Event()

    def put(what: str, item: Item | BaseException | None) -> None:
        while not enough.is_set():
            try:
                made.put((what, item), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put("item", item)
                if enough.is_set():
                    break
            else:
                put("end", None)
        except BaseException as error:
            put("error", error)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=work, daemon=True, name="seqatt-read-ahead")
    thread.start()
    try:
        while True:
            what, item = made.get()
            if what == "error":
                assert isinstance(item, BaseException)
                raise item
            if what == "end":
                return
            yield item  # type: ignore[misc]
    finally:
        enough.set()
        thread.join()
