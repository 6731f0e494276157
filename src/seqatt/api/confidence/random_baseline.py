"""Whether selected features are better than random ones, on rows not used for the selection.

The test is for tables in which no feature is related to the target by itself: the selected features are then noise, or
matter only together. The rows are divided into folds. For each fold, the method selects as many features on the other
rows, networks train there on these and on random features, and the networks are scored on the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.confidence.folds import (
    FOLDS,
    MIN_ROWS,
    Fold,
    divide_rows,
    make_fold,
    noise_errors,
    pool_folds,
    score_nothing,
    score_per_fold,
    target_varies,
)
from seqatt.api.phase_steps import ENOUGH_STEPS, fewest_steps
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.losses.loss import Score
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.backend.threads import SERIAL_WORK, WorkerPool
from seqatt.training.defaults import resolve_batch_size
from seqatt.training.loop import Diverged, TrainingHook
from seqatt.training.model_factory import largest_product

# Steps of a fold's single model, as a share of its default. On a wide table, whose models fit their rows at once, fewer
# do, where they are enough for every phase.
BUDGET, WIDE_BUDGET = 0.3, 0.15
RANDOM_SETS = 5
SIDE_BY_SIDE_CELLS = 1 << 26  # of a table, at most, whose folds select at the same time, each on a copy
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
    noise = noise_errors(folds)
    trials = [_TestedTrial(folds, random, nothing, noise, seed) for seed in request.seeds]
    # The first fold answers most tables that have an answer.
    later = list(range(1, len(folds)))
    rounds = [[0], later] if _may_select_side_by_side(method, request) else [[0], *([n] for n in later)]
    for numbers in rounds:
        unclear = [trial for trial in trials if not trial.is_clear]
        for scores in _score_folds(method, request, numbers, unclear) if unclear else [[]] * len(numbers):
            if not all(trial.is_clear for trial in unclear):
                if isinstance(scores, Diverged):
                    raise scores
                for trial, new in zip(unclear, scores, strict=True):
                    trial.add(new)
            advance(1)
    metric = data.target.loss.score_name
    return [
        {"metric": metric, "folds": len(trial.selected)}
        | _compare(nothing, noise, trial.selected, *trial.random_scores())
        for trial in trials
    ]


class _TestedTrial:
    """The scores of one seed: those of the features that the folds selected so far, and of random features."""

    def __init__(
        self,
        folds: Sequence[Fold],
        random: Sequence[list[list[int]]],
        nothing: float,
        noise: Sequence[float],
        seed: int,
    ) -> None:
        """``random`` are the random sets of each fold, ``nothing`` is the score without features.

        ``noise`` are the standard errors of scores of noise, per fold.
        """
        self.seed, self.selected = seed, list[Score]()
        # Whether a fold is so much better than chance that the others cannot change the answer.
        self.is_clear = False
        self.folds, self._random, self._nothing, self._noise = folds, random, nothing, noise
        self._random_of_fold: dict[int, list[Score]] = {}

    def score(self, fold: int, features: list[int]) -> list[Score]:
        """The scores of what a fold selected and, unless they are known, of its random sets."""
        random = [] if fold in self._random_of_fold else self._random[fold]
        return self._score(fold, [features, *random])

    def add(self, scores: list[Score]) -> None:
        """Add the scores of the next fold, unless the answer is clear without it."""
        if self.is_clear:
            return
        fold, (score, *random) = len(self.selected), scores
        self._random_of_fold.setdefault(fold, random)
        self.selected.append(score)
        score = _at_least(score, self._noise[fold])
        # The scores of random features need not be known where a fold is not even better than no features.
        self.is_clear = _is_better(score, self._nothing, 0.0, MIN_Z_FOLD) and _is_better(
            score, *_by_chance(self._nothing, self.random_scores()), MIN_Z_FOLD
        )

    def random_scores(self) -> list[list[Score]]:
        """For each random set its score on every fold."""
        for fold, sets in enumerate(self._random):
            if fold not in self._random_of_fold:
                self._random_of_fold[fold] = self._score(fold, sets) if sets else []
        return [
            list(scores)
            for scores in zip(*(self._random_of_fold[fold] for fold in range(len(self.folds))), strict=True)
        ]

    def _score(self, fold: int, sets: list[list[int]]) -> list[Score]:
        return [score for (score,) in score_per_fold([self.folds[fold]], [sets], self.seed)]


def _may_select_side_by_side(method: Method, request: SelectionRequest) -> bool:
    """Whether folds select at the same time, on one thread each, with the results that they have alone.

    A user's own module may draw from the random generator of the process, and callbacks expect one thread. Threads that
    compute small products mostly wait for the interpreter.
    """
    data, options = request.table, request.options
    if request.device.type != "cpu" or torch.get_num_threads() == 1 or request.hook.part.monitor.callbacks:
        return False
    if not method.trains or not options.built_in:
        return False
    if len(request.seeds) > 1 or getattr(options, "ensemble", 0) not in (None, 1):
        return False  # a fold has several models, which use the threads
    product = largest_product(data, options, resolve_batch_size(data.rows, options.batch_size))
    return product >= SERIAL_WORK and data.rows * data.encoded_columns <= SIDE_BY_SIDE_CELLS


def _score_folds(
    method: Method, request: SelectionRequest, numbers: Sequence[int], trials: Sequence[_TestedTrial]
) -> list[list[list[Score]] | Diverged]:
    """For each of these folds, at the same time, the scores that each trial adds; or that its training diverged."""
    request = replace(request, seeds=[trial.seed for trial in trials])
    if len(numbers) == 1:
        return [_score_fold(method, request, numbers[0], trials)]
    hooks = [TrainingHook() for _ in numbers]  # progress is shown when a fold is done
    calls = [
        partial(_score_fold, method, replace(request, hook=hook), number, trials)
        for hook, number in zip(hooks, numbers, strict=True)
    ]
    with WorkerPool(len(numbers)) as pool:
        try:
            return pool.run(calls)
        except (
            BaseException
        ):  # after Ctrl-C, the folds end at their next chunk of steps, or before they are scored
            for hook in hooks:
                hook.part.monitor.stop_requested = True
            raise


def _score_fold(
    method: Method, request: SelectionRequest, number: int, trials: Sequence[_TestedTrial]
) -> list[list[Score]] | Diverged:
    try:
        selected = _select(method, request, trials[0].folds[number], number + 1)
    except Diverged as error:
        return error
    request.hook.part.monitor.check_stop()
    return [trial.score(number, features) for trial, features in zip(trials, selected, strict=True)]


def _select(method: Method, request: SelectionRequest, fold: Fold, number: int) -> list[list[int]]:
    """The features that the method selects on the rows of the other folds, per seed."""
    if not target_varies(fold.train):
        return [request.first(list(range(fold.train.features)), request.k)] * len(request.seeds)
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
    plan = method.plan(replace(request, options=options))
    share = BUDGET
    if plan.settings.get("working_set"):
        share = min(BUDGET, max(WIDE_BUDGET, ENOUGH_STEPS / (fewest_steps(plan) or 1)))
    return replace(request, options=replace(options, epochs=share * plan.settings["epochs"]))


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


def _at_least(score: Score, noise_error: float) -> Score:
    """The score, whose standard error is not smaller than that of noise: of few rows, the estimate may be much too."""
    return Score(score.mean, max(score.standard_error, noise_error))


def _is_better(score: Score, by_chance: float, chance_error: float, min_z: float) -> bool:
    """Whether a score exceeds that by chance by ``min_z`` standard errors of their difference."""
    return bool(score.mean - by_chance > min_z * np.hypot(score.standard_error, chance_error))


def _compare(
    nothing: float, noise: Sequence[float], selected: list[Score], *random: list[Score]
) -> dict[str, Any]:
    """The scores of the folds that selected, beside those by chance; ``noise`` as in ``_TestedTrial``."""
    score, by_chance = pool_folds(selected), _by_chance(nothing, list(random))
    judged = [_at_least(of_fold, error) for of_fold, error in zip(selected, noise, strict=False)]
    # The features of a fold may matter though those of the others do not, as where one fold finds a pair.
    in_one_fold = any(_is_better(of_fold, *by_chance, MIN_Z_FOLD) for of_fold in judged)
    return {
        "score": score.mean,
        "standard_error": score.standard_error,
        "random_features": float(np.mean([pool_folds(scores).mean for scores in random])) if random else None,
        "no_features": nothing,
        "better": in_one_fold or _is_better(pool_folds(judged), *by_chance, MIN_Z_MEAN),
    }
