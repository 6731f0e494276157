"""Timing: seconds of several pieces of work, measured in turns, and the median of their ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch

Work = Callable[[], object]


def synchronize() -> None:
    """Wait until the GPU, if there is one, has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_of(work: Work, repeats: int = 1) -> float:
    """Seconds per call, including the GPU's work."""
    synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    synchronize()
    return (time.perf_counter() - started) / repeats


def in_turns(works: Sequence[Work], rounds: int, repeats: int) -> list[list[float]]:
    """Seconds of each work, one list per work with one value per round.

    The works alternate, so that noise of the machine affects all of them alike. One call of each comes first
    and is not measured.
    """
    for work in works:
        seconds_of(work, repeats)
    measured = [[seconds_of(work, repeats) for work in works] for _ in range(rounds)]
    return [list(column) for column in zip(*measured, strict=True)]


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median over rounds of the ratios of seconds that were measured in the same round."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))
