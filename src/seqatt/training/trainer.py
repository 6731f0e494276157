"""Trainer: models that train in one step, and the steps they take."""

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

LOSS_INTERVAL = 8  # steps between batches whose loss is recorded
DECAY_INTERVAL = 8  # steps between two decays of the weights of unselected features
VALIDATION_ROWS = 2048  # rows per trial on which the removal of a feature is evaluated


class Trainer:
    """T models in one tensor, with their gate and their loader. What they may see is in the selection state."""

    def __init__(
        self,
        model: Model,
        gate: Gate | None,
        loader: InMemoryLoader,
        state: SelectionState,
        columns: FeatureColumns,
        weight_decay: float = 0.0,
        members: int = 1,
    ) -> None:
        """``members`` is the size of a trial's ensemble, which shares the validation rows."""
        self.model = model
        self.chunk_steps = loader.chunk_steps
        self._state = state
        self._gate = gate
        self._loader = loader
        self._columns = columns
        self._validation_rows = max(1, VALIDATION_ROWS // members)
        self._decay = 1 - (1 - weight_decay) ** DECAY_INTERVAL
        models, device = len(state.selected), state.selected.device
        self._padded_columns = columns.padded_columns()
        self._sees: str = "all"
        self._fixed_weights = torch.ones(models, columns.columns, device=device)
        self._decay_factors = torch.ones_like(self._fixed_weights)
        self._losses = torch.zeros(models, device=device)
        self._recorded_losses = 0
        capturable = model.graph_capturable and loader.graph_capturable
        capturable = capturable and (gate is None or gate.graph_capturable)
        self._recorder = GraphRecorder(device, enabled=capturable)

    def is_thread_invariant(self) -> bool:
        """Whether its results are the same beside other trainers and on any number of threads."""
        gate = self._gate is None or self._gate.is_thread_invariant()
        return gate and self.model.is_thread_invariant(self._loader.batch_size)

    def start_phase(self, phase: Phase) -> None:
        self._sees = phase.sees
        self._losses.zero_()
        self._recorded_losses = 0
        if phase.reset_model:
            self.model.reset_parameters()
        self.model.scale_learning_rate(phase.lr_factor)
        if phase.sees == "all":
            self._fixed_weights.fill_(1)
        elif phase.sees == "selected":
            self._fixed_weights.copy_(self._columns.to_columns(self._state.selected))
        else:
            assert self._gate is not None
            self._gate.refresh(self._state)
            decay = 1 - self._decay * (1 - self._state.selected)
            self._decay_factors.copy_(self._columns.to_columns(decay))

    def train_chunk(self, steps: int) -> None:
        """Train for ``steps`` steps, at most ``chunk_steps``; a GPU records them once and replays them."""
        model, gate, state, loader = self.model, self._gate, self._state, self._loader
        attended = self._sees == "attended"
        loader.load(steps)
        if gate is not None:
            gate.draw(steps)
        self._recorded_losses += -(-steps // LOSS_INTERVAL)
        if self._recorder.replay(attended, steps):
            return
        with self._recorder.capture(attended, steps):
            for i in range(steps):
                batch = loader.batch(i)
                if attended:
                    assert gate is not None
                    gate.observe(batch, state)
                    weights = self._columns.to_columns(gate.weights)
                    if gate.gradient_penalty is None:
                        grad = model.train_step(batch, weights)
                        gate.update(self._columns.to_features(grad), state)
                    else:
                        model.train_step_with_penalty(batch, weights, gate.gradient_penalty)
                    if self._decay and i % DECAY_INTERVAL == 0:
                        model.scale_first_layer(self._decay_factors)
                else:
                    model.train_step(batch, self._fixed_weights)
                if i % LOSS_INTERVAL == 0:
                    self._losses += model.last_loss(batch)

    def mean_losses(self) -> Tensor:
        """The mean (T,) of the losses recorded in this phase."""
        return self._losses / max(self._recorded_losses, 1)

    def finite(self) -> Tensor:
        """Whether the losses and scores of each model (T,) are finite."""
        finite = torch.isfinite(self._losses)
        return finite if self._gate is None else finite & torch.isfinite(self._gate.scores().sum(1))

    def scores(self) -> Tensor:
        """The score (T, d) of each feature; resets the gate for the next phase."""
        assert self._gate is not None
        if self._gate.scoring_rows:
            self._gate.score_rows(self._loader.validation_batches(self._gate.scoring_rows), self._state)
        scores = self._gate.scores().double()
        self._gate.reset()
        return scores

    def losses_without_each(self, selected: Tensor) -> Tensor:
        """The validation loss (T, m) without each of the selected features (T, m)."""
        weights = self._columns.to_columns(self._state.selected)
        columns, valid = self._padded_columns[0][selected], self._padded_columns[1][selected]
        losses, rows = [], 0
        for batch in self._loader.validation_batches(self._validation_rows):
            count = batch.x.shape[1]
            losses.append(self.model.losses_without(batch, weights, columns, valid) * count)
            rows += count
        return torch.stack(losses).sum(0) / rows

    def validation_loss(self) -> Tensor:
        """The mean loss (T,) on the validation rows, with the features that the last phase saw."""
        losses, rows = torch.zeros_like(self._losses), 0
        for batch in self._loader.validation_batches(self._validation_rows):
            count = batch.x.shape[1]
            losses += self.model.loss(batch, self._fixed_weights) * count
            rows += count
        return losses / rows

    def predict(self, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for rows (B, c), with the features that the last phase saw."""
        return self.model.predict(x.expand(len(self._fixed_weights), *x.shape), self._fixed_weights)
