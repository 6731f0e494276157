"""The training loop: trial groups follow a schedule, one chunk of steps at a time.

A trial group holds the trials that select at the same time: all of them for the built-in network on a GPU, else one
each. On a CPU a trial then gives the same result, bit for bit, alone and beside others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.selection import PhaseRecord, Trace
from seqatt.training.backend.threads import ThreadTuner, WorkerPool, run_concurrently
from seqatt.training.ensemble import pool_scores
from seqatt.training.schedule import Phase, Schedule
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.selection_state import SelectionState
from seqatt.training.trainer import Trainer


class NonFiniteLoss(Exception):
    """A loss or a score of a trial group is not finite."""


class Diverged(RuntimeError):
    """Training diverged. ``traces`` holds what each trial had selected by then."""

    def __init__(self, traces: list[Trace]) -> None:
        selected = min(len(trace.order) for trace in traces)
        super().__init__(
            f"the training loss is no longer a finite number, after {selected} features were selected; try a "
            "smaller learning_rate, or look for extreme values in X and y or a faulty loss"
        )
        self.traces = traces


class TrialGroup:
    """Trials that select at the same time, and the trainers of their models.

    The models of the trainers, in order, are the members of the first trial, then those of the second.
    """

    def __init__(
        self, trainers: Sequence[Trainer], state: SelectionState, score_penalty: ScorePenalty | None = None
    ) -> None:
        self.trainers = list(trainers)
        self.state = state
        self.score_penalty = score_penalty
        self.chunk_steps = min(trainer.chunk_steps for trainer in trainers)
        trials, features = len(state.order), state.selected.shape[1]
        self._last_scores = np.zeros((trials, features))
        self.finite = np.ones(trials, dtype=bool)  # trials whose losses and scores were finite so far
        self.records: list[list[PhaseRecord]] = [[] for _ in range(trials)]

    def is_thread_invariant(self) -> bool:
        return all(trainer.is_thread_invariant() for trainer in self.trainers)

    def start_phase(self, phase: Phase) -> None:
        for trainer in self.trainers:
            trainer.start_phase(phase)

    def end_phase(self, phase: Phase, seconds: float, pool: WorkerPool) -> None:
        """Select or drop features at the END of a phase, from logits that were trained in it."""
        losses = self._by_trial([trainer.mean_losses() for trainer in self.trainers]).mean(1)
        records = [PhaseRecord(phase.steps, phase.sees, loss, seconds) for loss in losses.tolist()]
        if phase.take:
            scores = self._scores()
            for trial, taken in enumerate(self.state.take(scores, phase.take)):
                records[trial].taken, records[trial].scores = taken, scores[trial]
            self._last_scores = scores
        if phase.drop:
            for trial, dropped in enumerate(self.state.drop(self._usefulness(pool), phase.drop)):
                records[trial].dropped = dropped
        for history, record in zip(self.records, records, strict=True):
            history.append(record)

    def check_finite(self) -> None:
        self.finite &= self._by_trial([trainer.finite() for trainer in self.trainers]).all(1)

    def traces(self) -> list[Trace]:
        return [
            Trace(list(order), self.state.rank_unselected(t, self._last_scores[t]), self.records[t])
            for t, order in enumerate(self.state.order)
        ]

    def _scores(self) -> NDArray[np.float64]:
        """The scores (trials, d): pooled over the members, plus the score penalties, which are 0 or less."""
        scores = self._by_trial([trainer.scores() for trainer in self.trainers])
        candidates = self.state.candidates()
        if self.score_penalty is None:
            return scores[:, 0] if scores.shape[1] == 1 else pool_scores(scores, candidates)
        penalties = [self.score_penalty.penalties(order) for order in self.state.order]
        return pool_scores(scores, candidates) + np.stack(penalties)

    def _usefulness(self, pool: WorkerPool) -> NDArray[np.float64]:
        """How useful each selected feature is (trials, m): the loss without it, plus its score penalty (0 or less).

        The members have different validation rows, so the spread of their losses measures chance. Where there is a
        score penalty, the mean loss is divided by its standard error, to be on the scale of the penalty.
        """
        losses = self._losses_without_each(pool)
        if self.score_penalty is None or losses.shape[1] == 1:
            return np.asarray(losses.mean(1))
        losses -= losses.mean(2, keepdims=True)  # the validation rows of some members are harder than others'
        standard_error = np.sqrt(losses.var(1, ddof=1).mean(1, keepdims=True) / losses.shape[1])
        t_statistic = losses.mean(1) / np.where(standard_error > 0, standard_error, 1.0)
        penalties = [self.score_penalty.penalties(order)[order] for order in self.state.order]
        return np.asarray(t_statistic + np.stack(penalties))

    def _losses_without_each(self, pool: WorkerPool) -> NDArray[np.float64]:
        """The loss without each selected feature (trials, members, m), in the order of selection."""
        trials, models = len(self.state.order), len(self.state.selected)
        selected = torch.tensor(self.state.order, device=self.state.selected.device)
        selected = selected.repeat_interleave(models // trials, 0)
        losses = pool.run([partial(trainer.losses_without_each, selected) for trainer in self.trainers])
        return self._by_trial(losses)

    def _by_trial(self, values: list[torch.Tensor]) -> NDArray[np.float64]:
        """One tensor per trainer, one row per model, as an array (trials, members, ...)."""
        rows = torch.cat(values).double().cpu().numpy()
        return rows.reshape(len(self.state.order), -1, *rows.shape[1:])


@torch.no_grad()
def train(
    groups: Sequence[TrialGroup],
    schedule: Schedule,
    advance: Callable[[int], None] = lambda steps: None,
    threads: int = 1,
    *,
    skip_diverged: bool = False,
) -> list[Trace]:
    """Train every group through the schedule; ``advance`` is called with the steps done.

    A loss that is not finite ends the training with ``Diverged``; with ``skip_diverged`` it only ends the training of a
    group none of whose trials is finite. On a CPU, groups whose results do not depend on threads train concurrently, on
    up to ``threads`` threads; if there is one group, its trainers do.
    """
    on_cpu = groups[0].state.selected.device.type == "cpu"
    thread_invariant = on_cpu and all(group.is_thread_invariant() for group in groups)
    concurrent = thread_invariant and min(len(groups), threads) > 1
    trainers = len(groups[0].trainers) if thread_invariant and not concurrent else 1
    single = thread_invariant and len(groups) == trainers == 1
    tuner = ThreadTuner(torch.get_num_threads() if single else 1)
    workers = min(trainers, threads)
    if workers > 1:
        # Threads that wait inside a product would take the cores from the other trainers.
        torch.set_num_threads(1)
    with WorkerPool(workers) as pool:
        trainings = [_train_group(group, schedule, tuner, pool, skip_diverged) for group in groups]
        try:
            if concurrent:
                run_concurrently(trainings, min(len(groups), threads), advance)
            else:
                for progress in zip_longest(*trainings):
                    advance(max(steps or 0 for steps in progress))
        except NonFiniteLoss:
            raise Diverged([trace for group in groups for trace in group.traces()]) from None
    return [trace for group in groups for trace in group.traces()]


def _train_group(
    group: TrialGroup, schedule: Schedule, tuner: ThreadTuner, pool: WorkerPool, skip_diverged: bool
) -> Iterator[int]:
    """Train one group through the schedule; yields the steps of each chunk."""
    check_every_chunk = group.state.selected.device.type == "cpu"  # a GPU would have to wait for each check
    for phase in schedule:
        started = time.perf_counter()
        group.start_phase(phase)
        done = 0
        while done < phase.steps:
            steps = min(tuner.max_steps or group.chunk_steps, phase.steps - done)
            with tuner.measure(steps):
                if pool.threads > 1:
                    pool.run([partial(trainer.train_chunk, steps) for trainer in group.trainers])
                else:
                    for trainer in group.trainers:
                        trainer.train_chunk(steps)
            done += steps
            if check_every_chunk or done == phase.steps:
                group.check_finite()
            if skip_diverged and not group.finite.any():
                return
            if not skip_diverged and not group.finite.all():
                raise NonFiniteLoss
            yield steps
        group.end_phase(phase, time.perf_counter() - started, pool)
