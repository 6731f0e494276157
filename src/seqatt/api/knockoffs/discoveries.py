"""``fdr``: choose as many features as can be chosen with that false discovery rate.

Every feature races with knockoffs of itself in one training. A feature that does not matter given the others is as
likely to come first of its family as any of its m knockoffs, so the families that a knockoff wins say how many of those
that a feature wins are won by chance: one m-th as many.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.answer_options import AUTO, AnswerOptions
from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.knockoffs.gaussian import Floats
from seqatt.api.knockoffs.race import Race, make_race
from seqatt.api.knockoffs.statistic import choose_threshold, rank_families
from seqatt.data.tables.table_data import SparseColumns, TableData, resolve_k
from seqatt.linear.threads import single_blas_thread
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.loop import Diverged, TrainingInterrupted
from seqatt.validation import name_some

COPIES = 5  # knockoffs per feature; at a rate q at least 1 / (5 q) features can be chosen, or none
MAX_SIZE = 50  # features and knockoffs that the method selects; the others are ranked by their last scores
MIN_ROWS = 50
MAX_COLUMNS = 4_000  # input columns; their correlation matrix is factorised about ten times
MAX_CELLS = 1 << 30  # of the table with its knockoffs (4 GiB)
ROWS_PER_COLUMN = 2  # with fewer, correlations are too poorly known for the rate to be promised
NEAR_COPY = 0.95  # correlation above which a column can hardly be told from another
SHOWN = 3  # features named in a warning


def check_arguments(answer: AnswerOptions, k: Any, model: Any) -> None:
    """Refuse what cannot be combined with ``fdr``."""
    from torch import nn

    if answer.fdr is None:
        return
    if k == AUTO:
        raise ValueError(
            "k: fdr finds the number of features itself; leave k out, or give a number as its upper bound"
        )
    if answer.repeats:
        raise ValueError("repeats: cannot be combined with fdr; use one of them")
    if answer.importance:
        raise ValueError("importance: cannot be combined with fdr, which trains with knockoffs; leave it out")
    if isinstance(model, nn.Module):
        raise ValueError(
            f"model: fdr trains on {COPIES + 1} times the columns; give a function (columns, outputs) that makes the "
            "model, or leave fdr out"
        )


class Discoveries:
    """The features of a table and the knockoffs that they compete with, and what is chosen when they have.

    ``fdr`` is the rate and ``k``, if it is not None, the most that may be chosen. ``table`` holds features and
    knockoffs, and ``size`` is how many of them the method selects.
    """

    def __init__(self, data: Any, fdr: float, k: Any, seed: int) -> None:
        self._data, self._fdr = check_table(data), fdr
        self._most = None if k is None else resolve_k(k, self._data.features)
        with single_blas_thread():  # so that the number of threads changes no digit
            self._race = make_race(self._data, COPIES, seed)
        self.table = self._race.table
        self.size = min(MAX_SIZE, int((~self.table.constant).sum()))

    @property
    def user_position(self) -> NDArray[np.int64]:
        """The position that each feature of ``table`` has among those of the user; -1 for a knockoff."""
        slot, feature = np.divmod(np.arange(self.table.features), self._data.features)
        is_original = slot == self._race.original[feature]
        return np.where(is_original, self._data.user_position[feature], -1)

    @property
    def given_names(self) -> tuple[Any, ...]:
        """The name of each feature of ``table``, and of the feature that a knockoff is of."""
        return self._data.given_names * (COPIES + 1)

    def select(self, method: Method, request: SelectionRequest, plan: Any, advance: Advance) -> list[Trace]:
        """The features that are chosen; ``request`` and ``plan`` are about ``table``."""
        try:
            traces = method.select(request, plan, advance)
        except (Diverged, TrainingInterrupted) as error:  # a part of a race says nothing
            raise type(error)([Trace([], list(range(self._data.features)))]) from None
        return [self._choose(trace) for trace in traces]

    def _choose(self, trace: Trace) -> Trace:
        data, race, fdr, most = self._data, self._race, self._fdr, self._most
        finish = trace.order + trace.rest
        w = rank_families(race, finish)
        choice = choose_threshold(w, fdr, race.copies, most)
        order = np.argsort(-w, kind="stable")[: choice.chosen].tolist()
        statistics = np.zeros(data.features)
        statistics[data.user_position] = w
        fewest = ceil(round(1 / (fdr * race.copies), 9))
        notes = _doubts(data, race) + ([] if choice.chosen else _too_few(w, fdr, fewest, most))
        for note in notes:
            warnings.warn(f"fdr: {note}", stacklevel=2)
        return Trace(
            order,
            [feature for feature in _originals(race, finish) if feature not in order],
            [_without_knockoffs(race, phase) for phase in trace.phases],
            trace.settings | {"k": choice.chosen, "fdr": fdr, "max_k": most},
            false_discoveries={
                "rate": fdr,
                "estimated_rate": choice.estimated_rate if choice.chosen else None,
                "threshold": choice.threshold if choice.chosen else None,
                "statistics": statistics.tolist(),
                "raced": int((w != 0).sum()),
                "knockoffs": race.copies,
                "fewest": fewest,
                "warnings": notes,
            },
        )


def check_table(data: Any) -> TableData:
    """Refuse data of which no knockoffs can be made."""
    if not isinstance(data, TableData):
        raise ValueError(
            "fdr: needs a table; raise memory so that the files are read into one, or use a number as k"
        )
    if isinstance(data.columns, SparseColumns):
        raise ValueError("fdr: needs a table that fits in memory as a dense one; use a number as k")
    if data.rows < MIN_ROWS:
        raise ValueError(f"fdr: needs at least {MIN_ROWS} rows, got {data.rows}; use a number as k")
    inputs = len(data.column_order)
    if inputs > MAX_COLUMNS:
        raise ValueError(
            f"fdr: is for at most {MAX_COLUMNS:,} columns, got {inputs:,}; leave some out, or use a number as k"
        )
    if (COPIES + 1) * data.columns.size > MAX_CELLS:
        raise ValueError(
            f"fdr: the table with {COPIES} knockoffs of each column has more than {MAX_CELLS:,} cells; use fewer rows, "
            "or a number as k"
        )
    if data.constant.all():
        raise ValueError("fdr: every feature is constant, so that there is nothing to choose from")
    return data


def _originals(race: Race, members: Sequence[int]) -> list[int]:
    """The features among members of the race, in the same order, without knockoffs."""
    pairs = (divmod(member, race.features) for member in members)
    return [feature for slot, feature in pairs if slot == race.original[feature]]


def _without_knockoffs(race: Race, phase: PhaseRecord) -> PhaseRecord:
    """What a phase says about the features."""
    scores = phase.scores
    if scores is not None:
        scores = scores[race.original * race.features + np.arange(race.features)]
    return replace(
        phase, taken=_originals(race, phase.taken), dropped=_originals(race, phase.dropped), scores=scores
    )


def _too_few(w: Floats, fdr: float, fewest: int, most: int | None) -> list[str]:
    """Why nothing was chosen, if the rate is the reason."""
    limit = len(w) if most is None else most
    needs = f"a rate of {fdr:g} needs at least {fewest}"
    if fewest > limit:
        return [f"{needs} features, and no more than {limit} may be chosen; use a larger rate"]
    leading = int((w > np.abs(w[w < 0]).max(initial=0.0)).sum())
    if not 0 < leading < fewest:
        return []
    verb = "features come" if leading > 1 else "feature comes"
    return [f"{leading} {verb} before all knockoffs, and {needs}; a larger rate may find them"]


def _doubts(data: TableData, race: Race) -> list[str]:
    """What speaks against the rate being kept on this table, or against finding much."""
    doubts, columns = [], len(race.feature_of)
    if data.rows < ROWS_PER_COLUMN * columns:
        doubts.append(
            f"{data.rows:,} rows are few for {columns:,} columns, whose correlations knockoffs have to repeat; the "
            "rate may be exceeded"
        )
    if race.entangled:
        doubts.append(
            f"the categories of {_list(data, race.entangled)} depend on other features in more ways than knockoffs "
            "repeat; the rate may be exceeded"
        )
    near_copies = np.unique(race.feature_of[race.largest > NEAR_COPY]).tolist()
    if len(near_copies):
        doubts.append(
            f"{_list(data, near_copies)} can hardly be told from other features (correlation above {NEAR_COPY}), nor "
            "from knockoffs; few of them can be found, leave out near copies or declare groups"
        )
    return doubts


def _list(data: TableData, features: Sequence[int]) -> str:
    """The names of some features, and how many more there are."""
    return name_some([repr(data.given_names[f]) for f in features[:SHOWN]], len(features))
