"""How the cores of a CPU are used.

Threads that wait for each other keep their cores busy, and wait long for a thread whose core another process uses. So
small problems use one thread, several trials use one thread each, and one large trial uses all threads or one,
whichever is measured to be faster. Products are computed (``matmul.py``) such that none of this changes a result.
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

SERIAL_WORK = 3_000_000  # multiply-adds of a step's largest product; below, one thread is faster than several
PROBE_STEPS = 8  # steps of a measurement with the other number of threads: few, for it may be much slower
MIN_PROBE_INTERVAL, MAX_PROBE_INTERVAL = 10, 80  # chunks between two measurements
POLL_SECONDS = 0.1  # between progress reports of trials that run concurrently

_dtype_lock = threading.Lock()
_callers_dtype: list[torch.dtype] = []  # once per context of ``default_dtype`` that is open


@contextmanager
def default_dtype(*, own_model: bool) -> Iterator[None]:
    """Float32 for new tensors: the networks of seqatt have it, whatever the caller's default type is.

    A model of the user's, and what it is given, have the caller's. The type is that of the process: of several threads,
    the first one sets it and the last one restores it.
    """
    if own_model:
        yield
        return
    with _dtype_lock:
        # Within another such context this is the type of the caller of the first one.
        _callers_dtype.append(_callers_dtype[0] if _callers_dtype else torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        with _dtype_lock:
            dtype = _callers_dtype.pop()
            if not _callers_dtype:
                torch.set_default_dtype(dtype)


@contextmanager
def training_threads(work: int, device: torch.device, *, own_model: bool = False) -> Iterator[int]:
    """Set up torch for training: on a CPU one thread for small products, and denormal numbers flushed to zero.

    ``work`` is the number of multiply-adds of a step's largest product. Yields the number of threads that were
    available. Training needs gradients, so an inference mode of the caller is switched off meanwhile.
    """
    available = torch.get_num_threads()
    torch.set_flush_denormal(True)  # a product of denormal numbers takes a hundred times as long
    if device.type == "cpu" and work < SERIAL_WORK:
        torch.set_num_threads(1)
    current_device = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with current_device, torch.inference_mode(False), default_dtype(own_model=own_model):
            yield available
    finally:
        torch.set_num_threads(available)
        torch.set_flush_denormal(False)


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread for the products of torch on a CPU."""
    available = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(available)


class WorkerPool:
    """Runs several functions at once, each on one thread; with a single thread, one after the other."""

    def __init__(self, threads: int) -> None:
        self.threads, self._torch_threads = threads, torch.get_num_threads()
        self._pool = ThreadPoolExecutor(threads, initializer=_init_worker) if threads > 1 else None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            # What a worker sets for its own products is also what new threads of the process start with.
            torch.set_num_threads(self._torch_threads)

    def run(self, functions: Sequence[Callable[[], Result]]) -> list[Result]:
        if self._pool is None:
            return [function() for function in functions]
        futures = [self._pool.submit(_without_gradients, function) for function in functions]
        return [future.result() for future in futures]


def _init_worker() -> None:
    """Settings of a thread that works beside others: its products use no further threads, no denormal numbers."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _without_gradients(function: Callable[[], Result]) -> Result:
    with torch.no_grad():
        return function()


class ThreadTuner:
    """Runs chunks of steps with all threads or with one, whichever was faster when last measured."""

    def __init__(self, threads: int) -> None:
        self._all = threads
        self._seconds_per_step: dict[int, float] = {}
        self._probes = [threads, threads, 1] if threads > 1 else []  # the first one is a warm-up
        self._until_probe = self._interval = MIN_PROBE_INTERVAL

    @property
    def max_steps(self) -> int | None:
        """The most steps of the next chunk, if it is a measurement."""
        return PROBE_STEPS if self._probes else None

    @contextmanager
    def measure(self, steps: int) -> Iterator[None]:
        """Run the body of the ``with`` statement, a chunk of ``steps`` steps, with the number of threads chosen."""
        if self._all == 1:
            yield
            return
        probing = bool(self._probes)
        threads = self._probes.pop(0) if probing else self._best()
        torch.set_num_threads(threads)
        started = time.perf_counter()
        yield
        self._seconds_per_step[threads] = (time.perf_counter() - started) / steps
        if probing:
            # A measurement that finds nothing better is not repeated soon: it can be costly while others compute.
            better = self._best() == threads
            self._interval = MIN_PROBE_INTERVAL if better else min(2 * self._interval, MAX_PROBE_INTERVAL)
            self._until_probe = self._interval
        else:
            self._until_probe -= 1
            if self._until_probe == 0:
                self._probes = [self._all if threads == 1 else 1]

    def _best(self) -> int:
        return min(self._seconds_per_step, key=lambda threads: self._seconds_per_step[threads])


def run_concurrently(
    trainings: Sequence[Iterator[int]], workers: int, advance: Callable[[int], None]
) -> None:
    """Run iterators that each train for some steps per item, every one on a single thread, ``workers`` at a time.

    An iterator yields the steps it has done; ``advance`` is called with the mean progress over all of them.
    """
    waiting = deque(trainings)
    done: deque[int] = deque()
    stop = threading.Event()

    def work() -> None:
        _init_worker()
        with torch.no_grad():
            while not stop.is_set():
                try:
                    training = waiting.popleft()
                except IndexError:
                    return
                steps = next(training, None)
                if steps is not None:
                    done.append(steps)
                    waiting.append(training)

    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(work) for _ in range(workers)}
        reported = total = 0
        try:
            while running:
                finished, running = wait(running, POLL_SECONDS)
                for future in finished:
                    future.result()
                while done:
                    total += done.popleft()
                advance(total // len(trainings) - reported)
                reported = total // len(trainings)
        finally:
            stop.set()
