"""The built-in MLP: all models in one tensor, with forward and backward pass written out (``backpropagation.py``).

The gate's weights scale the columns of the first layer instead of the batch, which gives the same product at
a much lower cost; so a step costs little more than two large matrix products. ``torch_module.py`` trains the same
network through autograd and is the reference implementation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import matmul
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import ACTIVATIONS, MLPShape
from seqatt.training.models.backpropagation import init_linear
from seqatt.training.models.embeddings import Embeddings
from seqatt.training.models.layers import MLPLayers
from seqatt.training.models.model import MIN_COUPLED_ROWS, GradientPenalty, Model, weighted_mean
from seqatt.training.reducer import Reducer
from seqatt.training.state import Arrays, Stateful, copy_state, load_state, named_adam_state

CHUNK_CELLS = (1 << 26, 1 << 18)  # elements that ``losses_without`` computes at a time: on a GPU, on a CPU


class MLP(Model):
    """T networks of one shape, each with its own generator for initial parameters and dropout, trained by Adam.

    With ``embeddings``, the columns of a batch are followed by the embeddings of its codes; ``shape.columns`` counts
    both. ``initial_output`` (o,) is the initial bias of the outputs.
    """

    def __init__(
        self,
        shape: MLPShape,
        task: str | Loss,
        generators: Sequence[torch.Generator],
        lr: float,
        device: torch.device,
        *,
        embeddings: Embeddings | None = None,
        reducer: Reducer | None = None,
        initial_output: Tensor | None = None,
    ) -> None:
        self._shape = shape
        self._generators = list(generators)
        self._embeddings = embeddings
        self._reducer = reducer or Reducer()
        self._initial_output = initial_output
        self.layers = MLPLayers(shape, task, generators, device)
        coupled = self.layers.loss_function.coupled
        self.graph_capturable = not (shape.dropout or coupled)  # dropout is drawn on the host
        self.min_block_rows = MIN_COUPLED_ROWS if coupled else 1
        models = len(self._generators)
        first = torch.zeros(models, *shape.sizes[0], device=device)
        self.weights, self.biases = [first, *self.layers.matrices], self.layers.biases
        self._initial_lr = lr
        self._lr = torch.tensor(lr, device=device)
        self._adam = Adam(self.weights + self.biases, self._lr)
        self._grads = [self.layers.first_grad, *self.layers.grads]
        self._scaled = torch.empty_like(first)  # the first layer, scaled by the gate's weights
        self._ones = torch.ones(models, 1, shape.sizes[0][0], device=device)
        self._gate_grad = torch.empty(models, shape.columns, device=device)
        self._gate_grad_row = self._gate_grad.unsqueeze(1)
        # Weights and moments of the first layer for all columns, and those that train, if these are only some.
        self._parked: list[Tensor] = []
        self._used_columns = torch.empty(0, dtype=torch.int64)
        self._autograd_out: Tensor | None = None  # the outputs of the last step, if that was through autograd
        # Inputs, and gradients of embeddings, by batch size.
        self._inputs: dict[int, tuple[Tensor, Tensor]] = {}
        self.reset_parameters()

    def is_thread_invariant(self, batch_size: int) -> bool:
        return self.layers.is_thread_invariant(batch_size)

    def is_sliced(self, batch_size: int) -> bool:
        return self.layers.is_sliced(batch_size)

    def use_pool(self, pool: WorkerPool) -> None:
        self.layers.pool = pool

    def use_columns(self, columns: Tensor) -> None:
        """Train these columns of the first layer alone, on inputs that have no others.

        The others keep their weights and moments, and may be used again later.
        """
        adam = self._adam
        current = [self.weights[0], adam.exp_avg[0], adam.exp_avg_sq[0]]
        if self._parked:
            for parked, values in zip(self._parked, current, strict=True):
                parked[:, :, self._used_columns] = values
        else:
            self._parked = current
        self._used_columns = columns
        first, adam.exp_avg[0], adam.exp_avg_sq[0] = (p.index_select(2, columns) for p in self._parked)
        self.weights[0] = adam.params[0] = first
        self._shape = replace(self._shape, columns=len(columns))
        self.layers.use_columns(len(columns))
        self._grads[0] = self.layers.first_grad
        self._scaled = torch.empty_like(first)
        self._gate_grad = first.new_empty(len(first), len(columns))
        self._gate_grad_row = self._gate_grad.unsqueeze(1)

    def hidden_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        """The gradient (T, h, B) of the mean loss with respect to the first layer's sums, for a batch of one slice."""
        torch.mul(self.weights[0], weights.unsqueeze(1), out=self._scaled)
        return self.layers.hidden_gradient(self._scaled, batch)

    def reset_parameters(self) -> None:
        """torch.nn.Linear's own initialisation, drawn per model from the model's generator."""
        first, bias = init_linear(*self._shape.sizes[0], self._generators)
        self.weights[0].copy_(first)
        self.layers.reset_parameters(bias)
        if self._embeddings is not None:
            self._embeddings.reset_parameters(self._generators)
        if self._initial_output is not None:
            self.biases[-1].copy_(self._initial_output.expand_as(self.biases[-1]))
        self._adam.reset()

    def scale_learning_rate(self, factor: float) -> None:
        self._lr.fill_(self._initial_lr * factor)
        if self._embeddings is not None:
            self._embeddings.scale_learning_rate(factor)

    def embed(self, batch: Batch) -> Batch:
        if self._embeddings is None:
            return batch
        codes = batch.codes
        assert codes is not None
        inputs, _ = self._input_buffers(*codes.shape[:2])
        torch.cat([batch.x, self._embeddings.lookup(codes)], 2, out=inputs)
        return Batch(inputs, batch.y, batch.w)

    def train_step(
        self, batch: Batch, weights: Tensor, *, gated: bool = True, all_ones: bool = False
    ) -> Tensor:
        # On a wide table each pass over the first layer that is left out takes a tenth of a step.
        column_weights = None if all_ones else weights.unsqueeze(1)
        first, rows, embeddings = self.weights[0], batch.x.shape[1], self._embeddings
        grads = [*self._grads, self._gate_grad] if gated else self._grads
        self._autograd_out = None
        if rows:
            embedded = None if embeddings is None else self._input_buffers(*batch.x.shape[:2])[1]
            scaled = first if column_weights is None else torch.mul(first, column_weights, out=self._scaled)
            self.layers.gradients(scaled, batch, input_grads=embedded)
            first_grad = self.layers.first_grad
            if gated:
                torch.mul(first, first_grad, out=self._scaled)
                matmul(self._ones, self._scaled, out=self._gate_grad_row)
            if column_weights is not None:
                first_grad.mul_(column_weights)
            if embeddings is not None and embedded is not None:
                embeddings.collect(embedded)
        else:  # on a rank whose rows are all read
            for grad in grads:
                grad.zero_()
            if embeddings is not None:
                embeddings.collect_nothing()
        self._reducer.average(grads, rows)
        self._add_first_layer_decay(first, self.layers.first_grad)
        self._adam.step(self._grads)
        if embeddings is not None:
            self._reducer.merge_embedding_gradients(embeddings, rows)
            embeddings.step()
        return self._gate_grad

    def has_converged(self) -> bool:
        """Whether the last step's gradients and the momentum are so small that the loss has been minimised."""
        return self._adam.has_converged(self._grads)

    def step_without_gradients(self, steps: int) -> None:
        """As many steps as if all gradients were zero."""
        self._adam.step_without_gradients(steps)

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        rows, embeddings = batch.x.shape[1], self._embeddings
        with torch.enable_grad():
            params = [p.detach().requires_grad_() for p in self._adam.params]
            inputs = batch.x.detach().requires_grad_()
            x = inputs * weights.unsqueeze(1)
            loss = self._autograd_loss(x, params, batch)
            (x_grad,) = torch.autograd.grad(loss.sum(), x, create_graph=True)
            total = loss.sum() + penalty(x_grad * x.shape[1]).sum()
            *new_grads, input_grad = torch.autograd.grad(total, [*params, inputs])
        for grad, new in zip(self._grads, new_grads, strict=True):
            grad.copy_(new)
        self._reducer.average(self._grads, rows)
        self._adam.step(self._grads)
        if embeddings is not None:
            embeddings.collect(input_grad[:, :, -embeddings.columns :])
            self._reducer.merge_embedding_gradients(embeddings, rows)
            embeddings.step()

    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        with torch.enable_grad():
            x = (batch.x * weights.unsqueeze(1)).requires_grad_()
            loss = self._autograd_loss(x, self._adam.params, batch, dropout=False)
            return torch.autograd.grad(loss.sum(), x)[0] * x.shape[1]

    def _autograd_loss(
        self, x: Tensor, params: Sequence[Tensor], batch: Batch, *, dropout: bool = True
    ) -> Tensor:
        """The mean loss (T,), by operations that autograd can differentiate."""
        layers = len(self.weights)
        hidden = x.mT
        for i in range(layers):
            if i:
                hidden = ACTIVATIONS[self._shape.activation].function(hidden)
                if dropout and self._shape.dropout:
                    hidden = hidden * self.layers.draw_dropout(hidden)
            hidden = params[i] @ hidden + params[layers + i].unsqueeze(2)
        self._autograd_out = hidden.detach().mT  # for ``last_loss``
        return self.layers.loss(hidden.mT, batch)

    def first_layer(self) -> Tensor:
        return self.weights[0]

    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        torch.mul(self.weights[0], weights.unsqueeze(1), out=self._scaled)
        self.layers.gradients(self._scaled, batch, dropout=False)
        return self.layers.first_grad.clone()

    def last_loss(self, batch: Batch) -> Tensor:
        if not batch.x.shape[1]:
            return torch.zeros_like(self._gate_grad[:, 0])
        if self._autograd_out is not None:
            return self.layers.loss(self._autograd_out, batch)
        return self.layers.last_loss(batch)

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        return self.layers.loss(self.predict(batch.x, weights), batch)

    def scale_first_layer(self, factors: Tensor) -> None:
        self.weights[0].mul_(factors.unsqueeze(1))

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, valid: Tensor) -> Tensor:
        """Computes the first layer once, then subtracts each set of columns from it, a few sets at a time."""
        x, y, w = batch.x, batch.y, batch.w
        torch.mul(self.weights[0], weights.unsqueeze(1), out=self._scaled)
        sums = self.layers.hidden_sums(self._scaled, x)
        models, width, rows = sums.shape
        cells_per_set = models * rows * (columns.shape[2] + sum(outs for outs, _ in self._shape.sizes))
        sets_per_chunk = max(1, CHUNK_CELLS[x.device.type == "cpu"] // cells_per_set)
        buffer = sums.new_empty(models, min(sets_per_chunk, columns.shape[1]), width, rows)  # one for all
        chunks = torch.split(columns, sets_per_chunk, 1), torch.split(valid, sets_per_chunk, 1)
        losses = []
        if self._embeddings is not None:  # a category is removed by its mean; 0 is that of a number
            numbers, embedded = x.tensor_split([x.shape[2] - self._embeddings.columns], 2)
            shares = torch.nn.functional.normalize(torch.ones_like(x[:, :, 0]) if w is None else w, p=1.0)
            x = torch.cat([numbers, embedded - shares.unsqueeze(1) @ embedded], 2)
        for chunk, chunk_valid in zip(*chunks, strict=True):
            sets = chunk.shape[1]
            index = chunk.flatten(1).unsqueeze(1)
            inputs = x.gather(2, index.expand(-1, rows, -1)).mul_(chunk_valid.flatten(1).unsqueeze(1))
            layer = self._scaled.gather(2, index.expand(-1, width, -1))
            hidden = torch.matmul(
                layer.mT.reshape(*chunk.shape, width).mT,
                inputs.mT.reshape(*chunk.shape, rows),
                out=buffer[:, :sets],
            )
            out = self.layers.upper_outputs(torch.sub(sums.unsqueeze(1), hidden, out=hidden))
            target = y.unsqueeze(1).expand(-1, sets, *y.shape[1:]).flatten(0, 1)
            per_row = self.layers.loss_function.per_row(out.flatten(0, 1), target).view(models, sets, rows)
            losses.append(weighted_mean(per_row, None if w is None else w.unsqueeze(1)))
        return torch.cat(losses, 1)

    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        torch.mul(self.weights[0], weights.unsqueeze(1), out=self._scaled)
        return self.layers.outputs(self._scaled, x)

    def state_arrays(self) -> Arrays:
        return copy_state(self._named_state())

    def load_arrays(self, arrays: Arrays) -> None:
        load_state(self._named_state(), arrays)

    def _named_state(self) -> Iterator[tuple[str, Stateful]]:
        yield from named_adam_state("adam", self._adam)
        yield from ((f"parked{number}", tensor) for number, tensor in enumerate(self._parked))
        for number, generator in enumerate(self._generators):
            yield f"generator{number}", generator
        if self._embeddings is not None:
            yield from self._embeddings.named_state()

    def _input_buffers(self, models: int, rows: int) -> tuple[Tensor, Tensor]:
        """Inputs (T, B, c) and the gradients (T, B, e) of embeddings; other batches of the same size overwrite them."""
        assert self._embeddings is not None
        if rows not in self._inputs:
            if len(self._inputs) > 2:  # the first is that of CUDA graphs; the last batch of a pass is smaller
                self._inputs.popitem()
            new = self.weights[0].new_empty
            columns = self._shape.columns, self._embeddings.columns
            self._inputs[rows] = new(models, rows, columns[0]), new(models, rows, columns[1])
        return self._inputs[rows]
