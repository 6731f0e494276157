"""The answer: which features, in which order, and all that was seen on the way. Saved as JSON."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqatt.version import __version__

FORMAT = 1
MOST_SCORES = 100  # kept of a phase: a table of 50,000 features must not make a file of gigabytes


class FeatureLayout(Protocol):
    """How a method's features lead back to the user's: a ``Source``, or files."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def members(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def user_position(self) -> NDArray[np.int64]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def features(self) -> int: ...


@dataclass
class PhaseRecord:
    """What one phase of a method saw, in the source's layout of features. No training, no loss."""

    steps: int
    sees: str
    loss: float | None
    seconds: float
    taken: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    scores: NDArray[np.float64] | None = None


@dataclass
class Trace:
    """What a method found: features as chosen, the others best first, its phases.

    ``settings`` are those that this trial settled by itself.
    """

    order: list[int]
    rest: list[int]
    steps: list[PhaseRecord] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Selection:
    """The features one method chose with one seed.

    ``indices`` and ``features`` are in the order chosen and ``scores`` what each was chosen by;
    ``ranking`` gives every feature its place (1 is the first chosen) and ``support`` marks the chosen.
    ``columns`` are the input columns to keep; they differ from ``indices`` only with groups, whose
    columns ``members`` lists, feature by feature; ``inputs`` are the names of all input columns.
    ``history`` has an entry a phase: scores of the unselected by name, best first (100 at most), mean
    training loss (None where nothing was trained), seconds, and what was taken or dropped.
    """

    method: str
    seed: int
    indices: NDArray[np.int64]
    features: list[str]
    scores: NDArray[np.float64]
    ranking: NDArray[np.int64]
    support: NDArray[np.bool_]
    columns: NDArray[np.int64]
    names: list[str]
    members: list[list[int]]
    inputs: list[str]
    history: list[dict[str, Any]]
    settings: dict[str, Any]
    environment: dict[str, str]
    seconds: float

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON, whole or not at all."""
        write_atomically(Path(path), json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Selection:
        """Read what ``save`` wrote."""
        try:
            raw = json.loads(Path(path).read_text(encoding="utf-8"))
            if raw["format"] != FORMAT:
                raise ValueError(f"format {raw['format']}")
            return cls._from_dict(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a saved selection ({error})") from None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }
        return {"format": FORMAT, **plain}

    @classmethod
    def _from_dict(cls, raw: dict[str, Any]) -> Selection:
        whole = {"indices", "ranking", "columns"}
        made = {name: raw[name] for name in cls.__dataclass_fields__}
        made |= {name: np.array(raw[name], dtype=np.int64) for name in whole}
        made["scores"] = np.array(raw["scores"], dtype=np.float64)
        made["support"] = np.array(raw["support"], dtype=bool)
        return cls(**made)

    def __repr__(self) -> str:
        shown = ", ".join(self.features[:6]) + (", ..." if len(self.features) > 6 else "")
        return f"Selection({len(self.features)} of {len(self.names)} features: {shown})"


class TrainingDiverged(RuntimeError):
    """The loss stopped being a number; ``selections`` holds what had been chosen by then."""

    def __init__(self, message: str, selections: list[Selection]) -> None:
        super().__init__(message)
        self.selections = selections

    def __reduce__(self) -> tuple[Any, ...]:
        return TrainingDiverged, (str(self), self.selections)


def make_selection(
    source: FeatureLayout,
    trace: Trace,
    *,
    method: str,
    seed: int,
    settings: dict[str, Any],
    environment: dict[str, str],
    seconds: float,
) -> Selection:
    """A trace, taken from the source's layout back to the user's order of features."""
    user_position = source.user_position
    ranking = np.empty(source.features, dtype=np.int64)
    ranking[user_position[trace.order + trace.rest]] = np.arange(1, source.features + 1)
    back = np.argsort(user_position)
    names = [source.names[f] for f in back]
    members = [list(source.members[f]) for f in back]
    support = np.zeros(source.features, dtype=bool)
    support[user_position[trace.order]] = True
    return Selection(
        method=method,
        seed=seed,
        indices=user_position[trace.order].astype(np.int64),
        features=[source.names[f] for f in trace.order],
        scores=np.array([_score_when_taken(trace, f) for f in trace.order], dtype=np.float64),
        ranking=ranking,
        support=support,
        columns=np.array([c for f in trace.order for c in source.members[f]], dtype=np.int64),
        names=names,
        members=members,
        inputs=list(source.inputs),
        history=_history(source, trace),
        settings=settings,
        environment=environment,
        seconds=seconds,
    )


def _score_when_taken(trace: Trace, feature: int) -> float:
    for step in reversed(trace.steps):
        if feature in step.taken and step.scores is not None:
            return float(step.scores[feature])
    return 0.0


def _history(source: FeatureLayout, trace: Trace) -> list[dict[str, Any]]:
    free = np.ones(source.features, dtype=bool)
    history = []
    for step in trace.steps:
        entry: dict[str, Any] = {
            "steps": step.steps,
            "sees": step.sees,
            "loss": step.loss,
            "seconds": step.seconds,
            "taken": [source.names[f] for f in step.taken],
            "dropped": [source.names[f] for f in step.dropped],
            "scores": _best_scores(source, step, free),
        }
        history.append(entry)
        free[step.taken] = False
        free[step.dropped] = True
    return history


def _best_scores(
    source: FeatureLayout, step: PhaseRecord, free: NDArray[np.bool_]
) -> dict[str, float] | None:
    if step.scores is None:
        return None
    candidates = np.flatnonzero(free)
    scores = step.scores[candidates]
    if len(scores) > 4 * MOST_SCORES:
        few = np.flatnonzero(scores >= np.partition(scores, -MOST_SCORES)[-MOST_SCORES])
        candidates, scores = candidates[few], scores[few]
    best = np.argsort(-scores, kind="stable")[:MOST_SCORES]
    rounded = _six_digits(scores[best]).tolist()
    return {source.names[f]: score for f, score in zip(candidates[best].tolist(), rounded, strict=True)}


def _six_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores are float32: six digits are about all they have, and shorter to read and to store."""
    size = np.floor(np.log10(np.maximum(np.abs(values), 1e-30)))
    factor = 10.0 ** (5 - size)
    return np.asarray(np.round(values * factor) / factor)


def describe_environment(device: str) -> dict[str, str]:
    """The versions and the machine an answer depends on."""
    import torch

    return {
        "seqatt": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device,
    }


def write_atomically(path: Path, text: str) -> None:
    """Write next to the place and move over: a reader never sees half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
