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
    """The items, computed on a background thread, at most ``depth`` ahead."""
    threads = _ReaderThreads(1)
    producer = _Producer(items, depth, threads)
    try:
        yield from producer
    finally:
        producer.close()
        threads.close()


def prefetch_parallel(
    tasks: Iterable[Callable[[], Iterator[Item]]], workers: int
) -> Iterator[Iterator[Item]]:
    """The items of each task, in the order of the tasks, while up to ``workers`` tasks run.

    An error of a task is raised when its items are consumed. Each task computes one item ahead.
    """
    started: deque[_Producer[Item]] = deque()
    remaining = iter(tasks)
    threads = _ReaderThreads(workers)
    try:
        while True:
            while len(started) < workers and (task := next(remaining, None)) is not None:
                started.append(_Producer(_run(task), 1, threads))
            if not started:
                return
            yield iter(started[0])
            started.popleft().close()
    finally:
        for producer in started:
            producer.close()
        threads.close()


def reader_threads() -> int:
    """The number of reader threads: half of the cores available to this process, at most ``MAX_READERS``."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores // 2 // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), MAX_READERS))


def _run(task: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Call the task only when its first item is computed, that is, on its thread."""
    yield from task()


class _ReaderThreads:
    """Up to ``most`` threads that run calls, one after another: allocators keep memory for every thread that ends.

    They are daemons, so that a program with an iterator that nobody has closed can end.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self, call: Callable[[], None]) -> None:
        """Run a call as soon as a thread is free."""
        self._calls.put(call)
        if len(self._threads) < self._most:
            self._threads.append(threading.Thread(target=self._serve, daemon=True, name="seqatt-prefetch"))
            self._threads[-1].start()

    def close(self) -> None:
        """Wait until all calls have ended."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while call := self._calls.get():
            call()


class _Producer(Generic[Item]):
    """Computes items on a thread while fewer than ``depth`` of them are not yet consumed.

    Items may be large, so it waits before it computes one, not with one in its hands.
    """

    def __init__(self, items: Iterator[Item], depth: int, threads: _ReaderThreads) -> None:
        self._items = items
        self._queue: queue.SimpleQueue[tuple[str, Item | BaseException | None]] = queue.SimpleQueue()
        self._free = threading.Semaphore(depth)
        self._closed, self._ended = threading.Event(), threading.Event()
        threads.start(self._work)

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
        self._ended.wait()

    def _work(self) -> None:
        try:
            self._compute()
            self._queue.put(("end", None))
        except BaseException as error:
            self._queue.put(("error", error))
        finally:
            self._ended.set()

    def _compute(self) -> None:
        """Compute the items until they end or nobody wants more of them, and close them."""
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
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
