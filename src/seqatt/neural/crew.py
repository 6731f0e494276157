"""Some models that train in one step, and the steps they take."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.capture import Recorder
from seqatt.neural.feed import Feed
from seqatt.neural.gates.gate import Gate
from seqatt.neural.owner import Owner
from seqatt.neural.schedule import Phase
from seqatt.neural.state import State

WATCH_EVERY = 8  # steps between batches whose loss is recorded
SHRINK_EVERY = 8  # steps between pulls of unselected features' weights towards zero
JUDGED_ROWS = 2048  # on which a committee measures the harm of dropping a feature


class Crew:
    """Models side by side: a body, a gate and a feed. What they may see is in the state they are given."""

    def __init__(
        self,
        body: Body,
        gate: Gate | None,
        feed: Feed,
        state: State,
        owner: Owner,
        decay: float = 0.0,
        members: int = 1,
    ) -> None:
        self.body = body
        self.stretch = feed.stretch
        self._state = state
        self._gate = gate
        self._feed = feed
        self._owner = owner
        self._judged_rows = max(1, JUDGED_ROWS // members)
        self._shrinkage = 1 - (1 - decay) ** SHRINK_EVERY
        models, device = len(state.kept), state.kept.device
        self._members = owner.members()
        self._sees: str = "all"
        self._fixed = torch.ones(models, owner.columns, device=device)
        self._factors = torch.ones_like(self._fixed)
        self._losses = torch.zeros(models, device=device)
        self._watched = 0
        captured = body.captured and feed.captured and (gate is None or gate.captured)
        self._recorder = Recorder(device, enabled=captured)

    def shares_nothing(self) -> bool:
        """Whether its models come out the same beside others and on any number of threads."""
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
            self._fixed.copy_(self._owner.widen(self._state.kept))
        else:
            assert self._gate is not None
            self._gate.refresh(self._state)
            self._factors.copy_(self._owner.widen(1 - self._shrinkage * (1 - self._state.kept)))

    def advance(self, steps: int) -> None:
        """A stretch of steps."""
        self._feed.load(steps)
        if self._gate is not None:
            self._gate.load(steps)
        self._recorder.run(self._sees == "attended", steps, lambda: self._train(steps))
        self._watched += -(-steps // WATCH_EVERY)

    def _train(self, steps: int) -> None:
        for i in range(steps):
            batch = self._feed.at(i)
            if self._sees == "attended":
                assert self._gate is not None
                self._gate.look(batch, self._state)
                grad = self._gate.train(self.body, batch, self._owner.widen(self._gate.weights))
                self._gate.learn(self._owner.narrow(grad), self._state)
                if self._shrinkage and i % SHRINK_EVERY == 0:
                    self.body.shrink(self._factors)
            else:
                self.body.train(batch, self._fixed)
            if i % WATCH_EVERY == 0:
                self._losses += self.body.last_loss(batch)

    def mean_losses(self) -> Tensor:
        """The mean loss (T,) of the batches looked at in this phase."""
        return self._losses / max(self._watched, 1)

    def finite(self) -> Tensor:
        """Whose losses and scores (T,) are still numbers."""
        sound = torch.isfinite(self._losses)
        return sound if self._gate is None else sound & torch.isfinite(self._gate.scores().sum(1))

    def scores(self) -> Tensor:
        """How much each feature deserves to be chosen next (T, d), after which the gate starts afresh."""
        assert self._gate is not None
        if self._gate.judged_rows:
            self._gate.judge(self._feed.sample(self._gate.judged_rows), self._state)
        scores = self._gate.scores().double()
        self._gate.reset()
        return scores

    def harm(self, chosen: Tensor) -> Tensor:
        """The loss (T, m) without each of the features (T, m) that were chosen."""
        kept = self._owner.widen(self._state.kept)
        columns, live = self._members[0][chosen], self._members[1][chosen]
        losses, rows = [], 0
        for batch in self._feed.sample(self._judged_rows):
            count = batch.x.shape[1]
            losses.append(self.body.losses_without(batch, kept, columns, live) * count)
            rows += count
        return torch.stack(losses).sum(0) / rows

    def judged_loss(self) -> Tensor:
        """The mean loss (T,) on the rows for judging, by the features the last phase saw."""
        losses, rows = torch.zeros_like(self._losses), 0
        for batch in self._feed.sample(self._judged_rows):
            count = batch.x.shape[1]
            losses += self.body.loss(batch, self._fixed) * count
            rows += count
        return losses / rows

    def predict(self, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for rows (B, c), by the features the last phase saw."""
        return self.body.predict(x.expand(len(self._fixed), *x.shape), self._fixed)
