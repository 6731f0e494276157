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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.binning import bin_values
from seqatt.algorithms.filters.discrete import code_variables, inputs, varying_outputs
from seqatt.algorithms.filters.joint_counts import InformationSource, JointCounts
from seqatt.algorithms.registry import Plan, SelectionRequest, register
from seqatt.data.tables.table_data import TableData
from seqatt.options import Options, option
from seqatt.progress import Advance
from seqatt.selection import PhaseRecord, Trace
from seqatt.validation import boolean, integer

MOST_BINS = 10
ROWS_A_CELL = 5  # of the joint table of two variables and the target, on average, where bins are not given
DIGITS = 12  # scores that agree so far are a tie, which no order of summation may decide


@dataclass(frozen=True)
class CMIMOptions(Options):
    """Options of CMIM."""

    bins: int | None = option(
        None, integer(2, optional=True), "Bins of numbers; by default as many as the rows allow, at most 10."
    )
    lazy: bool = option(True, boolean(), "Skip candidates that an upper bound already rules out.")


@register(
    "cmim",
    title="CMIM",
    summary="information about the target that no single chosen feature has given already",
    options=CMIMOptions,
    plan=lambda request: Plan(request.options.to_settings(), request.k),
)
def cmim(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """Select k features. There is no randomness: every seed has the same result."""
    data, options = request.data, request.options
    outputs = varying_outputs(data)
    numeric = data.target.task == "regression"
    classes = max(2 if numeric else int(output.max()) + 1 for output in outputs)
    bins = options.bins or default_bins(data.rows, None if numeric else classes)
    if numeric:
        outputs = [bin_values(output, bins, data.weights) for output in outputs]
    codes = _stack(data, bins)
    weights = None if data.weights is None else data.weights.astype(np.float64)
    search = CMIMSearch(JointCounts(codes, outputs, weights), inputs(data), data.constant, options.lazy)
    trace = replace(trace_of(search, data.constant, request.k, advance), settings={"bins": bins})
    return [trace] * len(request.seeds)


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


def _stack(data: TableData, bins: int) -> NDArray[Any]:
    """Codes in as few bytes as hold them: there is one for every cell of the table."""
    out = np.empty((len(inputs(data)), data.rows), dtype=np.uint8)
    for v, codes in enumerate(code_variables(data, bins)):
        if codes.max() > np.iinfo(out.dtype).max:
            out = out.astype(np.int32)
        out[v] = codes
    return out
