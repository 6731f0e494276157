"""``Selection``: the selected features in order, scores and history of a method; saved as JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqatt.json_files import write_atomically
from seqatt.selection_file import FORMAT, NOTHING_FOUND, named_fields, plain_names, read_selection_file
from seqatt.trace import PhaseRecord, Trace
from seqatt.version import __version__

STANDS_OUT = 0.05  # a feature stands out if its q-value, its false discovery rate, is at most this
MAX_SCORES = 100  # scores per phase in the history, so that tables of 50,000 features do not give gigabytes


class FeatureLayout(Protocol):
    """How the features of a method map to those of the user; ``TableData`` and ``FileData`` have it."""

    @property
    def input_columns(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def user_position(self) -> NDArray[np.int64]: ...
    @property
    def given_names(self) -> tuple[Any, ...]: ...
    @property
    def given_input_names(self) -> tuple[Any, ...]: ...
    @property
    def features(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Selection:
    """The features that one method selected with one seed.

    ``indices`` and ``features`` are the positions and names of the selected features, in the order of
    selection, and ``scores`` their scores when they were selected. ``ranking`` is the rank of every feature
    (1 is the first selected) and ``support`` the mask of the selected ones. ``columns`` are the selected input
    columns; they differ from ``indices`` only if columns are grouped. ``input_columns`` are the input columns of
    each feature, and ``input_names`` the names of all input columns. Names are as the user gave them, so those of a
    data frame with numbered columns are whole numbers. ``history`` has one entry per phase: scores
    of the features not yet selected, by name, best first (at most 100), mean training loss (None if nothing was
    trained), seconds, and the features selected ("taken") and dropped at the end of the phase. ``seconds`` are those
    from the call of ``select`` to its answer, and ``timings`` what they were spent on: "read" (files), "prepare" and
    "select"; trials of several seeds train together and have the same. ``curve`` is what k="auto" chose from:
    "sizes", their "means" and "standard_errors", the "metric", and the lines "no_features", "all_features" and
    "random_features" ("random_size" of them); else None. ``importance``, ``stability``, ``false_discoveries`` and
    ``chance`` say how sure the answer is, each None where it was not measured.
    """

    method: str
    seed: int
    indices: NDArray[np.int64]
    features: list[Any]
    scores: NDArray[np.float64]
    ranking: NDArray[np.int64]
    support: NDArray[np.bool_]
    columns: NDArray[np.int64]
    names: list[Any]
    input_columns: list[list[int]]
    input_names: list[Any]
    history: list[dict[str, Any]]
    settings: dict[str, Any]
    environment: dict[str, str]
    seconds: float
    timings: dict[str, float] = field(default_factory=dict)
    curve: dict[str, Any] | None = None
    importance: dict[str, Any] | None = None
    stability: dict[str, Any] | None = None
    false_discoveries: dict[str, Any] | None = None
    chance: dict[str, Any] | None = None

    @property
    def column_names(self) -> list[Any]:
        """The names of the selected input columns: those of ``columns``."""
        return [self.input_names[column] for column in self.columns]

    def transform(self, X: Any) -> Any:
        """The selected columns of ``X``, in the order of ``features``, in a container of the same kind.

        Columns of a data frame are found by name; it may have others, in any order. Arrays, tensors and sparse
        matrices have the columns that the selection was made from.
        """
        from seqatt.column_names import take_columns  # here: it needs narwhals

        return take_columns(X, self.columns.tolist(), self.input_names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON; an interrupted write leaves an existing file unchanged."""
        write_atomically(Path(path), json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Selection:
        """Read a file that ``save`` wrote, also in format 1; any other content is a ``ValueError``."""
        return cls._from_dict(read_selection_file(path, list(cls.__dataclass_fields__)))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain lists, numbers and strings."""
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }
        return {"format": FORMAT, **plain_names(plain)}

    @classmethod
    def _from_dict(cls, raw: dict[str, Any]) -> Selection:
        integers = {"indices", "ranking", "columns"}
        fields = named_fields({name: raw[name] for name in cls.__dataclass_fields__})
        fields |= {name: np.array(raw[name], dtype=np.int64) for name in integers}
        fields["scores"] = np.array(raw["scores"], dtype=np.float64)
        fields["support"] = np.array(raw["support"], dtype=bool)
        return cls(**fields)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.features[:6])) + (", ..." if len(self.features) > 6 else "")
        counted = f"{len(self.features)} of {len(self.names)} features"
        notes = [describe_task(self.settings)]
        notes += ["partial"] if self.settings.get("partial") else []
        notes += ["no feature stands out by itself"] if lacks_evidence(self.settings) else []
        notes += [NOTHING_FOUND] if self.curve and not self.features else []
        return f"Selection({counted}: {shown or 'none'}; {'; '.join(notes)})"


def describe_task(settings: dict[str, Any]) -> str:
    """The kind of target in a few words, from the settings of a selection or a comparison: "multiclass, 3 classes"."""
    task, classes = str(settings.get("task", "unknown task")), settings.get("classes")
    return f"{task}, {classes} classes" if classes is not None and task == "multiclass" else task


def lacks_evidence(settings: dict[str, Any]) -> bool:
    """Whether the univariate test before training found no feature that is related to the target by itself."""
    return bool(settings.get("min_q_value", 0.0) > STANDS_OUT)


class SelectionInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``selections`` holds the features selected before that, one selection per seed."""

    def __init__(self, message: str, selections: list[Selection]) -> None:
        super().__init__(message)
        self.selections = selections

    def __reduce__(self) -> tuple[Any, ...]:
        return SelectionInterrupted, (str(self), self.selections)


class TrainingDiverged(RuntimeError):
    """The training loss became NaN or infinite; ``selections`` holds the features selected before that."""

    def __init__(self, message: str, selections: list[Selection]) -> None:
        super().__init__(message)
        self.selections = selections

    def __reduce__(self) -> tuple[Any, ...]:
        return TrainingDiverged, (str(self), self.selections)


def make_selection(
    layout: FeatureLayout,
    trace: Trace,
    *,
    method: str,
    seed: int,
    settings: dict[str, Any],
    environment: dict[str, str],
    timings: dict[str, float],
) -> Selection:
    """The selection of a trace, with features mapped back to the user's order."""
    user_position = layout.user_position
    ranking = np.empty(layout.features, dtype=np.int64)
    ranking[user_position[trace.order + trace.rest]] = np.arange(1, layout.features + 1)
    user_order = np.argsort(user_position)
    names = [layout.given_names[f] for f in user_order]
    support = np.zeros(layout.features, dtype=bool)
    support[user_position[trace.order]] = True
    return Selection(
        method=method,
        seed=seed,
        indices=user_position[trace.order].astype(np.int64),
        features=[layout.given_names[f] for f in trace.order],
        scores=np.array([_score_when_taken(trace, f) for f in trace.order], dtype=np.float64),
        ranking=ranking,
        support=support,
        columns=np.array([c for f in trace.order for c in layout.input_columns[f]], dtype=np.int64),
        names=names,
        input_columns=[list(layout.input_columns[f]) for f in user_order],
        input_names=list(layout.given_input_names),
        history=_history(layout, trace),
        settings=settings,
        environment=environment,
        seconds=sum(timings.values()),
        timings=timings,
        curve=trace.curve,
    )


def _score_when_taken(trace: Trace, feature: int) -> float:
    for phase in reversed(trace.phases):
        if feature in phase.taken and phase.scores is not None:
            return float(phase.scores[feature])
    return 0.0


def _history(layout: FeatureLayout, trace: Trace) -> list[dict[str, Any]]:
    unselected = np.ones(layout.features, dtype=bool)
    history = []
    for phase in trace.phases:
        entry: dict[str, Any] = {
            "steps": phase.steps,
            "sees": phase.sees,
            "loss": phase.loss,
            "seconds": phase.seconds,
            "taken": [layout.given_names[f] for f in phase.taken],
            "dropped": [layout.given_names[f] for f in phase.dropped],
            "scores": _best_scores(layout, phase, unselected),
        }
        history.append(entry)
        unselected[phase.taken] = False
        unselected[phase.dropped] = True
    return history


def _best_scores(
    layout: FeatureLayout, phase: PhaseRecord, unselected: NDArray[np.bool_]
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
    return {layout.given_names[f]: score for f, score in zip(candidates[best].tolist(), rounded, strict=True)}


def _six_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded to six significant digits: scores are float32, which has about seven."""
    exponent = np.floor(np.log10(np.maximum(np.abs(values), 1e-30)))
    factor = 10.0 ** (5 - exponent)
    return np.asarray(np.round(values * factor) / factor)


def describe_environment(device: str) -> dict[str, str]:
    """Versions, platform and device, on which the result may depend."""
    import torch

    return {
        "seqatt": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device,
    }
