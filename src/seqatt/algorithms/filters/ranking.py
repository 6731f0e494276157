"""Parts shared by rankings: scores of columns as scores of features, scores as a trace, threads of other libraries."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData
from seqatt.trace import PhaseRecord, Trace

Floats = NDArray[np.float64]
# Tables with fewer cells use one thread: on a busy machine, two threads took a minute for 300 rows.
MIN_CELLS = 1 << 18


def rank_features(data: TableData, scores: Floats, k: int, seconds: float) -> Trace:
    """Select the k features with the highest scores; ties go to the lowest index, constant features come last."""
    ranked = np.lexsort((np.arange(data.features), -scores, data.constant)).tolist()
    taken = ranked[:k]
    return Trace(taken, ranked[k:], [PhaseRecord(1, "all", None, seconds, taken, scores=scores)])


def max_over_columns(feature_of: NDArray[np.int64], scores: Floats, features: int) -> Floats:
    """The highest score among the columns of each feature: for scores of single columns."""
    out = np.zeros(features)
    np.maximum.at(out, feature_of, scores)
    return out


def sum_over_columns(feature_of: NDArray[np.int64], importances: Floats, features: int) -> Floats:
    """The sum over the columns of each feature: for importances that are shares of one total."""
    return np.bincount(feature_of, importances, features).astype(np.float64)


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
