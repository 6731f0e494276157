"""Iterators that compute their items on background threads, a bounded number ahead."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

PREFETCHED_BLOCKS = 4  # blocks that are encoded ahead
MAX_READERS = 8  # reader threads; more of them slow each other down

Item = TypeVar("Item")


def prefetch(items: Iterator[Item], depth: int) -> Iterator[Item]:
    """The same items, computed on a background thread, at most ``depth`` ahead."""
    producer = _Producer(items, depth)
    try:
        yield from producer
    finally:
        producer.close()


def prefetch_parallel(
    tasks: Iterable[Callable[[], Iterator[Item]]], workers: int
) -> Iterator[Iterator[Item]]:
    """The items of each task, in the order of the tasks, while up to ``workers`` tasks run.

    An error of a task is raised when its items are consumed. Each task computes one item ahead.
    """
    started: deque[_Producer[Item]] = deque()
    remaining = iter(tasks)
    try:
        while True:
            while len(started) < workers and (task := next(remaining, None)) is not None:
                started.append(_Producer(_run(task), 1))
            if not started:
                return
            yield iter(started[0])
            started.popleft().close()
    finally:
        for producer in started:
            producer.close()


def reader_threads() -> int:
    """The number of reader threads: half of the cores available to this process, at most ``MAX_READERS``."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores // 2 // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), MAX_READERS))


def _run(task: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Call the task only when its first item is computed, that is, on its thread."""
    yield from task()


class _Producer(Generic[Item]):
    """A thread that computes items while fewer than ``depth`` of them are not yet consumed.

    Items may be large, so it waits before it computes one, not with one in its hands.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self._items = items
        self._queue: queue.SimpleQueue[tuple[str, Item | BaseException | None]] = queue.SimpleQueue()
        self._free = threading.Semaphore(depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="seqatt-prefetch")
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        while True:
            event, item = self._queue.get()
            if event == "error":
                assert isinstance(item, BaseException)
                raise item
            if event == "end":
                return
            self._free.release()
            yield item  # type: ignore[misc]

    def close(self) -> None:
        self._closed.set()
        self._free.release()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._free.acquire()
            for item in self._items:
                if self._closed.is_set():
                    return
                self._queue.put(("item", item))
                del item  # it belongs to the consumer
                self._free.acquire()
                if self._closed.is_set():
                    return
            self._queue.put(("end", None))
        except BaseException as error:
            self._queue.put(("error", error))
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
