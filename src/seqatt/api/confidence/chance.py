"""Whether selected features are better than random ones, on rows that selected none of them.

The test is for tables in which no feature is related to the target by itself: the selected features are then noise, or
matter only together. The rows are divided into folds. For each fold, the method selects as many features on the other
rows, networks train there on these and on random features, and the networks are scored on the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
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

BUDGET = 0.3  # steps of a fold's single model, as a share of its default
RANDOM_SETS = 5
# A selection is better if its score exceeds that of random features by so many standard errors:
MIN_Z_MEAN = 2.0  # of the mean over the folds, or
MIN_Z_FOLD = 3.5  # of the score on a single fold


def is_testable(data: Any) -> bool:
    """Whether the rows can be divided into folds."""
    return (
        isinstance(data, TableData)
        and not isinstance(data.columns, SparseColumns)
        and data.rows >= FOLDS * MIN_ROWS
    )


def compare_with_random(method: Method, request: SelectionRequest, advance: Advance) -> list[dict[str, Any]]:
    """For each seed the scores of selected and of random features, and whether the former are clearly "better".

    Better is: by two standard errors, than the mean of the random sets and than no features; or by 3.5 on one fold. A
    seed for which a fold is that clear needs no other fold: ``folds`` says how many selected.
    """
    data = request.table
    folds = [make_fold(data, rows) for rows in divide_rows(data, 0)]
    advance(0, "Testing against random features", len(folds))
    nothing, random = score_nothing(folds), [_random_sets(request, fold) for fold in folds]
    if not all(random):
        random = [[] for _ in folds]
    trials = [_TestedTrial(folds, random, nothing, seed) for seed in request.seeds]
    unclear = trials
    for number, fold in enumerate(folds, 1):
        remaining = replace(request, seeds=[trial.seed for trial in unclear])
        for trial, features in zip(unclear, _select(method, remaining, fold, number), strict=True):
            trial.add(features)
        advance(1)
        unclear = [trial for trial in unclear if not trial.is_clear()]
        if not unclear:
            advance(len(folds) - number)
            break
    metric = data.target.loss.score_name
    return [
        {"metric": metric, "folds": len(trial.selected)}
        | _compare(nothing, trial.selected, *trial.random_scores())
        for trial in trials
    ]


class _TestedTrial:
    """The scores of one seed: those of the features that the folds selected so far, and of random features."""

    def __init__(
        self, folds: Sequence[Fold], random: Sequence[list[list[int]]], nothing: float, seed: int
    ) -> None:
        """``random`` are the random sets of each fold, ``nothing`` is the score without features."""
        self.seed, self.selected = seed, list[Score]()
        self._folds, self._random, self._nothing = folds, random, nothing
        self._random_of_fold: dict[int, list[Score]] = {}

    def add(self, features: list[int]) -> None:
        """Score what the next fold selected, together with its random sets."""
        fold = len(self.selected)
        if fold in self._random_of_fold:
            (score,) = self._score(fold, [features])
        else:
            score, *self._random_of_fold[fold] = self._score(fold, [features, *self._random[fold]])
        self.selected.append(score)

    def is_clear(self) -> bool:
        """Whether the last fold is so much better than chance that the others cannot change the answer."""
        score = self.selected[-1]
        if not _is_better(score, self._nothing, 0.0, MIN_Z_FOLD):
            return False  # the scores of random features need not be known
        return _is_better(score, *_by_chance(self._nothing, self.random_scores()), MIN_Z_FOLD)

    def random_scores(self) -> list[list[Score]]:
        """For each random set its score on every fold."""
        for fold, sets in enumerate(self._random):
            if fold not in self._random_of_fold:
                self._random_of_fold[fold] = self._score(fold, sets) if sets else []
        return [
            list(scores)
            for scores in zip(*(self._random_of_fold[fold] for fold in range(len(self._folds))), strict=True)
        ]

    def _score(self, fold: int, sets: list[list[int]]) -> list[Score]:
        return [score for (score,) in score_per_fold([self._folds[fold]], [sets], self.seed)]


def _select(method: Method, request: SelectionRequest, fold: Fold, number: int) -> list[list[int]]:
    """The features that the method selects on the rows of the other folds, per seed."""
    request = _with_one_model(method, replace(request, data=fold.train))
    plan = method.plan(request)
    request = request.as_part(f"test fold {number} of {FOLDS}", plan.steps)
    traces: list[Trace] = method.select(request, plan, request.hook.advance)
    return [request.arrange(trace).order for trace in traces]


def _with_one_model(method: Method, request: SelectionRequest) -> SelectionRequest:
    """The request without an ensemble, unless one was asked for.

    An ensemble makes single features more reliable, which matters little here. Its models also share its steps, so
    that a single model needs fewer of them to find features that matter together.
    """
    options = request.options
    if getattr(options, "ensemble", 1) is not None:
        return request
    options = replace(options, ensemble=1)
    epochs = method.plan(replace(request, options=options)).settings["epochs"]
    return replace(request, options=replace(options, epochs=BUDGET * epochs))


def _random_sets(request: SelectionRequest, fold: Fold) -> list[list[int]]:
    """Random features, as many as are selected, beside those that are kept; none if all are selected."""
    rng = np.random.default_rng(int(fold.rows[0]))
    candidates = np.setdiff1d(np.flatnonzero(~fold.train.constant), request.kept)
    count = request.k - len(request.kept)
    if count >= len(candidates):
        return []
    rankings = [rng.permutation(candidates).tolist() for _ in range(RANDOM_SETS)]
    if request.quotas is None:
        return [[*request.kept, *ranking[:count]] for ranking in rankings]
    return [request.quotas.first(ranking, request.kept) for ranking in rankings]


def _by_chance(nothing: float, random: list[list[Score]]) -> tuple[float, float]:
    """The score by chance and its standard error: that of random sets or, if these are worse, of no features.

    Where all features are selected, there are no random sets.
    """
    if not random:
        return nothing, 0.0
    means = np.array([pool_folds(scores).mean for scores in random])
    return max(nothing, float(means.mean())), float(means.std(ddof=1) / np.sqrt(len(means)))


def _is_better(score: Score, by_chance: float, chance_error: float, min_z: float) -> bool:
    """Whether a score exceeds that by chance by ``min_z`` standard errors of their difference."""
    return bool(score.mean - by_chance > min_z * np.hypot(score.standard_error, chance_error))


def _compare(nothing: float, selected: list[Score], *random: list[Score]) -> dict[str, Any]:
    """The scores of the folds that selected, beside those by chance."""
    score, by_chance = pool_folds(selected), _by_chance(nothing, list(random))
    # The features of a fold may matter though those of the others do not, as where one fold finds a pair.
    in_one_fold = any(_is_better(of_fold, *by_chance, MIN_Z_FOLD) for of_fold in selected)
    return {
        "score": score.mean,
        "standard_error": score.standard_error,
        "random_features": float(np.mean([pool_folds(scores).mean for scores in random])) if random else None,
        "no_features": nothing,
        "better": in_one_fold or _is_better(score, *by_chance, MIN_Z_MEAN),
    }
