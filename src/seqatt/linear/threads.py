"""Matrix products shared out over the cores: one BLAS thread each, and the same bits on any number of them.

BLAS's own threads wait for one another at every small product, which costs most where another process is
busy. Pieces of work handed to Python threads do not.
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
Piece = TypeVar("Piece")
Part = TypeVar("Part")

WORTH_SHARING = 1 << 22  # multiply-adds below which starting threads costs more than it saves
PANELS = 4  # of a Gram matrix: their triangle balances over two cores


@cache
def _crew() -> tuple[ThreadPoolExecutor, ThreadpoolController, int]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    others = min(8, cores) - 1
    pool = ThreadPoolExecutor(max(1, others), thread_name_prefix="seqatt-linear")
    return pool, ThreadpoolController(), others


@contextmanager
def calm() -> Iterator[None]:
    """One BLAS thread: for many small products, and for threads of our own."""
    with _crew()[1].limit(limits=1, user_api="blas"):
        yield


def share(work: Callable[[Piece], Part], pieces: Iterable[Piece], cost: float) -> list[Part]:
    """What ``work`` gives for every piece, in order; small ``cost`` (multiply-adds) stays on this thread.

    This thread works too, and whoever is free takes the next piece: a core that is slow to wake, or busy
    elsewhere, holds nobody up.
    """
    pieces = list(pieces)
    if cost < WORTH_SHARING or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    done: dict[int, Part] = {}
    rest = enumerate(pieces)

    def help_out() -> None:
        for number, piece in rest:
            done[number] = work(piece)

    pool, _, others = _crew()
    with calm():
        helpers = [pool.submit(help_out) for _ in range(min(others, len(pieces) - 1))]
        try:
            help_out()
        finally:
            for helper in helpers:
                if not helper.cancel():
                    helper.result()
    return [done[number] for number in range(len(pieces))]


def add_square(total: Floats, rows: Floats) -> None:
    """``total += rows' rows``, on and above the diagonal's panels only; see ``mirror``."""
    d = rows.shape[1]
    width = max(32, -(-d // PANELS) if d <= 1024 else 256)

    def panel(start: int) -> None:
        stop = min(d, start + width)
        total[start:stop, start:] += rows[:, start:stop].T @ rows[:, start:]

    share(panel, range(0, d, width), rows.shape[0] * d * d / 2)


def mirror(total: Floats) -> Floats:
    """The upper triangle copied to the lower one, in place."""
    d = len(total)
    for start in range(0, d, 256):
        stop = min(d, start + 256)
        corner = total[start:stop, start:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        total[stop:, start:stop] = total[start:stop, stop:].T
    return total
