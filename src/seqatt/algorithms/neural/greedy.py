"""Greedy forward selection by true marginal gains: in each round, the candidate whose model is best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.candidates import CandidateModels, CandidatePlan, candidates_work, resolve_candidates
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loop import Diverged, NonFiniteLoss, TrainingHook, TrainingInterrupted
from seqatt.training.selection_state import Quotas


@dataclass(frozen=True)
class GreedyPlan(Plan):
    """``steps`` counts models, as progress does; ``candidates`` is how each of them trains."""

    candidates: CandidatePlan


def make_plan(request: SelectionRequest) -> GreedyPlan:
    data, options = request.table, request.options
    candidates = resolve_candidates(data, options)
    varying = int((~data.constant).sum())
    # One model per candidate and round, and one per round without a candidate.
    models = sum(varying - i + 1 for i in range(min(request.k, varying)))
    settings = options.to_settings() | candidates._asdict()
    return GreedyPlan(settings, len(request.seeds) * models, candidates)


@register("greedy", plan=make_plan)
def greedy(request: SelectionRequest, plan: GreedyPlan, advance: Advance) -> list[Trace]:
    """One trial after the other: the candidates of a single trial fill the device."""
    data, options, device = request.table, request.options, request.device
    table = DeviceTable.of_data(data, device)
    trials = [_ForwardSelection(data, request.k, request.quotas, request.hook) for _ in request.seeds]
    traces: list[Trace] = []
    work = candidates_work(data, options, plan.candidates)
    with training_threads(work, device), torch.no_grad():
        for seed, trial in zip(request.seeds, trials, strict=True):
            try:
                models = CandidateModels(data, table, seed, options, plan.candidates, device)
                traces.append(trial.run(models, advance))
            except KeyboardInterrupt:
                raise TrainingInterrupted([*traces, trial.trace()]) from None
            except NonFiniteLoss:
                unfinished = [other.trace() for other in trials[len(traces) :]]
                raise Diverged(traces + unfinished) from None
    return traces


class _ForwardSelection:
    """The forward selection of one trial: the features selected so far, and a record of each round."""

    def __init__(self, data: TableData, k: int, quotas: Quotas | None, hook: TrainingHook) -> None:
        self._constant, self._quotas = data.constant, quotas
        self._k, self._hook = k, hook
        self._order: list[int] = []
        self._records: list[PhaseRecord] = []
        self._gains = np.zeros(data.features)

    def run(self, models: CandidateModels, advance: Advance) -> Trace:
        rounds = min(self._k, int((~self._constant).sum()))
        while len(self._order) < self._k and (candidates := self._candidates()):
            started = time.perf_counter()
            loss_without, losses = models.losses(self._order, candidates, advance)
            if not np.isfinite(losses).any():
                raise NonFiniteLoss
            gains = loss_without - np.where(np.isfinite(losses), losses, np.inf)
            self._gains = scatter_values(gains, candidates, len(self._constant))
            best = candidates[int(np.argmin(np.nan_to_num(losses, nan=np.inf)))]
            seconds = time.perf_counter() - started
            record = PhaseRecord(models.plan.steps, "selected", float(np.nanmin(losses)), seconds, [best])
            record.scores = np.nan_to_num(self._gains, nan=-1e30, neginf=-1e30)
            self._records.append(record)
            self._order.append(best)
            self._hook.part.end_phase(len(self._order), rounds, self._order, record)
        return self.trace(self._k)

    def _candidates(self) -> list[int]:
        allowed = ~self._constant
        allowed[self._order] = False
        if self._quotas is not None:
            allowed &= self._quotas.takeable(self._order)
        return [int(f) for f in np.flatnonzero(allowed)]

    def trace(self, k: int = 0) -> Trace:
        """The features selected so far, filled up to ``k`` with constant ones."""
        unselected = [f for f in range(len(self._constant)) if f not in self._order]
        gains = np.nan_to_num(self._gains, nan=-np.inf)
        rest = sorted(unselected, key=lambda f: (bool(self._constant[f]), -gains[f], f))
        missing = max(0, k - len(self._order))
        return Trace(self._order + rest[:missing], rest[missing:], self._records)


def scatter_values(values: NDArray[np.float64], features: Sequence[int], count: int) -> NDArray[np.float64]:
    """One value per feature, NaN for those that are not among ``features``."""
    scattered = np.full(count, np.nan)
    scattered[list(features)] = values
    return scattered
