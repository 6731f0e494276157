"""Exchange selected features for others, judged by networks that train on each set alone.

The loss without a feature, in a network trained with it, overrates features that matter only together. With fifty
features this bias matters little; with one to three it decides the result. So each round compares the selected set with
those in which a candidate replaces one of its features, and takes the best of them, until none is clearly better. All
losses are those of rows that the networks do not train on. At the end an ensemble trains on the set that was taken, to
order it and to measure importance.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import take_features, take_rows
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import (
    ENSEMBLE_SIZE,
    default_steps,
    evaluation_learning_rate,
    evaluation_steps,
    resolve_batch_size,
    resolve_steps,
    training_rows,
)
from seqatt.training.ensemble import average_blocks
from seqatt.training.group_factory import TrainingSetup, make_trial_groups
from seqatt.training.loop import TrainingInterrupted, train
from seqatt.training.model_factory import largest_product
from seqatt.training.schedule import retraining
from seqatt.training.trial_group import TrialGroup

CANDIDATES = 6  # features that may replace others: the first of those that are not selected,
RANKED = 4  # so many of them, and then those that explain the target best by themselves
# Steps of a network, as a share of those in ``evaluate``, at most, and at least where fewer epochs are requested: sets
# are only compared.
NETWORK_SHARE, MAX_STEPS, MIN_STEPS = 0.25, 500, 100
MAX_ROWS = 100_000  # of a larger table, this many are drawn
PARTS = ENSEMBLE_SIZE + 1  # into which the rows are divided; a network holds out one of them
HELD_OUT_ROWS = 500  # of all networks of a set; in a small table several networks hold out a part each
MIN_Z = 1.0  # standard errors by which the loss of another set must be lower
CPU = torch.device("cpu")  # the networks are small
FeatureSet = list[int]


def can_exchange(request: SelectionRequest) -> bool:
    """Whether each trial has enough rows, or groups of rows, to hold some out, and another feature."""
    data, units = request.table, request.table.units
    if training_rows(request.rows, ENSEMBLE_SIZE) == request.rows or (~data.constant).sum() <= request.k:
        return False
    if units is None or units.in_time:
        return True
    seen = [units.unit] if request.subsets is None else [units.unit[rows] for rows in request.subsets]
    return all(len(np.unique(of_trial)) >= PARTS for of_trial in seen)


def exchange_features(
    request: SelectionRequest,
    traces: Sequence[Trace],
    explained: Sequence[NDArray[np.float64] | None],
    rounds: int,
    advance: Advance,
) -> list[Trace]:
    """The traces after up to ``rounds`` exchanges, which are one phase of their history.

    ``explained`` is the share of the target that each feature (d,) explains by itself, where that is known.
    """
    budget, started = _resolve_budget(request), time.perf_counter()
    subsets = request.subsets or [None] * len(traces)
    searches: list[_Search] = []
    try:
        for seed, trace, rows, shares in zip(request.seeds, traces, subsets, explained, strict=True):
            searches.append(_Search(request, budget, seed, trace, rows, shares))
        searching = searches
        for _ in range(rounds):
            sets = [search.new_sets() for search in searching]
            groups = _train_networks(searching, sets, budget)
            for search, of_trial, group in zip(searching, sets, groups, strict=True):
                search.note_losses(of_trial, group)
            advance(0)  # ends here if a stop was requested
            searching = [search for search in searching if search.take_best() and search.new_sets()]
            if not searching:
                break
        exchanged = [search for search in searches if search.exchanged]
        if exchanged:
            sets = [[search.trace.order] for search in exchanged]
            groups = _train_networks(exchanged, sets, budget, members=ENSEMBLE_SIZE, orders=True)
            for search, group in zip(exchanged, groups, strict=True):
                search.note_order(group)
    except KeyboardInterrupt:
        reached = [search.finish(time.perf_counter() - started) for search in searches]
        raise TrainingInterrupted([*reached, *traces[len(reached) :]]) from None
    return [search.finish(time.perf_counter() - started) for search in searches]


class _Budget(NamedTuple):
    """The rows that networks train on and hold out, at most; their batches; their steps."""

    rows: int
    batch_size: int
    steps: int


def _resolve_budget(request: SelectionRequest) -> _Budget:
    """One budget for all trials and rounds, so that the losses of all sets can be compared."""
    rows, requested, epochs = min(request.rows, MAX_ROWS), request.options.batch_size, request.options.epochs
    batch_size = resolve_batch_size(rows, requested, ENSEMBLE_SIZE)
    steps = min(MAX_STEPS, round(NETWORK_SHARE * evaluation_steps(rows, batch_size, None)))
    share = resolve_steps(request.rows, batch_size, epochs, request.k) / default_steps(
        request.rows, batch_size, request.k
    )
    return _Budget(rows, batch_size, max(MIN_STEPS, round(min(1.0, share) * steps)))


class _Comparison(NamedTuple):
    """A set after its networks were trained: ``losses`` (members, b) of blocks of ``rows`` (b,) held-out rows."""

    features: FeatureSet
    training_loss: float | None
    losses: NDArray[np.float64]
    rows: NDArray[np.int64]


class _Search:
    """The search of one trial: its selected set, and the sets that were compared so far.

    All networks are made for the same few features, so that the loss of a set is the same in every round.
    """

    def __init__(
        self,
        request: SelectionRequest,
        budget: _Budget,
        seed: int,
        trace: Trace,
        rows: NDArray[np.int64] | None,
        explained: NDArray[np.float64] | None,
    ) -> None:
        self.trace, self._start = trace, trace.order
        self._request, self._budget, self._seed = request, budget, seed
        self._measures = trace.importance is not None
        self._candidates = _candidates(request, trace, explained)
        self._features = np.unique([*trace.order, *self._candidates])
        self._compared: dict[frozenset[int], _Comparison | None] = {}
        data = take_features(request.table, self._features)
        rows = _draw_rows(request.table.rows, rows, seed)
        self.data = data if rows is None else take_rows(data, rows)

    def largest_product(self) -> int:
        return largest_product(self.data, self._request.options, self._budget.batch_size)

    def new_sets(self) -> list[FeatureSet]:
        """The selected set and its exchanges, as far as no networks were trained on them."""
        return [s for s in (self.trace.order, *self._exchanges()) if frozenset(s) not in self._compared]

    def _exchanges(self) -> list[FeatureSet]:
        """All allowed sets in which a candidate replaces one of the selected features."""
        order, quotas = self.trace.order, self._request.quotas
        sets = [
            [*(feature for feature in order if feature != old), new]
            for new in self._candidates
            for old in order[len(self._request.kept) :]
            if new not in order
        ]
        return [s for s in sets if quotas is None or quotas.are_met(s)]

    @property
    def exchanged(self) -> bool:
        return set(self.trace.order) != set(self._start)

    def make_networks(self, sets: Sequence[FeatureSet], members: int | None) -> TrialGroup:
        """Networks that train on each set alone: variants of one trial, so that all hold out the same rows."""
        setup = TrainingSetup(
            batch_size=self._budget.batch_size,
            steps=self._budget.steps,
            members=members or min(ENSEMBLE_SIZE, -(-HELD_OUT_ROWS // (self.data.rows // PARTS))),
            variants=len(sets),
            hold_outs=PARTS - 1,
            kept=tuple(np.searchsorted(self._features, self._request.kept).tolist()),
        )
        options = replace(self._request.options, learning_rate=evaluation_learning_rate(self._budget.rows))
        (group,) = make_trial_groups(self.data, [self._seed], options, CPU, setup)
        orders = [np.searchsorted(self._features, order).tolist() for order in sets]
        group.state.load_dict({"order": orders, "dropped": [[] for _ in orders]})
        return group

    def note_losses(self, sets: Sequence[FeatureSet], group: TrialGroup) -> None:
        """Record the losses of the networks of these sets, except those that are not finite."""
        losses, rows = group.validation_losses
        for features, trace, finite, of_set in zip(sets, group.traces(), group.finite, losses, strict=True):
            measured = finite and of_set.size and np.isfinite(of_set).all()
            comparison = _Comparison(features, trace.phases[-1].loss, of_set, rows) if measured else None
            self._compared[frozenset(features)] = comparison

    def take_best(self) -> bool:
        """Make the best exchange if it is clearly better than the selected set; whether it is."""
        selected = self._compared[frozenset(self.trace.order)]
        found = [c for s in self._exchanges() if (c := self._compared[frozenset(s)]) is not None]
        if selected is None or not found:
            return False
        differences = np.stack([selected.losses - other.losses for other in found], axis=1)
        gains, errors = average_blocks(differences, selected.rows)
        best = int(np.argmax(gains))
        if gains[best] <= MIN_Z * errors[best]:
            return False
        before, after = self.trace, found[best]
        taken = [feature for feature in after.features if feature not in before.order]
        dropped = [feature for feature in before.order if feature not in after.features]
        rest = [*dropped, *(feature for feature in before.rest if feature not in taken)]
        self.trace = replace(before, order=after.features, rest=rest, importance=None)
        return True

    def note_order(self, group: TrialGroup) -> None:
        """Order the selected features by usefulness in these networks, and note importance if it was known before."""
        (trace,) = group.traces()
        if not group.finite.all() or trace.importance is None:
            return
        order, importance = self._features[trace.order].tolist(), trace.importance | {}
        importance["features"] = self._features[importance["features"]].tolist()
        self.trace = replace(self.trace, order=order, importance=importance if self._measures else None)

    def finish(self, seconds: float) -> Trace:
        """The trace, with all rounds as one phase if there was any."""
        compared = self._compared.get(frozenset(self.trace.order))
        if compared is None:
            return self.trace
        taken = [feature for feature in self.trace.order if feature not in self._start]
        dropped = [feature for feature in self._start if feature not in self.trace.order]
        record = PhaseRecord(self._budget.steps, "selected", compared.training_loss, seconds, taken, dropped)
        return replace(self.trace, phases=[*self.trace.phases, record])


def _candidates(request: SelectionRequest, trace: Trace, explained: NDArray[np.float64] | None) -> list[int]:
    """The features that may replace selected ones."""
    ranking = [f for f in trace.rest if not request.data.constant[f]]
    if explained is None:
        return ranking[:CANDIDATES]
    by_themselves = sorted(ranking[RANKED:], key=lambda feature: -explained[feature])
    return [*ranking[:RANKED], *by_themselves][:CANDIDATES]


def _draw_rows(count: int, rows: NDArray[np.int64] | None, seed: int) -> NDArray[np.int64] | None:
    """The rows that networks train on and hold out, of those that the trial sees; None for all of the table."""
    count = count if rows is None else len(rows)
    if count <= MAX_ROWS:
        return rows
    drawn = np.random.default_rng([seed, count]).choice(count, MAX_ROWS, replace=False)
    return np.sort(drawn if rows is None else rows[drawn])


def _train_networks(
    searches: Sequence[_Search],
    sets: Sequence[Sequence[FeatureSet]],
    budget: _Budget,
    *,
    members: int | None = None,
    orders: bool = False,
) -> list[TrialGroup]:
    """Networks that were trained on each of the sets of each trial; with ``orders`` they also order the features.

    ``members`` networks per set, or as many as hold out enough rows.
    """
    *phases, last = retraining(budget.steps)
    schedule = (*phases, replace(last, orders=orders, measures=True))
    with training_threads(max(search.largest_product() for search in searches), CPU) as threads:
        groups = [
            search.make_networks(of_trial, members) for search, of_trial in zip(searches, sets, strict=True)
        ]
        train(groups, schedule, threads=threads, skip_diverged=True)
    return groups
