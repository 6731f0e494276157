"""Some models that train in one step, and the steps they take."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.loader import InMemoryLoader
from seqatt.training.models.model import Model
from seqatt.training.schedule import Phase
from seqatt.training.selection_state import SelectionState

WATCH_EVERY = 8  # steps between batches whose loss is recorded
SHRINK_EVERY = 8  # steps between pulls of unselected features' weights towards zero
JUDGED_ROWS = 2048  # on which a committee measures the harm of dropping a feature


class Trainer:
    """Models side by side: a body, a gate and a feed. What they may see is in the state they are given."""

    def __init__(
        self,
        model: Model,
        gate: Gate | None,
        loader: InMemoryLoader,
        state: SelectionState,
        feature_of: FeatureColumns,
        decay: float = 0.0,
        members: int = 1,
    ) -> None:
        self.model = model
        self.chunk_steps = loader.chunk_steps
        self._state = state
        self._gate = gate
        self._loader = loader
        self._feature_of = feature_of
        self._validation_rows = max(1, JUDGED_ROWS // members)
        self._shrinkage = 1 - (1 - decay) ** SHRINK_EVERY
        models, device = len(state.selected), state.selected.device
        self._members = feature_of.members()
        self._sees: str = "all"
        self._fixed = torch.ones(models, feature_of.columns, device=device)
        self._factors = torch.ones_like(self._fixed)
        self._losses = torch.zeros(models, device=device)
        self._watched = 0
        graph_capturable = (
            model.graph_capturable and loader.graph_capturable and (gate is None or gate.graph_capturable)
        )
        self._recorder = GraphRecorder(device, enabled=graph_capturable)

    def is_thread_invariant(self) -> bool:
        """Whether its models come out the same beside others and on any number of threads."""
        gate = self._gate is None or self._gate.is_thread_invariant()
        return gate and self.model.is_thread_invariant(self._loader.size)

    def enter(self, phase: Phase) -> None:
        self._sees = phase.sees
        self._losses.zero_()
        self._watched = 0
        if phase.fresh:
            self.model.restart()
        self.model.set_rate(phase.rate)
        if phase.sees == "all":
            self._fixed.fill_(1)
        elif phase.sees == "selected":
            self._fixed.copy_(self._feature_of.to_columns(self._state.selected))
        else:
            assert self._gate is not None
            self._gate.refresh(self._state)
            self._factors.copy_(self._feature_of.to_columns(1 - self._shrinkage * (1 - self._state.selected)))

    def advance(self, steps: int) -> None:
        """A stretch of steps."""
        self._loader.load(steps)
        if self._gate is not None:
            self._gate.load(steps)
        self._recorder.run(self._sees == "attended", steps, lambda: self._train(steps))
        self._watched += -(-steps // WATCH_EVERY)

    def _train(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.at(i)
            if self._sees == "attended":
                assert self._gate is not None
                self._gate.observe(batch, self._state)
                grad = self._gate.train(self.model, batch, self._feature_of.to_columns(self._gate.weights))
                self._gate.update(self._feature_of.to_features(grad), self._state)
                if self._shrinkage and i % SHRINK_EVERY == 0:
                    self.model.shrink(self._factors)
            else:
                self.model.train(batch, self._fixed)
            if i % WATCH_EVERY == 0:
                self._losses += self.model.last_loss(batch)

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
        if self._gate.scoring_rows:
            self._gate.score_rows(self._loader.sample(self._gate.scoring_rows), self._state)
        scores = self._gate.scores().double()
        self._gate.reset()
        return scores

    def harm(self, chosen: Tensor) -> Tensor:
        """The loss (T, m) without each of the features (T, m) that were chosen."""
        selected = self._feature_of.to_columns(self._state.selected)
        columns, live = self._members[0][chosen], self._members[1][chosen]
        losses, rows = [], 0
        for batch in self._loader.sample(self._validation_rows):
            count = batch.x.shape[1]
            losses.append(self.model.losses_without(batch, selected, columns, live) * count)
            rows += count
        return torch.stack(losses).sum(0) / rows

    def validation_loss(self) -> Tensor:
        """The mean loss (T,) on the rows for judging, by the features the last phase saw."""
        losses, rows = torch.zeros_like(self._losses), 0
        for batch in self._loader.sample(self._validation_rows):
            count = batch.x.shape[1]
            losses += self.model.loss(batch, self._fixed) * count
            rows += count
        return losses / rows

    def predict(self, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for rows (B, c), by the features the last phase saw."""
        return self.model.predict(x.expand(len(self._fixed), *x.shape), self._fixed)
