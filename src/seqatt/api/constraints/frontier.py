"""``costs``: the best set of features within a budget, and the scores of sets of lower cost.

The search needs the scores of many sets, each from a network that trains on some rows and is scored on others. For the
answer it runs on all rows, divided into folds. For the frontier it runs once per fold on the rows of the others, and
the sets it finds for each cost are scored on the fold: no score uses rows on which its features were selected or its
networks trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqatt.algorithms.answer_options import AnswerOptions
from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.confidence.folds import (
    FOLDS,
    MIN_ROWS,
    Fold,
    balance_classes,
    divide_rows,
    make_fold,
    pool_folds,
    score_nothing,
    score_per_fold,
    score_sets,
    target_varies,
)
from seqatt.api.confidence.sample import sample_request
from seqatt.api.constraints.constraint_set import Constraints
from seqatt.api.constraints.costs import Costs
from seqatt.api.constraints.search import BudgetSearch, Features
from seqatt.data.tables.options import Categories
from seqatt.data.tables.table_data import TableData, resolve_k, take_features, take_rows
from seqatt.losses.loss import Score
from seqatt.progress import Advance
from seqatt.training.loop import TrainingHook

SEARCH_SHARE = (
    0.1  # steps of a network of the search, as a share of those in ``evaluate``: sets are only compared
)
NETWORK_SHARE = 0.25  # the same of the networks that score what was found
ORDER_BUDGET = 0.2  # steps of a selection of candidates, as a share of the default
MAX_CANDIDATES = 30  # features that the search looks at; from more, the method selects this many first
SEARCHED_ROWS = 20_000  # on which the search compares sets, at most; the frontier is scored on all
MAX_LEVELS = 12  # costs in the frontier


@dataclass(frozen=True)
class AffordableFeatures:
    """Features to look for: at most ``k`` within ``budget`` that gain at least ``rate`` per unit of cost."""

    method: Method
    request: SelectionRequest
    costs: Costs
    budget: float
    rate: float

    def find(self, advance: Advance) -> dict[str, Any]:
        """The frontier; "chosen" are the features of the answer, as features of the request."""
        data, seed = balance_classes(self.request.table), self.request.seeds[0]
        if data.rows < FOLDS * MIN_ROWS:
            raise ValueError(
                f"costs: need at least {FOLDS * MIN_ROWS} rows, got {data.rows}, to compare sets of features"
            )
        folds = [make_fold(data, rows) for rows in divide_rows(data, seed)]
        advance(0, "Searching within the budget", FOLDS + 2)
        searched = _sample_rows(data, seed)
        search = self._search(searched, [make_fold(searched, rows) for rows in divide_rows(searched, seed)])
        advance(1)
        chosen = search.best(self.budget)
        if chosen is None:
            raise ValueError(
                "quotas: no set of features was found that meets them within the budget; raise the budget"
            )
        levels = self._levels(search, self.costs.total(chosen))
        sets_of_folds = []
        for fold in folds:
            searched = _sample_rows(fold.train, seed)
            inner_folds = [make_fold(searched, rows) for rows in divide_rows(searched, seed)[:1]]
            inner = self._search(searched, inner_folds)
            sets_of_folds.append([inner.best(level) or frozenset() for level in levels])
            advance(1)
        everything = np.flatnonzero(~data.constant).tolist()
        *scores, of_all = _score_found(folds, sets_of_folds, everything, seed)
        advance(1)
        return {
            "metric": data.target.loss.score_name,
            "folds": FOLDS,
            "rows": data.rows,
            "costs": levels,
            "means": [score.mean for score in scores],
            "standard_errors": [score.standard_error for score in scores],
            "no_features": score_nothing(folds),
            "all_features": of_all.mean,
            "all_cost": self.costs.total(everything),
            "cost": self.costs.total(chosen),
            "chosen": sorted(chosen),
        }

    def _levels(self, search: BudgetSearch, cost: float) -> list[float]:
        """Costs, rising, at which the search found a better set, and that of the answer."""
        totals = sorted({self.costs.total(s) for s in search.scores} | {cost})
        sets = [search.best(total) for total in totals]
        changes = [
            t for t, s, b in zip(totals, sets, [None, *sets], strict=False) if s is not None and s != b
        ]
        reached = sorted({self.costs.total(search.best(t) or ()) for t in changes} | {cost})
        if len(reached) <= MAX_LEVELS:
            return reached
        spaced = {reached[round(i)] for i in np.linspace(0, len(reached) - 1, MAX_LEVELS)}
        return sorted(spaced | {cost})

    def _search(self, data: TableData, folds: Sequence[Fold]) -> BudgetSearch:
        """The search on some rows, with networks that train on those outside of a fold and are scored on it."""
        request = self.request
        search = BudgetSearch(
            _scorer(folds, request.seeds[0]),
            self.costs,
            self.budget,
            self.rate,
            request.k,
            request.kept,
            request.quotas,
            score_nothing(folds),
        )
        candidates = self._candidates(data)
        if self.method.name == "random":
            search.walk(candidates)
        else:
            search.run(candidates)
        return search

    def _candidates(self, data: TableData) -> list[int]:
        """The features that can be paid for beside those that are kept; of many, those that the method selects."""
        request, kept = self.request, list(self.request.kept)
        affordable = [
            int(f) for f in np.flatnonzero(~data.constant) if self.costs.total([*kept, int(f)]) <= self.budget
        ]
        optional = [f for f in affordable if f not in kept]
        if len(optional) <= MAX_CANDIDATES and self.method.name != "random":
            return optional
        if not target_varies(data):
            return optional[:MAX_CANDIDATES]
        features = np.array(sorted({*optional, *kept}))
        narrowed = replace(
            request,
            data=take_features(data, features),
            k=min(len(features), len(kept) + MAX_CANDIDATES),
            hook=TrainingHook(),
            kept=tuple(int(np.searchsorted(features, f)) for f in kept) if self.method.nested else (),
            quotas=None,
        )
        epochs = self.method.plan(narrowed).settings.get("epochs")
        if epochs:
            narrowed = replace(narrowed, options=replace(narrowed.options, epochs=ORDER_BUDGET * epochs))
        (trace,) = self.method.select(narrowed, self.method.plan(narrowed), narrowed.hook.advance)
        order = [int(features[f]) for f in narrowed.arrange(trace).order]
        return [f for f in order if f not in kept]


def _sample_rows(data: TableData, seed: int) -> TableData:
    """The rows on which sets are compared: of a large table a sample, unless rows belong together or are in time."""
    if data.rows <= SEARCHED_ROWS or data.units is not None:
        return data
    drawn = np.random.default_rng([seed, data.rows]).permutation(data.rows)[:SEARCHED_ROWS]
    return take_rows(data, np.sort(drawn))


def _score_found(
    folds: Sequence[Fold], sets_of_folds: Sequence[Sequence[Features]], everything: list[int], seed: int
) -> list[Score]:
    """The mean score over the folds of the set that each fold has at each cost; the last one is of all features."""
    rows = []
    for fold, sets in zip(folds, sets_of_folds, strict=True):
        distinct = [features for features in dict.fromkeys(sets) if features]
        listed = [sorted(features) for features in distinct] + [everything]
        scored = [score for (score,) in score_per_fold([fold], [listed], seed, NETWORK_SHARE)]
        score_of = dict(zip(distinct, scored, strict=False))
        nothing = Score(score_nothing([fold]), 0.0)
        rows.append([score_of.get(features, nothing) for features in sets] + scored[-1:])
    return [pool_folds(of_set) for of_set in zip(*rows, strict=True)]


def _scorer(folds: Sequence[Fold], seed: int) -> Callable[[Sequence[Features]], list[float]]:
    def score(sets: Sequence[Features]) -> list[float]:
        listed = [sorted(features) for features in sets]
        return [s.mean for s in score_sets(folds, [listed] * len(folds), seed, SEARCH_SHARE)]

    return score


def fit_budget(
    method: Method,
    request: SelectionRequest,
    constraints: Constraints,
    answer: AnswerOptions,
    k: Any,
    categories: Categories,
    advance: Advance,
) -> dict[str, Any]:
    """The frontier of a selection of at most ``k`` features; on files, that of their schema sample."""
    assert constraints.costs is not None
    fewest, most = constraints.sizes()
    # A fraction is one of the features that may be selected, as without costs.
    features = constraints.data.features + constraints.excluded * isinstance(k, int)
    largest = most if k is None else min(most, resolve_k(k, features))
    if largest < fewest:
        constraints.bound(largest)  # says why
    request = sample_request(request, categories)
    request = replace(request, k=largest, kept=constraints.kept, quotas=constraints.bound(largest))
    budget = np.inf if answer.budget is None else answer.budget
    search = AffordableFeatures(method, request, constraints.costs, budget, answer.cost_rate or 0.0)
    return search.find(advance) | {"max_k": None if k is None else largest}
