"""Reports of workers that Ray started: results, errors and warnings, collected for the process that waits.

Ray itself may report the error of a worker that only lost contact to another one, not the original cause.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from seqatt.distributed.process_group import RankLost
from seqatt.selection import Selection


@dataclass(frozen=True)
class WorkerReport:
    """The outcome of one worker: the selection (rank 0 only), its error if it failed, and its warnings."""

    rank: int
    selection: Selection | None = None
    error: Exception | None = None
    warnings: tuple[Warning, ...] = ()


class ReportCollector:
    """A Ray actor that collects reports. It outlives the workers, also those that replace lost ones."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._reports: list[WorkerReport] = []

    def count_start(self, rank: int) -> int:
        """Count one more start of this rank; returns the number of earlier ones."""
        self._starts[rank] = self._starts.get(rank, 0) + 1
        return self._starts[rank] - 1

    def add(self, report: WorkerReport) -> None:
        self._reports.append(report)

    def reports(self) -> list[WorkerReport]:
        return self._reports


def picklable(error: Exception | None) -> Exception | None:
    """The error itself, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def find_cause(reports: Sequence[WorkerReport]) -> Exception | None:
    """The latest error that is not a ``RankLost``, else the latest; earlier failures were recovered from."""
    errors = [report.error for report in reversed(reports) if report.error is not None]
    causes = [error for error in errors if not isinstance(error, RankLost)]
    return next(iter(causes + errors), None)
