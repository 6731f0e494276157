"""The only training loop: lanes of trials walk through a schedule, a stretch of steps at a time.

A lane is a group of trials that choose at the same time: all of them on an accelerator, one each on a CPU,
where a trial then gives bit for bit the same answer alone and in company. A trial's choices are its
committee's: several models that learn from different rows and start from different weights.
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
from seqatt.training.schedule import Phase, Schedule
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.selection_state import SelectionState
from seqatt.training.trainer import Trainer


class NonFiniteLoss(Exception):
    """A lane's loss or scores are no longer finite."""


class Diverged(RuntimeError):
    """The loss is no longer a number. ``traces`` holds what had been chosen by then."""

    def __init__(self, traces: list[Trace]) -> None:
        chosen = min(len(trace.order) for trace in traces)
        super().__init__(
            f"the training loss is no longer a finite number, after {chosen} features were chosen; try a "
            "smaller learning_rate, or look for extreme values in X and y or a faulty loss"
        )
        self.traces = traces
        self.settings: dict[str, object] = {}


class TrialGroup:
    """Trials that choose together, and the crews that train for them.

    The crews' models, one crew after the other, are the members of the first trial, then the second's.
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
        self.sound = np.ones(trials, dtype=bool)  # the trials whose losses and scores have all been numbers
        self.records: list[list[PhaseRecord]] = [[] for _ in range(trials)]

    def is_thread_invariant(self) -> bool:
        return all(trainer.is_thread_invariant() for trainer in self.trainers)

    def enter(self, phase: Phase) -> None:
        for trainer in self.trainers:
            trainer.enter(phase)

    def advance(self, steps: int, spread: WorkerPool) -> None:
        """A stretch of steps."""
        spread.run([partial(trainer.advance, steps) for trainer in self.trainers])

    def leave(self, phase: Phase, seconds: float, spread: WorkerPool) -> None:
        """The choice at the END of a phase, from logits that were trained in it."""
        losses = self._by_trial([trainer.mean_losses() for trainer in self.trainers]).mean(1)
        steps = [PhaseRecord(phase.steps, phase.sees, loss, seconds) for loss in losses.tolist()]
        if phase.take:
            scores = self._scores()
            for trial, taken in enumerate(self.state.take(scores, phase.take)):
                steps[trial].taken, steps[trial].scores = taken, scores[trial]
            self._last_scores = scores
        if phase.drop:
            for trial, dropped in enumerate(self.state.drop(self._worth(spread), phase.drop)):
                steps[trial].dropped = dropped
        for record, step in zip(self.records, steps, strict=True):
            record.append(step)

    def look(self) -> None:
        self.sound &= self._by_trial([trainer.finite() for trainer in self.trainers]).all(1)

    def traces(self) -> list[Trace]:
        return [
            Trace(list(order), self.state.rest(t, self._last_scores[t]), self.records[t])
            for t, order in enumerate(self.state.order)
        ]

    def _scores(self) -> NDArray[np.float64]:
        """What speaks for each feature now: the gates, pooled, less what speaks against it."""
        said = self._by_trial([trainer.scores() for trainer in self.trainers])
        free = self.state.free()
        if self.score_penalty is None:
            return said[:, 0] if said.shape[1] == 1 else pool_scores(said, free)
        return pool_scores(said, free) + np.stack(
            [self.score_penalty.given(order) for order in self.state.order]
        )

    def _worth(self, spread: WorkerPool) -> NDArray[np.float64]:
        """What speaks for each chosen feature (trials, m): its harm when lost, less what speaks against it.

        The members are judged on different rows, so what they disagree on is chance. Beside a doubt, harm
        counts as far as it stands out from that.
        """
        harm = self._harm(spread)
        if self.score_penalty is None or harm.shape[1] == 1:
            return np.asarray(harm.mean(1))
        harm -= harm.mean(2, keepdims=True)  # some members' rows are harder than others'
        chance = np.sqrt(harm.var(1, ddof=1).mean(1, keepdims=True) / harm.shape[1])
        stands_out = harm.mean(1) / np.where(chance > 0, chance, 1.0)
        against = [self.score_penalty.given(order)[order] for order in self.state.order]
        return np.asarray(stands_out + np.stack(against))

    def _harm(self, spread: WorkerPool) -> NDArray[np.float64]:
        """The loss without each chosen feature (trials, members, m), in the order they were chosen."""
        trials, models = len(self.state.order), len(self.state.selected)
        chosen = torch.tensor(self.state.order, device=self.state.selected.device)
        chosen = chosen.repeat_interleave(models // trials, 0)
        return self._by_trial(spread.run([partial(trainer.harm, chosen) for trainer in self.trainers]))

    def _by_trial(self, models: list[torch.Tensor]) -> NDArray[np.float64]:
        """From rows for models to (trials, members, ...)."""
        rows = torch.cat(models).double().cpu().numpy()
        return rows.reshape(len(self.state.order), -1, *rows.shape[1:])


def pool_scores(scores: NDArray[np.float64], free: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What the members of each trial's committee (trials, members, d) say together (trials, d).

    Each has one voice, however far its logits went: they are standardised over the features still free.
    """
    count = np.maximum(free.sum(1), 1)[:, None, None]
    voters = free[:, None, :]
    centred = scores - (scores * voters).sum(2, keepdims=True) / count
    spread = np.sqrt((centred**2 * voters).sum(2, keepdims=True) / count)
    pooled: NDArray[np.float64] = (centred / np.where(spread > 0, spread, 1.0)).mean(1)
    return pooled


@torch.no_grad()
def train(
    groups: Sequence[TrialGroup],
    schedule: Schedule,
    advance: Callable[[int], None] = lambda steps: None,
    threads: int = 1,
    *,
    forgiving: bool = False,
) -> list[Trace]:
    """Walk every lane through the schedule; ``advance`` hears of steps done.

    A loss that is no number is the end of all, or, ``forgiving``, of a lane that has no ``sound`` trial left.

    On a CPU lanes that share nothing walk side by side, on as many threads as are given; the crews of a
    lane that walks alone do.
    """
    on_cpu = groups[0].state.selected.device.type == "cpu"
    free = on_cpu and all(group.is_thread_invariant() for group in groups)
    apart = free and min(len(groups), threads) > 1
    trainers = len(groups[0].trainers) if free and not apart else 1
    pace = ThreadTuner(torch.get_num_threads() if free and len(groups) == trainers == 1 else 1)
    workers = min(trainers, threads)
    if workers > 1:
        torch.set_num_threads(1)  # threads that wait would take the cores from those that work
    with WorkerPool(workers) as spread:
        walks = [_walk(group, schedule, pace, spread, forgiving) for group in groups]
        try:
            if apart:
                run_concurrently(walks, min(len(groups), threads), advance)
            else:
                for progress in zip_longest(*walks):
                    advance(max(steps or 0 for steps in progress))
        except NonFiniteLoss:
            raise Diverged([trace for group in groups for trace in group.traces()]) from None
    return [trace for group in groups for trace in group.traces()]


def _walk(
    group: TrialGroup, schedule: Schedule, pace: ThreadTuner, spread: WorkerPool, forgiving: bool
) -> Iterator[int]:
    """One lane through the schedule, a stretch at a time; yields the steps of each stretch."""
    looks_often = group.state.selected.device.type == "cpu"  # an accelerator would be made to wait
    for phase in schedule:
        started = time.perf_counter()
        group.enter(phase)
        done = 0
        while done < phase.steps:
            steps = min(pace.max_steps or group.chunk_steps, phase.steps - done)
            pace.run(partial(group.advance, steps, spread), steps)
            done += steps
            if looks_often or done == phase.steps:
                group.look()
            if forgiving and not group.sound.any():
                return
            if not forgiving and not group.sound.all():
                raise NonFiniteLoss
            yield steps
        group.leave(phase, time.perf_counter() - started, spread)


def resolve_device(device: str | torch.device) -> torch.device:
    """``"auto"`` is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.empty(1, device=picked)
    except Exception as error:
        raise ValueError(
            f"device: {device!r} cannot be used here ({str(error).splitlines()[0]}); "
            "use 'auto', 'cpu' or 'cuda'"
        ) from None
    return picked
