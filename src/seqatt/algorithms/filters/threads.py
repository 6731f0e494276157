"""Threads of methods that call other libraries."""

from __future__ import annotations

import os

# Tables with fewer cells use one thread: on a busy machine, two threads took a minute for 300 rows.
MIN_CELLS = 1 << 18


def available_threads(n_jobs: int | None) -> int:
    """``n_jobs`` threads, at most the cores this process may use; by default ``OMP_NUM_THREADS`` or all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is not None:
        return cores if n_jobs == -1 else min(n_jobs, cores)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(limit), cores) if limit.isdecimal() and int(limit) > 0 else cores


def threads_for_table(shape: tuple[int, int], n_jobs: int | None) -> int:
    """``available_threads``, but one thread for a small table unless ``n_jobs`` is set."""
    small = shape[0] * shape[1] < MIN_CELLS
    return 1 if n_jobs is None and small else available_threads(n_jobs)
