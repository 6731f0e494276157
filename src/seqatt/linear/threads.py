"""Matrix products in Python threads, one BLAS thread each; the result does not depend on the number of cores.

BLAS's own threads synchronise at every small product, which is slow while another process uses the cores.
Independent work items in Python threads do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_PARALLEL_COST = 1 << 22  # multiply-adds; below this, starting threads costs more than it saves
PANELS = 4  # column panels of a Gram matrix; the work on their upper triangle balances over two cores


@cache
def _thread_pool() -> tuple[ThreadPoolExecutor, ThreadpoolController, int]:
    """The pool, the BLAS controller and the number of worker threads besides the calling thread."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(8, cores) - 1
    pool = ThreadPoolExecutor(max(1, workers), thread_name_prefix="seqatt-linear")
    return pool, ThreadpoolController(), workers


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: for many small products, and inside ``parallel_map``."""
    with _thread_pool()[1].limit(limits=1, user_api="blas"):
        yield


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item], cost: float) -> list[Result]:
    """``[function(item) for item in items]`` in threads; serial if ``cost`` (multiply-adds) is small.

    The calling thread works too, and every free thread takes the next item, so that a slow core delays only
    the item it works on.
    """
    items = list(items)
    if cost < MIN_PARALLEL_COST or len(items) == 1:
        return [function(item) for item in items]
    results: dict[int, Result] = {}
    remaining = enumerate(items)

    def work() -> None:
        for number, item in remaining:
            results[number] = function(item)

    pool, _, workers = _thread_pool()
    with single_blas_thread():
        futures = [pool.submit(work) for _ in range(min(workers, len(items) - 1))]
        try:
            work()
        finally:
            for future in futures:
                if not future.cancel():
                    future.result()
    return [results[number] for number in range(len(items))]


def add_square(total: Floats, rows: Floats) -> None:
    """``total += rows' rows``, only in panels on and above the diagonal; see ``fill_lower_triangle``."""
    d = rows.shape[1]
    width = max(32, -(-d // PANELS) if d <= 1024 else 256)

    def panel(start: int) -> None:
        stop = min(d, start + width)
        total[start:stop, start:] += rows[:, start:stop].T @ rows[:, start:]

    parallel_map(panel, range(0, d, width), rows.shape[0] * d * d / 2)


def fill_lower_triangle(total: Floats) -> Floats:
    """Copy the upper triangle to the lower one, in place."""
    d = len(total)
    for start in range(0, d, 256):
        stop = min(d, start + 256)
        corner = total[start:stop, start:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        total[stop:, start:stop] = total[start:stop, stop:].T
    return total
