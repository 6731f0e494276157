"""Conditional mutual information maximisation (Fleuret 2004).

The next feature maximises, over the candidates n, the minimum over selected v of I(Y; X_n | X_v). The minimum can only
fall as features are selected, so an old score is an upper bound. Such bounds rule out most candidates. With several
targets, the scores per target are averaged. A group has the score of its best variable, and once it is selected, all
its variables count as selected.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.joint_counts import InformationSource, JointCounts
from seqatt.algorithms.filters.variables import (
    bin_values,
    code_variables,
    features_of_variables,
    varying_outputs,
)
from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.selection_state import Quotas

MAX_BINS = 10  # by default
ROWS_PER_CELL = 5  # of the joint table of two variables and the target, on average at least, by default
DIGITS = 12  # scores that agree to this many decimals tie, so that the order of summation does not matter


@register("cmim", plan=lambda request: Plan(request.options.to_settings(), request.k))
def cmim(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """Select k features. There is no randomness: every seed has the same result."""
    data, options = request.table, request.options
    outputs = varying_outputs(data)
    numeric = data.target.loss.numeric
    classes = max(2 if numeric else int(output.max()) + 1 for output in outputs)
    bins = options.bins or default_bins(data.rows, None if numeric else classes)
    if numeric:
        outputs = [bin_values(output, bins, data.weights) for output in outputs]
    codes = _stack_codes(data, bins)
    weights = None if data.weights is None else data.weights.astype(np.float64)
    counts = JointCounts(codes, outputs, weights)
    search = CMIMSearch(counts, features_of_variables(data), data.constant, options.lazy)
    trace = run_search(search, data.constant, request.k, advance, request.kept, request.quotas)
    trace = replace(trace, settings={"bins": bins})
    return [trace] * len(request.seeds)


def run_search(
    search: CMIMSearch,
    constant: NDArray[np.bool_],
    k: int,
    advance: Callable[[int], None],
    kept: Sequence[int] = (),
    quotas: Quotas | None = None,
) -> Trace:
    """Select ``k`` features beside those ``kept``, which are among them; constant features come last."""
    records, order = [], list(kept)
    for feature in kept:
        search.select(feature)
    while len(order) < k:
        started = time.perf_counter()
        if quotas is not None:  # what is not allowed now will not be later: features are only added
            search.leave_out(~quotas.takeable(order))
        if not search.has_candidates:
            break
        scores, feature = search.select_next()
        order.append(feature)
        records.append(PhaseRecord(1, "all", None, time.perf_counter() - started, [feature], scores=scores))
        advance(1)
    by_score = np.lexsort((np.arange(len(constant)), -search.scores(), constant)).tolist()
    ranked = order + [f for f in by_score if f not in set(order)]
    return Trace(ranked[:k], ranked[k:], records)


class CMIMSearch:
    """Selects one feature after another; ``feature_of[v]`` is the feature of variable v.

    The score of a variable is the mean over the targets of its least information, alone or given any selected
    variable. It is computed against one selected variable after another, and until it has been compared with all of
    them, it is an upper bound. Candidates wait in a queue by their bounds: only the first one has to be exact.
    """

    def __init__(
        self,
        source: InformationSource,
        feature_of: NDArray[np.int64],
        constant: NDArray[np.bool_],
        lazy: bool,
    ) -> None:
        self._source, self._feature_of, self._lazy = source, feature_of, lazy
        self._selected: list[int] = []  # variables of the selected features
        self._is_candidate = ~constant[feature_of]
        variables = len(feature_of)
        self._compared = np.zeros(variables, dtype=np.intp)  # selected variables that each bound includes
        self._bounds = np.array([source.information(v) for v in range(variables)])  # (variables, targets)
        self._queue: list[tuple[float, int, int]] = []
        self._fill_queue()

    def scores(self) -> NDArray[np.float64]:
        """One score per feature; with ``lazy`` an upper bound for those that were not selected."""
        scores = np.zeros(int(self._feature_of.max()) + 1)
        np.maximum.at(scores, self._feature_of, np.round(self._bounds.mean(1), DIGITS))
        return scores

    def select_next(self) -> tuple[NDArray[np.float64], int]:
        """The current scores, and the feature with the highest; ties go to the lowest index."""
        if not self._lazy:
            for v in np.flatnonzero(self._is_candidate).tolist():
                while not self._is_exact(v):
                    self._tighten(v)
            self._fill_queue()
        while True:
            _, feature, v = self._queue[0]
            if not self._is_candidate[v]:
                heapq.heappop(self._queue)
            elif self._is_exact(v):
                break
            else:
                self._tighten(v)
                heapq.heapreplace(self._queue, self._entry(v))
        scores = self.scores()
        self.select(feature)
        return scores, feature

    @property
    def has_candidates(self) -> bool:
        return bool(self._is_candidate.any())

    def select(self, feature: int) -> None:
        """Count a feature as selected."""
        variables = np.flatnonzero(self._feature_of == feature)
        self._selected += variables.tolist()
        self._is_candidate[variables] = False

    def leave_out(self, features: NDArray[np.bool_]) -> None:
        """Never select these features (d,)."""
        self._is_candidate &= ~features[self._feature_of]

    def _fill_queue(self) -> None:
        self._queue = [self._entry(v) for v in np.flatnonzero(self._is_candidate).tolist()]
        heapq.heapify(self._queue)

    def _entry(self, v: int) -> tuple[float, int, int]:
        return (-round(float(self._bounds[v].mean()), DIGITS), int(self._feature_of[v]), v)

    def _is_exact(self, v: int) -> bool:
        return bool(self._compared[v] == len(self._selected))

    def _tighten(self, v: int) -> None:
        """Compare a candidate with the next of the selected variables."""
        information = self._source.information(v, self._selected[self._compared[v]])
        self._bounds[v] = np.minimum(self._bounds[v], information)
        self._compared[v] += 1


def default_bins(rows: int, classes: int | None) -> int:
    """The most bins with enough rows per cell; ``classes`` is None for a numeric target, which is binned too."""
    for bins in range(MAX_BINS, 2, -1):
        if bins**2 * (classes or bins) * ROWS_PER_CELL <= rows:
            return bins
    return 2


def _stack_codes(data: TableData, bins: int) -> NDArray[Any]:
    """The codes (variables, n) of the table, in one byte each where that is enough."""
    stacked = np.empty((len(features_of_variables(data)), data.rows), dtype=np.uint8)
    for v, codes in enumerate(code_variables(data, bins)):
        if codes.max() > np.iinfo(stacked.dtype).max:
            stacked = stacked.astype(np.int32)
        stacked[v] = codes
    return stacked
