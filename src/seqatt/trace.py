"""``Trace``: what a method found in one trial, in the order of its data; ``Selection`` is the same for the user."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class PhaseRecord:
    """Results of one phase, by feature of the method. ``loss`` is None if nothing was trained."""

    steps: int
    sees: str
    loss: float | None
    seconds: float
    taken: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    scores: NDArray[np.float64] | None = None

    def to_dict(self) -> dict[str, Any]:
        """A copy for JSON, from which ``from_dict`` makes the same record, bit for bit."""
        return asdict(self) | {"scores": None if self.scores is None else self.scores.tolist()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> PhaseRecord:
        scores = plain["scores"]
        return cls(**plain | {"scores": None if scores is None else np.array(scores, dtype=np.float64)})


@dataclass
class Trace:
    """Results of one trial: selected features in order, the remaining ones best first, and the phases.

    ``settings`` are settings that this trial chose itself, and ``curve`` what it chose the number of features from.
    """

    order: list[int]
    rest: list[int]
    phases: list[PhaseRecord] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """A copy for JSON, from which ``from_dict`` makes the same trace, bit for bit."""
        return asdict(self) | {"phases": [record.to_dict() for record in self.phases]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Trace:
        return cls(**plain | {"phases": [PhaseRecord.from_dict(record) for record in plain["phases"]]})
