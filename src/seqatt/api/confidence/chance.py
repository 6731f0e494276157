"""Whether selected features are better than random ones, on rows that selected none of them.

The test is for tables of which no feature is related to the target by itself: a selection may then be noise, or of
features that matter together. The rows are divided into folds. On the rows of the others the method selects as many
features again, and networks train on these and on random features; they are scored on the fold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.confidence.folds import (
    FOLDS,
    MIN_ROWS,
    Fold,
    divide_rows,
    make_fold,
    pool_folds,
    score_nothing,
    score_per_fold,
)
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.losses.loss import Score
from seqatt.progress import Advance
from seqatt.trace import Trace

RANDOM_SETS = 5
CLEARLY = 2.0  # standard errors by which the mean over the folds is better,
IN_ONE_FOLD = 3.5  # or the score on one of them


def is_testable(data: Any) -> bool:
    """Whether the rows can be divided into folds."""
    return (
        isinstance(data, TableData)
        and not isinstance(data.columns, SparseColumns)
        and data.rows >= FOLDS * MIN_ROWS
    )


def compare_with_random(method: Method, request: SelectionRequest, advance: Advance) -> list[dict[str, Any]]:
    """For each seed the scores of selected and of random features, and whether the former are clearly "better".

    Better is: by two standard errors, than the mean of the random sets and than no features; or by 3.5 on one fold.
    """
    data = request.table
    folds = [make_fold(data, rows) for rows in divide_rows(data, 0)]
    advance(0, "Testing against random features", len(folds) + len(request.seeds))
    selected = []
    for number, fold in enumerate(folds, 1):
        selected.append(_select(method, request, fold, number))
        advance(1)
    random = [_random_sets(request, fold) for fold in folds]
    if not all(random):
        random = [[] for _ in folds]
    nothing, results = score_nothing(folds), []
    for number, seed in enumerate(request.seeds):
        sets = [[own[number].order, *others] for own, others in zip(selected, random, strict=True)]
        results.append(_compare(nothing, *score_per_fold(folds, sets, seed)))
        advance(1)
    return [{"metric": data.target.loss.score_name, "folds": FOLDS} | result for result in results]


def _select(method: Method, request: SelectionRequest, fold: Fold, number: int) -> list[Trace]:
    """What the method selects on the rows of the other folds, per seed."""
    own = replace(request, data=fold.train)
    plan = method.plan(own)
    own = own.as_part(f"test fold {number} of {FOLDS}", plan.steps)
    traces: list[Trace] = method.select(own, plan, own.hook.advance)
    return [own.arrange(trace) for trace in traces]


def _random_sets(request: SelectionRequest, fold: Fold) -> list[list[int]]:
    """Random features, as many as are selected, beside those that are kept; none if all are selected."""
    rng = np.random.default_rng(int(fold.rows[0]))
    others = np.setdiff1d(np.flatnonzero(~fold.train.constant), request.kept)
    count = request.k - len(request.kept)
    if count >= len(others):
        return []
    rankings = [rng.permutation(others).tolist() for _ in range(RANDOM_SETS)]
    if request.quotas is None:
        return [[*request.kept, *ranking[:count]] for ranking in rankings]
    return [request.quotas.first(ranking, request.kept) for ranking in rankings]


def _compare(nothing: float, selected: list[Score], *random: list[Score]) -> dict[str, Any]:
    """The scores; without random sets, because all features are selected, no features are what counts."""
    score, means = pool_folds(selected), np.array([pool_folds(each).mean for each in random])
    spread = means.std(ddof=1) / np.sqrt(len(means)) if random else 0.0
    others = max(nothing, means.mean()) if random else nothing
    better = score.mean - others > CLEARLY * np.hypot(score.standard_error, spread)
    # The features of a fold may matter though those of the others do not, as where one fold finds a pair.
    better |= any(
        each.mean - others > IN_ONE_FOLD * np.hypot(each.standard_error, spread) for each in selected
    )
    return {
        "score": score.mean,
        "standard_error": score.standard_error,
        "random_features": float(means.mean()) if random else None,
        "no_features": nothing,
        "better": bool(better),
    }
