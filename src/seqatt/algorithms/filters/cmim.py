"""Conditional mutual information maximisation (Fleuret 2004).

The next feature is the one that says most about the target, whichever one of the chosen features is known
already: ``max over n of min over v of I(Y; X_n | X_v)``. A minimum only falls as features are chosen, so a
score worked out against some of them bounds the whole one from above, and most candidates are beaten by such
a bound. With several targets it is each target's own score, averaged. A group is worth what its best variable
is, and all its variables are known once it is chosen.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.binning import bin_values
from seqatt.algorithms.filters.discrete import code_variables, inputs, varying_outputs
from seqatt.algorithms.filters.joint_counts import InformationSource, JointCounts
from seqatt.algorithms.filters.options import CMIMOptions
from seqatt.data.tables.table_data import TableData
from seqatt.selection import PhaseRecord, Trace

MOST_BINS = 10
ROWS_A_CELL = 5  # of the joint table of two variables and the target, on average, where bins are not given
DIGITS = 12  # scores that agree so far are a tie, which no order of summation may decide


def choose_by_cmim(
    source: TableData, k: int, options: CMIMOptions, advance: Callable[[int], None]
) -> tuple[Trace, dict[str, Any]]:
    """``k`` features; nothing is drawn, so there is one answer for all seeds."""
    outputs = varying_outputs(source)
    numeric = source.target.task == "regression"
    classes = max(2 if numeric else int(output.max()) + 1 for output in outputs)
    bins = options.bins or default_bins(source.rows, None if numeric else classes)
    if numeric:
        outputs = [bin_values(output, bins, source.weights) for output in outputs]
    codes = _stack(source, bins)
    weights = None if source.weights is None else source.weights.astype(np.float64)
    search = CMIMSearch(JointCounts(codes, outputs, weights), inputs(source), source.constant, options.lazy)
    return trace_of(search, source.constant, k, advance), {"bins": bins, "lazy": options.lazy}


def trace_of(
    search: CMIMSearch, constant: NDArray[np.bool_], k: int, advance: Callable[[int], None]
) -> Trace:
    """``k`` choices; constant features fill up what is missing, and come last."""
    steps = []
    for _ in range(min(k, int((~constant).sum()))):
        started = time.perf_counter()
        scores, feature = search.choose()
        steps.append(PhaseRecord(1, "all", None, time.perf_counter() - started, [feature], scores=scores))
        advance(1)
    order = [step.taken[0] for step in steps]
    last = np.lexsort((np.arange(len(constant)), -search.scores(), constant)).tolist()
    ranked = order + [f for f in last if f not in set(order)]
    return Trace(ranked[:k], ranked[k:], steps)


class CMIMSearch:
    """One choice after another, from codes alone: ``feature_of[v]`` is the feature of variable v."""

    def __init__(
        self, counts: InformationSource, feature_of: NDArray[np.int64], barred: NDArray[np.bool_], lazy: bool
    ) -> None:
        self.counts, self.feature_of, self.lazy = counts, feature_of, lazy
        self.known: list[int] = []  # variables of the chosen features
        self.open = ~barred[feature_of]
        count = len(feature_of)
        self.met = np.zeros(count, dtype=np.intp)  # how many of the known each has been judged against
        self.partial = np.array([counts.information(v) for v in range(count)])
        self.queue: list[tuple[float, int, int]] = []
        self._line_up()

    def scores(self) -> NDArray[np.float64]:
        """A score for every feature; with ``lazy`` an upper bound for those that were not chosen."""
        out = np.zeros(int(self.feature_of.max()) + 1)
        np.maximum.at(out, self.feature_of, np.round(self.partial.mean(1), DIGITS))
        return out

    def choose(self) -> tuple[NDArray[np.float64], int]:
        """The scores as they stand, and the feature they are for: of equals the first."""
        if not self.lazy:
            for v in np.flatnonzero(self.open).tolist():
                while not self._is_settled(v):
                    self._judge(v)
            self._line_up()
        while True:
            _, feature, v = self.queue[0]
            if not self.open[v]:
                heapq.heappop(self.queue)
            elif self._is_settled(v):
                break
            else:
                self._judge(v)
                heapq.heapreplace(self.queue, self._entry(v))
        scores = self.scores()
        mine = np.flatnonzero(self.feature_of == feature)
        self.known += mine.tolist()
        self.open[mine] = False
        return scores, feature

    def _line_up(self) -> None:
        self.queue = [self._entry(v) for v in np.flatnonzero(self.open).tolist()]
        heapq.heapify(self.queue)

    def _entry(self, v: int) -> tuple[float, int, int]:
        return (-round(float(self.partial[v].mean()), DIGITS), int(self.feature_of[v]), v)

    def _is_settled(self, v: int) -> bool:
        return bool(self.met[v] == len(self.known))

    def _judge(self, v: int) -> None:
        """Against the next of the known variables."""
        found = self.counts.information(v, self.known[self.met[v]])
        self.partial[v] = np.minimum(self.partial[v], found)
        self.met[v] += 1


def default_bins(rows: int, classes: int | None) -> int:
    """The most bins that leave enough rows for each cell; a target of numbers is binned alike."""
    for bins in range(MOST_BINS, 2, -1):
        if bins**2 * (classes or bins) * ROWS_A_CELL <= rows:
            return bins
    return 2


def _stack(source: TableData, bins: int) -> NDArray[Any]:
    """Codes in as few bytes as hold them: there is one for every cell of the table."""
    out = np.empty((len(inputs(source)), source.rows), dtype=np.uint8)
    for v, codes in enumerate(code_variables(source, bins)):
        if codes.max() > np.iinfo(out.dtype).max:
            out = out.astype(np.int32)
        out[v] = codes
    return out
