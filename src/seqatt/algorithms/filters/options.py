"""What the methods without a network can be told, checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from seqatt.data.tables.table_data import TableData

LIBRARIES = ("scikit-learn", "lightgbm", "xgboost")
WORTH_SHARING = 1 << 18  # cells; set by judgement: on a busy machine two threads took a minute for 300 rows


@dataclass(frozen=True)
class CMIMOptions:
    """``bins`` of numbers, by default as many as the rows allow; ``lazy`` leaves out needless counting."""

    bins: int | None = None
    lazy: bool = True

    def __post_init__(self) -> None:
        if self.bins is not None:
            _insist_on_whole("bins", self.bins, 2)
        if not isinstance(self.lazy, bool):
            raise TypeError(f"lazy: must be True or False, got {self.lazy!r}")


@dataclass(frozen=True)
class MutualInformationOptions:
    """``neighbors`` of a row by which information in numbers is estimated, on how many cores."""

    neighbors: int = 3
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        _insist_on_whole("neighbors", self.neighbors, 1)
        _insist_on_jobs(self.n_jobs)


@dataclass(frozen=True)
class ForestOptions:
    """How many ``trees``, on how many cores."""

    trees: int = 500
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        _insist_on_whole("trees", self.trees, 1)
        _insist_on_jobs(self.n_jobs)


@dataclass(frozen=True)
class BoostingOptions:
    """Whose trees, how many rounds of them, how fast they learn, on how many cores."""

    library: str = "scikit-learn"
    iterations: int = 100
    learning_rate: float = 0.1
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.library not in LIBRARIES:
            raise ValueError(f"library: unknown {self.library!r}; use one of {', '.join(LIBRARIES)}")
        if self.library != LIBRARIES[0] and find_spec(self.library) is None:
            raise ValueError(f"library: {self.library} is not installed; pip install 'seqatt[boosting]'")
        _insist_on_whole("iterations", self.iterations, 1)
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise ValueError(f"learning_rate: must be a number above 0, got {rate!r}")
        _insist_on_jobs(self.n_jobs)


def cores(n_jobs: int | None) -> int:
    """As many threads as asked for, never more than the cores this process may use.

    Not asked, ``OMP_NUM_THREADS`` is heeded.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is not None:
        return there if n_jobs == -1 else min(n_jobs, there)
    told = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(told), there) if told.isdecimal() and int(told) > 0 else there


def worth_sharing(shape: tuple[int, int], n_jobs: int | None) -> int:
    """As many threads as ``cores`` says, but one for few cells if not told: threads wait for one another."""
    return 1 if n_jobs is None and shape[0] * shape[1] < WORTH_SHARING else cores(n_jobs)


def insist_on_even_rows(source: TableData, method: str) -> None:
    """For methods whose library cannot weigh rows."""
    if source.weights is not None:
        raise ValueError(
            f"sample_weight, class_weight: {method} cannot weigh rows; leave them out, "
            "or use cmim, forest or boosting, which can"
        )


def _insist_on_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise ValueError(f"{name}: must be a whole number of at least {least}, got {value!r}")


def _insist_on_jobs(n_jobs: Any) -> None:
    if n_jobs is not None and n_jobs != -1:
        _insist_on_whole("n_jobs", n_jobs, 1)
