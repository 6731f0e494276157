"""``Trace``: what a method found in one trial, in the order of its data; ``Selection`` is the same for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_SCORES = 100  # scores per phase in the history, so that tables of 50,000 features do not give gigabytes


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

    ``settings`` are settings that this trial chose itself, ``curve`` what it chose the number of features from, and
    ``stability`` what its repeats say, with features as positions in the user's order.
    ``importance`` is how much each of its "features" adds, ``false_discoveries`` what its knockoffs say, and
    ``chance`` how it compares with random features, and ``frontier`` how good sets of lower cost are, as in
    ``Selection``.
    """

    order: list[int]
    rest: list[int]
    phases: list[PhaseRecord] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] | None = None
    stability: dict[str, Any] | None = None
    importance: dict[str, Any] | None = None
    false_discoveries: dict[str, Any] | None = None
    chance: dict[str, Any] | None = None
    frontier: dict[str, Any] | None = None

    def first(self, size: int) -> Trace:
        """The trace with only the first ``size`` features selected."""
        return replace(self, order=self.order[:size], rest=self.order[size:] + self.rest)

    def findings_among(self, positions: NDArray[np.int64], features: int) -> tuple[Any, Any]:
        """The stability and the false discoveries where these features have rising ``positions`` among more."""
        stability, discoveries = self.stability, self.false_discoveries

        def spread(values: list[float]) -> list[float]:
            everywhere = np.zeros(features)
            everywhere[positions] = values
            return [float(value) for value in everywhere]

        if stability is not None:
            clusters = [c | {"features": positions[c["features"]].tolist()} for c in stability["clusters"]]
            stability = stability | {"frequency": spread(stability["frequency"]), "clusters": clusters}
        if discoveries is not None:
            discoveries = discoveries | {"statistics": spread(discoveries["statistics"])}
        return stability, discoveries

    def score_of(self, feature: int) -> float:
        """The score with which a feature was selected; the last one, if it was only selected by an exchange."""
        if not any(feature in phase.taken for phase in self.phases):
            return 0.0
        scored = [(phase, phase.scores) for phase in reversed(self.phases) if phase.scores is not None]
        scores = [scores for phase, scores in scored if feature in phase.taken] or [s for _, s in scored]
        return float(scores[0][feature]) if scores else 0.0

    def named_importance(self, names: Sequence[Any]) -> dict[str, Any] | None:
        """How much each selected feature adds, in their order, with these names of features.

        None unless it was measured for these very features: a selection may be cut after it was.
        """
        measured = self.importance
        if measured is None or sorted(measured["features"]) != sorted(self.order):
            return None
        positions = [measured["features"].index(f) for f in self.order]
        lists = {name: [measured[name][p] for p in positions] for name in ("increases", "standard_errors")}
        facts = {name: measured[name] for name in ("loss", "rows", "networks")}
        if "stand_ins" not in measured:
            return facts | lists
        stand_ins = [[[names[f], value] for f, value in measured["stand_ins"][p]] for p in positions]
        return facts | lists | {"stand_ins": stand_ins}

    def history(self, names: Sequence[Any]) -> list[dict[str, Any]]:
        """The phases, with features by name, for ``Selection.history``."""
        unselected = np.ones(len(names), dtype=bool)
        history = []
        for phase in self.phases:
            entry: dict[str, Any] = {
                "steps": phase.steps,
                "sees": phase.sees,
                "loss": phase.loss,
                "seconds": phase.seconds,
                "taken": [names[f] for f in phase.taken],
                "dropped": [names[f] for f in phase.dropped],
                "scores": _best_scores(names, phase, unselected),
            }
            history.append(entry)
            unselected[phase.taken] = False
            unselected[phase.dropped] = True
        return history

    def to_dict(self) -> dict[str, Any]:
        """A copy for JSON, from which ``from_dict`` makes the same trace, bit for bit."""
        return asdict(self) | {"phases": [record.to_dict() for record in self.phases]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Trace:
        return cls(**plain | {"phases": [PhaseRecord.from_dict(record) for record in plain["phases"]]})


def _best_scores(
    names: Sequence[Any], phase: PhaseRecord, unselected: NDArray[np.bool_]
) -> dict[str, float] | None:
    if phase.scores is None:
        return None
    candidates = np.flatnonzero(unselected)
    scores = phase.scores[candidates]
    if len(scores) > 4 * MAX_SCORES:
        high = np.flatnonzero(scores >= np.partition(scores, -MAX_SCORES)[-MAX_SCORES])
        candidates, scores = candidates[high], scores[high]
    best = np.argsort(-scores, kind="stable")[:MAX_SCORES]
    rounded = _six_digits(scores[best]).tolist()
    return {names[f]: score for f, score in zip(candidates[best].tolist(), rounded, strict=True)}


def _six_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded to six significant digits: scores are float32, which has about seven."""
    exponent = np.floor(np.log10(np.maximum(np.abs(values), 1e-30)))
    factor = 10.0 ** (5 - exponent)
    return np.asarray(np.round(values * factor) / factor)
