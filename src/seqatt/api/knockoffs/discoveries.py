"""``fdr``: choose as many features as can be chosen with that false discovery rate.

The method ranks every feature beside m knockoffs of it. A feature that does not matter given the others is as likely to
rank first among these m + 1 as any of its knockoffs. So features that rank before all of their knockoffs by chance are
one m-th as many as those that rank behind one of theirs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.answer_options import AUTO, AnswerOptions
from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.knockoffs.gaussian import Floats
from seqatt.api.knockoffs.knockoff_table import KnockoffTable, make_knockoff_table
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
            self._knockoffs = make_knockoff_table(self._data, COPIES, seed)
        self.table = self._knockoffs.table
        self.size = min(MAX_SIZE, int((~self.table.constant).sum()))

    @property
    def user_position(self) -> NDArray[np.int64]:
        """The position that each feature of ``table`` has among those of the user; -1 for a knockoff."""
        slot, feature = np.divmod(np.arange(self.table.features), self._data.features)
        is_original = slot == self._knockoffs.original[feature]
        return np.where(is_original, self._data.user_position[feature], -1)

    @property
    def given_names(self) -> tuple[Any, ...]:
        """The name of each feature of ``table``, and of the feature that a knockoff is of."""
        return self._data.given_names * (COPIES + 1)

    def select(self, method: Method, request: SelectionRequest, plan: Any, advance: Advance) -> list[Trace]:
        """The features that are chosen; ``request`` and ``plan`` are about ``table``."""
        try:
            traces = method.select(request, plan, advance)
        except (Diverged, TrainingInterrupted) as error:  # a part of the ranking says nothing
            raise type(error)([Trace([], list(range(self._data.features)))]) from None
        return [self._choose(trace) for trace in traces]

    def _choose(self, trace: Trace) -> Trace:
        data, knockoffs, fdr, most = self._data, self._knockoffs, self._fdr, self._most
        ranking = trace.order + trace.rest
        w = knockoff_statistics(knockoffs, ranking)
        choice = choose_threshold(w, fdr, knockoffs.copies, most)
        order = np.argsort(-w, kind="stable")[: choice.chosen].tolist()
        statistics = np.zeros(data.features)
        statistics[data.user_position] = w
        fewest = ceil(round(1 / (fdr * knockoffs.copies), 9))
        notes = _assumption_warnings(data, knockoffs) + (
            [] if choice.chosen else _too_few(w, fdr, fewest, most)
        )
        for note in notes:
            warnings.warn(f"fdr: {note}", stacklevel=2)
        return Trace(
            order,
            [feature for feature in _originals(knockoffs, ranking) if feature not in order],
            [_without_knockoffs(knockoffs, phase) for phase in trace.phases],
            trace.settings | {"k": choice.chosen, "fdr": fdr, "max_k": most},
            false_discoveries={
                "rate": fdr,
                "estimated_rate": choice.estimated_rate if choice.chosen else None,
                "threshold": choice.threshold if choice.chosen else None,
                "statistics": statistics.tolist(),
                "raced": int((w != 0).sum()),
                "knockoffs": knockoffs.copies,
                "fewest": fewest,
                "warnings": notes,
            },
        )


class Choice(NamedTuple):
    """The features with a statistic of at least ``threshold``, an infinite one if there are none."""

    threshold: float
    estimated_rate: float
    chosen: int


def knockoff_statistics(knockoffs: KnockoffTable, ranking: list[int]) -> Floats:
    """The statistic W (d,) of each feature, from a ranking of all features and knockoffs.

    The v features that vary are ordered by the best rank among a feature and its knockoffs: the first has the absolute
    value v, the next v - 1, down to 1. W is positive if the feature itself has the best rank, and negative if one of
    its knockoffs has. It is 0 for constant features.
    """
    features = knockoffs.features
    varying = ~knockoffs.table.constant[:features]
    w = np.zeros(features)
    value = float(varying.sum())
    for number in ranking:
        slot, feature = divmod(number, features)
        if w[feature] == 0 and varying[feature]:
            w[feature] = value if slot == knockoffs.original[feature] else -value
            value -= 1
    return w


def choose_threshold(w: Floats, fdr: float, copies: int, most: int | None = None) -> Choice:
    """The smallest threshold at which the estimated rate is at most ``fdr`` (knockoff+), and at most ``most`` remain.

    The rate at t is (1 + #{W <= -t}) / (m #{W >= t}): a feature without effect comes before all of its m knockoffs
    with probability 1 / (m + 1), so there are m times as many negative as positive values among such features.
    """
    limit = len(w) if most is None else most
    for t in np.unique(np.abs(w[w != 0])):
        chosen = int((w >= t).sum())
        rate = (1 + int((w <= -t).sum())) / (copies * max(1, chosen))
        if rate <= fdr and 0 < chosen <= limit:
            return Choice(float(t), rate, chosen)
    return Choice(np.inf, 0.0, 0)


def check_table(data: Any) -> TableData:
    """Refuse data that no knockoffs can be made for."""
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


def _originals(knockoffs: KnockoffTable, ranking: Sequence[int]) -> list[int]:
    """The features of a ranking of features and knockoffs, in the same order."""
    pairs = (divmod(number, knockoffs.features) for number in ranking)
    return [feature for slot, feature in pairs if slot == knockoffs.original[feature]]


def _without_knockoffs(knockoffs: KnockoffTable, phase: PhaseRecord) -> PhaseRecord:
    """The record of a phase with the features alone."""
    scores = phase.scores
    if scores is not None:
        scores = scores[knockoffs.original * knockoffs.features + np.arange(knockoffs.features)]
    taken, dropped = (_originals(knockoffs, features) for features in (phase.taken, phase.dropped))
    return replace(phase, taken=taken, dropped=dropped, scores=scores)


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


def _assumption_warnings(data: TableData, knockoffs: KnockoffTable) -> list[str]:
    """Warnings where the table violates the assumptions of the knockoff filter or leaves it little power."""
    texts, columns = [], len(knockoffs.feature_of)
    if data.rows < ROWS_PER_COLUMN * columns:
        texts.append(
            f"{data.rows:,} rows are few for {columns:,} columns, whose correlations knockoffs have to repeat; the "
            "rate may be exceeded"
        )
    if knockoffs.entangled:
        texts.append(
            f"the categories of {_list(data, knockoffs.entangled)} depend on other features in more ways than "
            "knockoffs repeat; the rate may be exceeded"
        )
    near_copies = np.unique(knockoffs.feature_of[knockoffs.largest > NEAR_COPY]).tolist()
    if near_copies:
        texts.append(
            f"{_list(data, near_copies)} can hardly be told from other features (correlation above {NEAR_COPY}), nor "
            "from knockoffs; few of them can be found, leave out near copies or declare groups"
        )
    return texts


def _list(data: TableData, features: Sequence[int]) -> str:
    """The names of some features, and how many more there are."""
    return name_some([repr(data.given_names[f]) for f in features[:SHOWN]], len(features))
