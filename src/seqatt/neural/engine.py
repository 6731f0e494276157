"""The only training loop: lanes of trials walk through a schedule, a stretch of steps at a time.

A lane is a group of trials that share kernels: all of them on an accelerator, one each on a CPU, where a
trial then gives bit for bit the same answer alone and in company.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.capture import Recorder
from seqatt.neural.feed import Feed
from seqatt.neural.gates.gate import Gate
from seqatt.neural.schedule import Phase, Schedule
from seqatt.neural.state import State
from seqatt.neural.threads import Pace, side_by_side
from seqatt.selection import Step, Trace

WATCH_EVERY = 8  # steps between batches whose loss is recorded
SHRINK_EVERY = 8  # steps between pulls of unselected features' weights towards zero
JUDGED_ROWS = 2048  # rows on which the harm of dropping a feature is measured


class NotANumber(Exception):
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


class Lane:
    """Some trials that train in one step: a body, a gate, a feed and what they have chosen."""

    def __init__(
        self,
        trials: int,
        body: Body,
        gate: Gate | None,
        feed: Feed,
        state: State,
        owner: Tensor,
        decay: float = 0.0,
    ) -> None:
        self.body = body
        self.state = state
        self._gate = gate
        self._feed = feed
        self._owner = owner
        self._shrinkage = 1 - (1 - decay) ** SHRINK_EVERY
        self._features = state.kept.shape[1]
        self._plain_columns = bool((owner == torch.arange(len(owner), device=owner.device)).all())
        self._members = _members_of(owner, self._features)
        self._sees: str = "all"
        self._fixed = torch.ones(trials, len(owner), device=owner.device)
        self._factors = torch.ones_like(self._fixed)
        self._losses = torch.zeros(trials, device=owner.device)
        self._watched = 0
        self.stretch = feed.stretch
        self._recorder = Recorder(owner.device, enabled=body.captured and feed.captured)
        self._last_scores = np.zeros((trials, self._features))
        self.records: list[list[Step]] = [[] for _ in range(trials)]

    def shares_nothing(self) -> bool:
        """Whether its trials come out the same beside others and on any number of threads."""
        gate = self._gate is None or self._gate.shares_nothing()
        return gate and self.body.shares_nothing(self._feed.size)

    def enter(self, phase: Phase) -> None:
        self._sees = phase.sees
        self._losses.zero_()
        self._watched = 0
        if phase.fresh:
            self.body.restart()
        self.body.set_rate(phase.rate)
        if phase.sees == "all":
            self._fixed.fill_(1)
        elif phase.sees == "kept":
            self._fixed.copy_(self._widen(self.state.kept))
        else:
            assert self._gate is not None
            self._gate.refresh(self.state)
            self._factors.copy_(self._widen(1 - self._shrinkage * (1 - self.state.kept)))

    def advance(self, steps: int) -> None:
        """A stretch of steps."""
        self._feed.load(steps)
        self._recorder.run(self._sees == "attended", steps, lambda: self._train(steps))
        self._watched += -(-steps // WATCH_EVERY)

    def _train(self, steps: int) -> None:
        for i in range(steps):
            batch = self._feed.at(i)
            if self._sees == "attended":
                assert self._gate is not None
                grad = self.body.train(batch, self._widen(self._gate.weights))
                self._gate.learn(self._narrow(grad), self.state)
                if self._shrinkage and i % SHRINK_EVERY == 0:
                    self.body.shrink(self._factors)
            else:
                self.body.train(batch, self._fixed)
            if i % WATCH_EVERY == 0:
                self._losses += self.body.last_loss(batch)

    def leave(self, phase: Phase, seconds: float) -> None:
        """The choice at the END of a phase, from logits that were trained in it."""
        losses = (self._losses / max(self._watched, 1)).tolist()
        steps = [Step(phase.steps, phase.sees, loss, seconds) for loss in losses]
        if phase.take:
            assert self._gate is not None
            scores = self._gate.scores().double().cpu().numpy()
            for trial, taken in enumerate(self.state.take(scores, phase.take)):
                steps[trial].taken, steps[trial].scores = taken, scores[trial]
            self._last_scores = scores
            self._gate.reset()
        if phase.drop:
            for trial, dropped in enumerate(self.state.drop(self._harm(), phase.drop)):
                steps[trial].dropped = dropped
        for record, step in zip(self.records, steps, strict=True):
            record.append(step)

    def finite(self) -> bool:
        watched = (
            self._losses if self._gate is None else torch.cat([self._losses, self._gate.scores().sum(1)])
        )
        return bool(torch.isfinite(watched).all())

    def traces(self) -> list[Trace]:
        return [
            Trace(list(order), self.state.rest(t, self._last_scores[t]), self.records[t])
            for t, order in enumerate(self.state.order)
        ]

    def predict(self, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for rows (B, c), by the features the last phase saw."""
        trials = self._fixed.shape[0]
        return self.body.predict(x.expand(trials, *x.shape), self._fixed)

    def _harm(self) -> NDArray[np.float64]:
        """The training loss without each chosen feature, in the order they were chosen."""
        kept = self._widen(self.state.kept)
        chosen = torch.tensor(self.state.order, device=self._owner.device)
        columns, live = self._members[0][chosen], self._members[1][chosen]
        losses, rows = [], 0
        for batch in self._feed.sample(JUDGED_ROWS):
            count = batch.x.shape[1]
            losses.append(self.body.losses_without(batch, kept, columns, live) * count)
            rows += count
        return (torch.stack(losses).sum(0) / rows).double().cpu().numpy()

    def _widen(self, features: Tensor) -> Tensor:
        """From features (T, d) to the columns they own (T, c)."""
        return features if self._plain_columns else features.index_select(1, self._owner)

    def _narrow(self, columns: Tensor) -> Tensor:
        if self._plain_columns:
            return columns
        features = columns.new_zeros(columns.shape[0], self._features)
        return features.index_add_(1, self._owner, columns)


def _members_of(owner: Tensor, features: int) -> tuple[Tensor, Tensor]:
    """Each feature's columns (d, p), padded to a common p, and 0 where there is only padding."""
    counts = torch.bincount(owner, minlength=features)
    slot = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
    columns = owner.new_zeros(features, int(counts.max()))
    live = torch.zeros(columns.shape, device=owner.device)
    columns[owner, slot] = torch.arange(len(owner), device=owner.device)
    live[owner, slot] = 1.0
    return columns, live


@torch.no_grad()
def run(
    lanes: Sequence[Lane],
    schedule: Schedule,
    advance: Callable[[int], None] = lambda steps: None,
    threads: int = 1,
) -> list[Trace]:
    """Walk every lane through the schedule; ``advance`` hears of steps done.

    On a CPU lanes that share nothing walk side by side, on as many threads as are given.
    """
    on_cpu = lanes[0].state.kept.device.type == "cpu"
    free = on_cpu and all(lane.shares_nothing() for lane in lanes)
    pace = Pace(torch.get_num_threads() if free and len(lanes) == 1 else 1)
    walks = [_walk(lane, schedule, pace) for lane in lanes]
    try:
        if free and min(len(lanes), threads) > 1:
            side_by_side(walks, min(len(lanes), threads), advance)
        else:
            for progress in zip_longest(*walks):
                advance(progress[0] or 0)
    except NotANumber:
        raise Diverged([trace for lane in lanes for trace in lane.traces()]) from None
    return [trace for lane in lanes for trace in lane.traces()]


def _walk(lane: Lane, schedule: Schedule, pace: Pace) -> Iterator[int]:
    """One lane through the schedule, a stretch at a time; yields the steps of each stretch."""
    looks_often = lane.state.kept.device.type == "cpu"  # an accelerator would be made to wait
    for phase in schedule:
        started = time.perf_counter()
        lane.enter(phase)
        done = 0
        while done < phase.steps:
            steps = min(pace.most_steps or lane.stretch, phase.steps - done)
            pace.run(partial(lane.advance, steps), steps)
            done += steps
            if (looks_often or done == phase.steps) and not lane.finite():
                raise NotANumber
            yield steps
        lane.leave(phase, time.perf_counter() - started)


def pick_device(device: str | torch.device) -> torch.device:
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
