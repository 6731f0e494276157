"""Work on threads of its own, a little ahead of those who wait for it."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

PREFETCHED_BLOCKS = 4  # blocks decoded before they are needed
MOST_READERS = 8  # beyond which the threads stand in each other's way

Item = TypeVar("Item")


def prefetch(items: Iterator[Item], depth: int) -> Iterator[Item]:
    """The same items, made on a thread of their own, at most ``depth`` before they are asked for."""
    maker = _Producer(items, depth)
    try:
        yield from maker
    finally:
        maker.close()


def prefetch_parallel(
    works: Iterable[Callable[[], Iterator[Item]]], workers: int
) -> Iterator[Iterator[Item]]:
    """What each work makes, one work after another, while up to ``workers`` of them are under way.

    An error of a work is raised where its items are asked for. Each holds one item ahead.
    """
    started: deque[_Producer[Item]] = deque()
    coming = iter(works)
    try:
        while True:
            while len(started) < workers and (work := next(coming, None)) is not None:
                started.append(_Producer(_begin(work), 1))
            if not started:
                return
            yield iter(started[0])
            started.popleft().close()
    finally:
        for maker in started:
            maker.close()


def reader_threads() -> int:
    """How many parts are read at once: half of the cores that this process has for itself."""
    available = getattr(os, "sched_getaffinity", None)
    cores = len(available(0)) if available else os.cpu_count() or 1
    return max(1, min(cores // 2 // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), MOST_READERS))


def _begin(work: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Nothing of the work is done before its thread asks for the first item."""
    yield from work()


class _Producer(Generic[Item]):
    """A thread that makes items and waits where ``depth`` of them are not yet asked for."""

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self._items = items
        self._made: queue.Queue[tuple[str, Item | BaseException | None]] = queue.Queue(depth)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="seqatt-read-ahead")
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        while True:
            what, item = self._made.get()
            if what == "error":
                assert isinstance(item, BaseException)
                raise item
            if what == "end":
                return
            yield item  # type: ignore[misc]

    def close(self) -> None:
        self._enough.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            for item in self._items:
                self._put("item", item)
                if self._enough.is_set():
                    break
            else:
                self._put("end", None)
        except BaseException as error:
            self._put("error", error)
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()

    def _put(self, what: str, item: Item | BaseException | None) -> None:
        while not self._enough.is_set():
            try:
                self._made.put((what, item), timeout=0.1)
                return
            except queue.Full:
                continue
