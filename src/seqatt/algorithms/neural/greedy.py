"""Greedy forward selection by true marginal gains: the candidate whose model is best, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData
from seqatt.selection import PhaseRecord, Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.batch import DeviceTable
from seqatt.training.candidates import CandidateModels, batch_size_of, folds_of, learnt_rows, steps_of
from seqatt.training.defaults import batch_size_for
from seqatt.training.loop import Diverged, NonFiniteLoss
from seqatt.training.options import GreedyOptions


def choose_greedily(
    source: TableData,
    k: int,
    seeds: Sequence[int],
    options: GreedyOptions,
    device: torch.device,
    advance: Callable[[int], None],
) -> list[Trace]:
    """One trial after the other: the candidates of one fill the device."""
    rows = DeviceTable(source, device)
    trials = [_Forward(source, k) for _ in seeds]
    traces: list[Trace] = []
    with training_threads(work_of(source, options), device), torch.no_grad():
        for seed, trial in zip(seeds, trials, strict=True):
            try:
                traces.append(trial.walk(CandidateModels(source, rows, seed, options, device), advance))
            except NonFiniteLoss:
                begun = [other.trace() for other in trials[len(traces) :]]
                raise Diverged(traces + begun) from None
    return traces


class _Forward:
    """What one trial has chosen, and what each round saw."""

    def __init__(self, source: TableData, k: int) -> None:
        self._constant = source.constant
        self._k = k
        self._order: list[int] = []
        self._steps: list[PhaseRecord] = []
        self._gains = np.zeros(source.features)

    def walk(self, candidates: CandidateModels, advance: Callable[[int], None]) -> Trace:
        while len(self._order) < min(self._k, int((~self._constant).sum())):
            started = time.perf_counter()
            free = [int(f) for f in np.flatnonzero(~self._constant) if int(f) not in self._order]
            alone, after = candidates.losses(self._order, free, advance)
            if not np.isfinite(after).any():
                raise NonFiniteLoss
            gains = alone - np.where(np.isfinite(after), after, np.inf)
            self._gains = scatter_values(gains, free, len(self._constant))
            best = free[int(np.argmin(np.nan_to_num(after, nan=np.inf)))]
            self._steps.append(
                PhaseRecord(
                    candidates.steps, "selected", float(np.nanmin(after)), time.perf_counter() - started, [best]
                )
            )
            self._steps[-1].scores = np.nan_to_num(self._gains, nan=-1e30, neginf=-1e30)
            self._order.append(best)
        return self.trace(self._k)

    def trace(self, k: int = 0) -> Trace:
        """What was chosen so far, made up to ``k`` with constant features."""
        free = [f for f in range(len(self._constant)) if f not in self._order]
        worth = np.nan_to_num(self._gains, nan=-np.inf)
        rest = sorted(free, key=lambda f: (bool(self._constant[f]), -worth[f], f))
        short = max(0, k - len(self._order))
        return Trace(self._order + rest[:short], rest[short:], self._steps)


def scatter_values(values: NDArray[np.float64], features: Sequence[int], count: int) -> NDArray[np.float64]:
    """A value for every feature: those that were no candidates have none."""
    every = np.full(count, np.nan)
    every[list(features)] = values
    return every


def work_of(source: TableData, options: GreedyOptions) -> int:
    """Multiply-adds of a step's largest products: there is one for every candidate."""
    batch = batch_size_for(source.rows, options.batch_size)
    return batch * source.features * max(options.hidden, default=1) * folds_of(source, options)


def settings(source: TableData, options: GreedyOptions) -> dict[str, Any]:
    """The options as they were resolved for this table; ``epochs`` are passes over the rows learnt from."""
    batch = batch_size_of(source, options)
    steps = steps_of(source, options)
    return options.record() | {
        "batch_size": batch,
        "steps": steps,
        "epochs": steps * batch / learnt_rows(source),
        "folds": folds_of(source, options),
    }


def models_of(source: TableData, k: int, seeds: int) -> int:
    """How many models will be trained: one a candidate, and one beside them in every round."""
    informative = int((~source.constant).sum())
    return seeds * sum(informative - i + 1 for i in range(min(k, informative)))
