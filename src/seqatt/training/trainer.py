"""Trainer: models that train in one step, and the steps they take."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.loaders.in_memory import InMemoryLoader, Loader
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.reducer import Reducer
from seqatt.training.schedule import Phase
from seqatt.training.selection_state import FeatureState
from seqatt.training.state import Arrays, load_state

LOSS_INTERVAL = 8  # steps between batches whose loss is recorded
DECAY_INTERVAL = 8  # steps between two decays of the weights of unselected features
VALIDATION_ROWS = 2048  # rows per trial on which the removal of a feature is evaluated,
MAX_VALIDATION_ROWS = 16_384  # and where the rows of some classes are few
BLOCKS = 8  # blocks of a model's validation rows, whose mean losses show how uncertain their mean is


class Trainer:
    """T models in one tensor, with their gate and their loader. What they may see is in the selection state."""

    def __init__(
        self,
        model: Model,
        gate: Gate | None,
        loader: Loader,
        state: FeatureState,
        columns: FeatureColumns,
        weight_decay: float = 0.0,
        members: int = 1,
        reducer: Reducer | None = None,
        *,
        stops_converged: bool = False,
        balanced_share: float = 1.0,
    ) -> None:
        """``members`` is the size of a trial's ensemble, which shares the validation rows: more of them where classes
        are so unbalanced that the rows say no more than this share of them.

        With ``stops_converged``, for an ``MLP`` on a CPU, a phase that sees all features is over for a model that fits
        its rows: what is left of the steps is taken at once, as if all gradients were zero.
        """
        self.model = model
        self.chunk_steps = loader.chunk_steps
        self._reducer = reducer or Reducer()
        self._gate = gate
        self._loader = loader
        validation_rows = min(VALIDATION_ROWS * int(1 / balanced_share), MAX_VALIDATION_ROWS)
        self._validation_rows = max(1, validation_rows // members)
        self._decay_interval = min(DECAY_INTERVAL, loader.chunk_steps)
        self._decay = 1 - (1 - weight_decay) ** self._decay_interval
        self.models, device = len(state.selected), state.selected.device
        self._sees: str = "all"
        self._all_ones = False  # whether the fixed weights of a phase are known to be 1
        self._set_columns(state, columns)
        self._losses = torch.zeros(self.models, device=device)
        self._recorded_losses = 0
        self._stops_converged, self._steps_left = stops_converged, 0  # of the phase
        # With several ranks a step contains collectives, which no CUDA graph records.
        capturable = model.graph_capturable and (gate is None or gate.graph_capturable)
        self._recorder = GraphRecorder(device, enabled=capturable and self._reducer.ranks == 1)

    def _set_columns(self, state: FeatureState, columns: FeatureColumns) -> None:
        self._state, self._columns = state, columns
        self._padded_columns = columns.padded_columns()
        self._fixed_weights = torch.ones(self.models, columns.columns, device=state.selected.device)
        self._decay_factors = torch.ones_like(self._fixed_weights)

    def use_features(
        self, state: FeatureState, columns: FeatureColumns, rows: DeviceTable, in_table: Tensor
    ) -> None:
        """Train on these rows, whose columns have the numbers ``in_table`` among all, between two phases."""
        assert isinstance(self.model, MLP)
        assert isinstance(self._gate, AttentionGate)
        assert isinstance(self._loader, InMemoryLoader)
        self.model.use_columns(in_table)
        self._gate = self._gate.resized(columns.features)
        self._loader.use_table(rows)
        self._set_columns(state, columns)

    def hidden_gradient(self, rows: Tensor) -> Tensor:
        """The gradient (T, h, n) of the loss with respect to the first layer's sums, with the selected features alone.

        ``rows`` are row numbers (n,) of the table.
        """
        assert isinstance(self.model, MLP)
        assert isinstance(self._loader, InMemoryLoader)
        weights = self._columns.to_columns(self._state.selected)
        return self.model.hidden_gradient(self._loader.rows(rows), weights)

    def is_thread_invariant(self) -> bool:
        """Whether its results are the same beside other trainers and on any number of threads."""
        gate = self._gate is None or self._gate.is_thread_invariant()
        return gate and self.model.is_thread_invariant(self._loader.batch_size)

    def is_sliced(self) -> bool:
        """Whether the threads of a step work on slices of the batch."""
        return self.model.is_sliced(self._loader.batch_size)

    def start_phase(self, phase: Phase) -> None:
        self._losses.zero_()
        self._recorded_losses = 0
        self._steps_left = phase.steps
        if phase.reset_model:
            self.model.reset_parameters()
        self.resume_phase(phase)

    def resume_phase(self, phase: Phase) -> None:
        """Set what the models see in a phase."""
        self._sees = phase.sees
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
        # A graph recorded on a GPU is replayed in phases with other weights.
        on_cpu = self._fixed_weights.device.type == "cpu"
        self._all_ones = on_cpu and bool((self._fixed_weights == 1).all())

    def train_chunk(self, steps: int) -> None:
        """Train for ``steps`` steps, at most ``chunk_steps``; a GPU records them once and replays them."""
        model, gate, state, loader = self.model, self._gate, self._state, self._loader
        attended = self._sees == "attended"
        may_stop = self._stops_converged and self._sees == "all"
        if may_stop and not self._steps_left:
            return
        loader.load(steps)
        if gate is not None:
            gate.draw(steps)
        self._recorded_losses += -(-steps // LOSS_INTERVAL)
        self._steps_left -= steps
        capturable = loader.graph_capturable
        if capturable and self._recorder.replay(attended, steps):
            return
        with self._recorder.capture(attended, steps, enabled=capturable):
            for i in range(steps):
                batch = model.embed(loader.batch(i))
                if attended:
                    assert gate is not None
                    gate.observe(batch, state)
                    weights = self._columns.to_columns(gate.weights)
                    if gate.gradient_penalty is None:
                        grad = model.train_step(batch, weights)
                        gate.update(self._columns.to_features(grad), state)
                    else:
                        model.train_step_with_penalty(batch, weights, gate.gradient_penalty)
                    if self._decay and i % self._decay_interval == 0:
                        model.scale_first_layer(self._decay_factors)
                else:
                    model.train_step(batch, self._fixed_weights, gated=False, all_ones=self._all_ones)
                if i % LOSS_INTERVAL == 0:
                    loss = model.last_loss(batch)
                    self._reducer.average([loss], batch.x.shape[1])
                    self._losses += loss
                    if may_stop and self._finish_converged(steps - i - 1):
                        # The chunk records no further losses.
                        self._recorded_losses -= (steps - 1) // LOSS_INTERVAL - i // LOSS_INTERVAL
                        return

    def _finish_converged(self, steps: int) -> bool:
        """If the model has converged, take these steps and those of later chunks at once; returns whether it has."""
        assert isinstance(self.model, MLP)
        converged = self.model.has_converged()
        if converged:
            self.model.step_without_gradients(steps + self._steps_left)
            self._steps_left = 0
        return converged

    def mean_losses(self) -> Tensor:
        """The mean (T,) of the losses recorded in this phase."""
        return self._agreed(self._losses / max(self._recorded_losses, 1))

    def finite(self) -> Tensor:
        """Whether the losses and scores of each model (T,) are finite, on all ranks."""
        finite = torch.isfinite(self._losses)
        finite = finite if self._gate is None else finite & torch.isfinite(self._gate.scores().sum(1))
        return finite if self._reducer.ranks == 1 else self._agreed(finite.float()) > 1 - 1e-6

    def scores(self) -> Tensor:
        """The score (T, d) of each feature; resets the gate for the next phase."""
        assert self._gate is not None
        if self._gate.scoring_rows:
            self._gate.score_rows(self._validation_batches(self._gate.scoring_rows), self._state)
        scores = self._agreed(self._gate.scores().double())
        self._gate.reset()
        return scores

    def losses_without_each(self, selected: Tensor) -> Tensor:
        """The validation loss (T, m) without each of the selected features (T, m)."""
        weights = self._columns.to_columns(self._state.selected)
        columns, valid = self._padded_columns[0][selected], self._padded_columns[1][selected]
        losses, rows = [], 0
        for batch in self._validation_batches(self._validation_rows):
            count = batch.x.shape[1]
            losses.append(self.model.losses_without(batch, weights, columns, valid) * count)
            rows += count
        return self._agreed(torch.stack(losses).sum(0) / rows)

    def losses_by_block(self, features: Tensor, *, attended: bool = False) -> tuple[Tensor, Tensor]:
        """The validation loss (T, 1 + m, b) per block of rows, and the number of rows (b,) of each block.

        The first loss is with all selected features or, if ``attended``, with all features at their attention weights;
        the others are without each of these ``features`` (T, m). Unlike in ``losses_without_each`` no inputs are
        dropped, so that a row counts once.
        """
        gate = self._gate
        weights = self._columns.to_columns(gate.weights if attended and gate else self._state.selected)
        columns, valid = self._padded_columns[0][features], self._padded_columns[1][features]
        losses, counts = [], []
        for batch in self._validation_batches(self._validation_rows, drop_inputs=False):
            for block in batch.blocks(max(1, min(BLOCKS, batch.x.shape[1] // self.model.min_block_rows))):
                without = self.model.losses_without(block, weights, columns, valid)
                losses.append(torch.cat([self.model.loss(block, weights).unsqueeze(1), without], 1))
                counts.append(block.x.shape[1])
        return self._agreed(torch.stack(losses, 2)), torch.tensor(counts)

    def validation_loss(self) -> Tensor:
        """The mean loss (T,) on the validation rows, with the features that the last phase saw."""
        losses, rows = torch.zeros_like(self._losses), 0
        for batch in self._validation_batches(self._validation_rows):
            count = batch.x.shape[1]
            losses += self.model.loss(batch, self._fixed_weights) * count
            rows += count
        return self._agreed(losses / rows)

    def predict(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        """Outputs (T, B, o) for rows (B, c) and codes (B, m), with the features that the last phase saw."""
        models = len(self._fixed_weights)
        expanded = None if codes is None else codes.expand(models, *codes.shape)
        batch = self.model.embed(Batch(x.expand(models, *x.shape), x.new_empty(0), None, expanded))
        return self.model.predict(batch.x, self._fixed_weights)

    def _agreed(self, values: Tensor) -> Tensor:
        """The mean over ranks: rounding may differ between machines, and all ranks must decide the same."""
        self._reducer.average_equally([values])
        return values

    def _validation_batches(self, count: int, *, drop_inputs: bool = True) -> Iterator[Batch]:
        batches = self._loader.validation_batches(count, drop_inputs=drop_inputs)
        return (self.model.embed(batch) for batch in batches)

    def state_arrays(self) -> Arrays:
        """Copies of everything that later steps depend on, for a checkpoint."""
        arrays: Arrays = {
            "losses": self._losses.cpu().numpy().copy(),
            "recorded": torch.tensor(self._recorded_losses).numpy(),
            "steps_left": torch.tensor(self._steps_left).numpy(),
        }
        for name, part in self._stateful_parts():
            arrays |= {f"{name}.{key}": array for key, array in part.state_arrays().items()}
        return arrays

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore what ``state_arrays`` returned."""
        load_state([("losses", self._losses)], arrays)
        self._recorded_losses, self._steps_left = int(arrays["recorded"]), int(arrays["steps_left"])
        for name, part in self._stateful_parts():
            prefix = f"{name}."
            saved = {key[len(prefix) :]: a for key, a in arrays.items() if key.startswith(prefix)}
            part.load_arrays(saved)

    def _stateful_parts(self) -> Iterator[tuple[str, Model | Gate | Loader]]:
        yield "model", self.model
        if self._gate is not None:
            yield "gate", self._gate
        yield "loader", self._loader
