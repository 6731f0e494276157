"""What ranks that another engine started leave behind for whoever asked.

The engine itself may tell of a rank that only lost another one, and not of the one that knows why.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from seqatt.distributed.process_group import RankLost
from seqatt.selection import Selection


@dataclass(frozen=True)
class WorkerReport:
    """Of rank 0 an answer, of whoever failed the reason."""

    rank: int
    selection: Selection | None = None
    error: Exception | None = None
    warned: tuple[Warning, ...] = ()


class ReportCollector:
    """Keeps notes, also for those that take the place of a rank that was lost."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._notes: list[WorkerReport] = []

    def start(self, rank: int) -> int:
        """How often this rank was started before."""
        self._starts[rank] = self._starts.get(rank, 0) + 1
        return self._starts[rank] - 1

    def leave(self, note: WorkerReport) -> None:
        self._notes.append(note)

    def read(self) -> list[WorkerReport]:
        return self._notes


def picklable(error: Exception | None) -> Exception | None:
    """The error, or its words where it would not survive the way to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def find_cause(notes: Sequence[WorkerReport]) -> Exception | None:
    """What the one said that knew why; the latest, as earlier failures were overcome."""
    errors = [note.error for note in reversed(notes) if note.error is not None]
    knew = [error for error in errors if not isinstance(error, RankLost)]
    return next(iter(knew + errors), None)
