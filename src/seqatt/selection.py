"""``Selection``: the selected features in order, scores and history of a method; saved as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqatt.display_text import chosen_in, describe_task
from seqatt.json_files import write_atomically
from seqatt.report.selection_display import SelectionDisplay
from seqatt.selection_file import (
    FORMAT,
    found_together,
    named_fields,
    no_better,
    plain_names,
    read_selection_file,
    why_empty,
)
from seqatt.trace import Trace

SIGNIFICANT = 0.05  # a feature is significant if its q-value, its false discovery rate, is at most this


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
class Selection(SelectionDisplay):
    """The features that one method selected with one seed. ``select`` makes it; ``load`` reads it from a file.

    Attributes
    ----------
    indices, features : array of int, list
        Positions and names of the selected features, in order. Names are as the user gave them, so those of a data
        frame with numbered columns are whole numbers.
    scores : array of float
        The scores of the selected features when they were selected; the last one of a feature that came by an exchange.
    ranking : array of int
        The rank of every feature; 1 is the first selected.
    support : array of bool
        Whether each feature is selected.
    names : list
        The names of all features.
    columns : array of int
        The selected input columns; they differ from ``indices`` only if columns are grouped.
    input_columns, input_names : list of lists, list
        The input columns of each feature, and the names of all input columns.
    history : list of dict
        One entry per phase: "scores" of the features not yet selected, by name, best first (at most 100), mean training
        "loss" (None if nothing was trained), "seconds", and the features selected ("taken") and "dropped" at its end.
    settings, environment : dict
        Every option with its default resolved; versions of libraries, and the device.
    method, seed : str, int
        What it was selected with.
    seconds, timings : float, dict
        From the call of ``select`` to its answer, and what they were spent on: "import" (of PyTorch, by a first call),
        "read" (files), "prepare", "choose" (k="auto", costs), "select" and "examine" (importance, comparison with
        random features). Trials of several seeds train together and have the same.
    curve : dict or None
        What k="auto" chose from: "sizes", their "means" and "standard_errors", the "metric", and the lines
        "no_features", "all_features" and "random_features" ("random_size" of them).
    importance : dict or None
        Lists in the order of ``features``: "increases" of the loss on held-out rows without the feature, their
        "standard_errors" and the "stand_ins", rejected features with their correlation. The "loss" is that with all of
        them, on "rows" rows, and the mean over "networks" networks.
    stability : dict or None
        With ``repeats``: how often each feature was chosen, and clusters of stand-ins.
    false_discoveries : dict or None
        With ``fdr``: statistics, threshold and estimated rate.
    chance : dict or None
        Where no feature is significant by itself, a comparison with random features on rows not used for the selection:
        the "score" of as many selected features, its "standard_error", that of "random_features" and "no_features", and
        whether it is "better".
    frontier : dict or None
        With ``costs``: rising "costs"; for the best set at each cost, the "means" and "standard_errors" of the "metric"
        on rows not used for the selection; the "cost" of the answer; "no_features", "all_features", "all_cost".
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
    frontier: dict[str, Any] | None = None

    @property
    def cost(self) -> float | None:
        """The cost of the selected features together, shared prices counted once; None without ``costs``."""
        costs = self.settings.get("costs")
        if costs is None:
            return None
        selected = {str(name) for name in self.features}
        paid = [c["cost"] for c in costs.values() if selected.intersection(map(_given_text, c["features"]))]
        return float(sum(paid))

    @property
    def notes(self) -> list[str]:
        """Sentences about the data: identifiers, extreme values, a target that grows, a model without success."""
        return list(self.settings.get("notes", []))

    @property
    def frequency(self) -> NDArray[np.float64] | None:
        """The share of the repeats that chose each feature, in the order of ``names``; None without ``repeats``."""
        return None if self.stability is None else np.array(self.stability["frequency"])

    @property
    def column_names(self) -> list[Any]:
        """The names of the selected input columns: those of ``columns``."""
        return [self.input_names[column] for column in self.columns]

    def rank_columns(self, columns: int) -> NDArray[np.int64]:
        """The rank of each of ``columns`` input columns; the columns of a group share the rank of the group."""
        ranking = np.zeros(columns, dtype=np.int64)
        for rank, input_columns in zip(self.ranking, self.input_columns, strict=True):
            ranking[input_columns] = rank
        return ranking

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
        plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(self).items()}
        return {"format": FORMAT, **plain_names(plain)}

    @classmethod
    def _from_dict(cls, raw: dict[str, Any]) -> Selection:
        integers = {"indices", "ranking", "columns"}
        fields = named_fields({name: raw[name] for name in cls.__dataclass_fields__})
        fields |= {name: np.array(raw[name], dtype=np.int64) for name in integers}
        fields["scores"] = np.array(raw["scores"], dtype=np.float64)
        fields["support"] = np.array(raw["support"], dtype=bool)
        return cls(**fields)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, as a file holds them."""
        return isinstance(other, Selection) and json.dumps(self.to_dict()) == json.dumps(other.to_dict())

    def __hash__(self) -> int:
        return hash((self.method, self.seed, *self.indices.tolist()))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.features[:6])) + (", ..." if len(self.features) > 6 else "")
        counted = f"{len(self.features)} of {len(self.names)} features"
        noted = [f"notes: {len(self.notes)}"] if self.notes else []
        return f"Selection({counted}: {shown or 'none'}; {'; '.join(self.remarks() + noted)})"

    def remarks(self) -> list[str]:
        """Short remarks for the repr: the task first, then exceptions (partial, no better than chance, why empty)."""
        notes = [describe_task(self.settings)]
        notes += ["partial"] if self.settings.get("partial") else []
        if self.chance is not None:
            notes += [] if self.chance["better"] else [no_better(self.settings)]
        elif lacks_evidence(self.settings) and not found_together(self.curve, self.settings):
            notes += ["no feature is significant by itself"]
        notes += [reason] if (reason := why_empty(self)) else []
        if self.stability is not None and self.features:
            shares = np.array(self.stability["frequency"])[self.indices]
            notes += [chosen_in(self.scores, shares, self.stability["repeats"], "chosen")]
        return notes


def lacks_evidence(settings: dict[str, Any]) -> bool:
    """Whether the univariate test before training found no feature that is related to the target by itself."""
    return bool(settings.get("min_q_value", 0.0) > SIGNIFICANT)


def _given_text(name: Any) -> str:
    """The text of a name in settings, where a tuple is a list."""
    return str(tuple(name) if isinstance(name, list) else name)


class _Partial(BaseException):
    """The end of a run that had selected some features: ``selections``, one per seed."""

    def __init__(self, message: str, selections: list[Selection]) -> None:
        super().__init__(message)
        self.selections = selections

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.selections)


class SelectionInterrupted(_Partial, KeyboardInterrupt):
    """Ctrl-C during training; ``selections`` holds the features selected before that, one selection per seed."""


class TrainingDiverged(_Partial, RuntimeError):
    """The training loss became NaN or infinite; ``selections`` holds the features selected before that."""


def make_selection(
    layout: FeatureLayout,
    trace: Trace,
    whole: FeatureLayout | None = None,
    *,
    method: str,
    seed: int,
    settings: dict[str, Any],
    environment: dict[str, str],
    timings: dict[str, float],
) -> Selection:
    """The selection of a trace, with features mapped back to the user's order.

    ``whole`` also has the features that may not be selected, which come last.
    """
    whole = layout if whole is None else whole
    user_order = np.argsort(whole.user_position)
    names = [whole.given_names[f] for f in user_order]
    position_of = {str(name): position for position, name in enumerate(names)}
    positions = np.array([position_of[str(name)] for name in layout.given_names], dtype=np.int64)
    excluded = np.setdiff1d(np.arange(whole.features), positions)
    ranking = np.empty(whole.features, dtype=np.int64)
    order = np.concatenate([positions[trace.order + trace.rest], excluded])
    ranking[order] = np.arange(1, whole.features + 1)
    support = np.zeros(whole.features, dtype=bool)
    support[positions[trace.order]] = True
    stability, discoveries = trace.findings_among(np.sort(positions), whole.features)
    return Selection(
        method=method,
        seed=seed,
        indices=positions[trace.order],
        features=[layout.given_names[f] for f in trace.order],
        scores=np.array([trace.score_of(f) for f in trace.order], dtype=np.float64),
        ranking=ranking,
        support=support,
        columns=np.array([c for f in trace.order for c in layout.input_columns[f]], dtype=np.int64),
        names=names,
        input_columns=[list(whole.input_columns[f]) for f in user_order],
        input_names=list(whole.given_input_names),
        history=trace.history(layout.given_names),
        settings=settings,
        environment=environment,
        seconds=sum(timings.values()),
        timings=timings,
        curve=trace.curve,
        stability=stability,
        importance=trace.named_importance(layout.given_names),
        false_discoveries=discoveries,
        chance=trace.chance,
        frontier=trace.frontier,
    )
