"""How a CPU's cores are used.

Threads that wait for each other burn the cores they wait on, and wait long for one that another process
holds. So small problems use one thread, several trials use a thread each, and one large trial uses as many
as help, by the clock. Products are cut (``product.py``) so that none of this changes an answer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch

Result = TypeVar("Result")

SERIAL_WORK = 3_000_000  # multiply-adds of a step's largest product below which threads cost more
PROBE_STEPS = 8  # a look at the other number of threads is short: it may be a bad one
PROBE_EVERY, PROBE_SELDOM = 10, 80  # stretches between such looks
POLL_SECONDS = 0.1  # between reports of progress by trials that run side by side


@contextmanager
def training_threads(work: int, device: torch.device) -> Iterator[int]:
    """Ready to train on a device: on a CPU one thread for small products and no denormal numbers.

    Gives the number of threads there are. A caller's inference mode ends at this door.
    """
    before = torch.get_num_threads()
    torch.set_flush_denormal(True)  # a product of denormal numbers takes a hundred times as long
    if device.type == "cpu" and work < SERIAL_WORK:
        torch.set_num_threads(1)
    this = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with this, torch.inference_mode(False):
            yield before
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)


class WorkerPool:
    """Runs several pieces of work, on a thread each where there are more than one thread for it."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, initializer=_init_worker) if threads > 1 else None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, works: Sequence[Callable[[], Result]]) -> list[Result]:
        if self._pool is None:
            return [work() for work in works]
        return [done.result() for done in [self._pool.submit(_without_gradients, work) for work in works]]


def _init_worker() -> None:
    """A thread that works beside others: products on itself alone, no denormal numbers."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _without_gradients(work: Callable[[], Result]) -> Result:
    with torch.no_grad():
        return work()


class ThreadTuner:
    """All threads or one: whichever was faster when last looked at."""

    def __init__(self, threads: int) -> None:
        self._many = threads
        self._took: dict[int, float] = {}
        self._looks = [threads, threads, 1] if threads > 1 else []  # the first one warms up
        self._until_look = self._patience = PROBE_EVERY

    @property
    def max_steps(self) -> int | None:
        """How long the next stretch may be, where that matters."""
        return PROBE_STEPS if self._looks else None

    def run(self, work: Callable[[], None], steps: int) -> None:
        if self._many == 1:
            work()
            return
        looking = bool(self._looks)
        threads = self._looks.pop(0) if looking else self._best()
        torch.set_num_threads(threads)
        started = time.perf_counter()
        work()
        self._took[threads] = (time.perf_counter() - started) / steps
        if looking:
            # A look that finds nothing better is not repeated soon: under load it can be costly.
            self._patience = PROBE_EVERY if self._best() == threads else min(2 * self._patience, PROBE_SELDOM)
            self._until_look = self._patience
        else:
            self._until_look -= 1
            if self._until_look == 0:
                self._looks = [self._many if threads == 1 else 1]

    def _best(self) -> int:
        return min(self._took, key=lambda threads: self._took[threads])


def run_concurrently(walks: Sequence[Iterator[int]], workers: int, advance: Callable[[int], None]) -> None:
    """Let every walk take its steps, each on one thread, ``workers`` at a time.

    A walk yields the steps it has done; ``advance`` hears how far they are on the average.
    """
    waiting = deque(walks)
    done: deque[int] = deque()
    stop = threading.Event()

    def work() -> None:
        _init_worker()
        with torch.no_grad():
            while not stop.is_set():
                try:
                    walk = waiting.popleft()
                except IndexError:
                    return
                steps = next(walk, None)
                if steps is not None:
                    done.append(steps)
                    waiting.append(walk)

    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(work) for _ in range(workers)}
        told = total = 0
        try:
            while running:
                finished, running = wait(running, POLL_SECONDS)
                for task in finished:
                    task.result()
                while done:
                    total += done.popleft()
                advance(total // len(walks) - told)
                told = total // len(walks)
        finally:
            stop.set()
