"""The built-in MLP: all models in one tensor, with forward and backward pass written out.

The gate's weights scale the columns of the first layer instead of the batch, which gives the same product at
a much lower cost; so a step costs little more than two large matrix products. Activations are stored as
(T, width, B), one column per row of the batch: then the batch is the long side of every product, whatever the
width, which is what matrix products on a CPU are fast at. ``torch_module.py`` trains the same network through
autograd and is the reference implementation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.batch import Batch
from seqatt.training.models.activations import ACTIVATIONS
from seqatt.training.models.adam import Adam
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.losses import make_loss
from seqatt.training.models.model import GradientPenalty, Model, weighted_mean

CHUNK_CELLS = (1 << 25, 1 << 18)  # elements that ``losses_without`` computes at a time: on a GPU, on a CPU


class Workspace:
    """Buffers for one batch size: pre-activations, activations and gradients of each layer."""

    def __init__(self, x: Tensor, widths: Sequence[int]) -> None:
        sizes = [(x.shape[0], width, x.shape[1]) for width in widths]
        self.sums = [x.new_empty(size) for size in sizes]  # pre-activations
        self.activation_buffers = [x.new_empty(size) for size in sizes[:-1]]
        self.deltas = [x.new_empty(size) for size in sizes[:-1]]
        self.out = self.sums[-1].mT  # (T, B, o), the layout of losses
        self.row_share = x.new_tensor(1 / x.shape[1])  # weight of a row in the mean
        # ``activations`` are those of each layer but the last. ``inputs`` are the same after dropout: what the next
        # layer receives.
        self.activations: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.dropout_factors: list[Tensor] = []
        self._x = x
        self._x_chunks = split_terms(x.mT, 1)

    def split_inputs(self, x: Tensor) -> Sequence[Tensor]:
        """The transposed batch in chunks; batches gathered into the same buffer are split once."""
        if x is not self._x:
            self._x, self._x_chunks = x, split_terms(x.mT, 1)
        return self._x_chunks


class MLP(Model):
    """T networks of one shape, each with its own generator for initial parameters and dropout, trained by Adam."""

    def __init__(
        self,
        shape: MLPShape,
        task: str,
        generators: Sequence[torch.Generator],
        lr: float,
        device: torch.device,
    ) -> None:
        self._shape = shape
        self._loss = make_loss(task, shape.label_smoothing)
        self.graph_capturable = not shape.dropout  # dropout is drawn on the host
        self._generators = list(generators)
        self._activation = ACTIVATIONS[shape.activation]
        models = len(self._generators)
        self.weights = [torch.zeros(models, *s, device=device) for s in shape.sizes]
        self.biases = [torch.zeros(models, s[0], device=device) for s in shape.sizes]
        self._weight_grads = [torch.zeros_like(w) for w in self.weights]
        self._bias_grads = [torch.zeros_like(b) for b in self.biases]
        self._initial_lr = lr
        self._lr = torch.tensor(lr, device=device)
        self._adam = Adam(self.weights + self.biases, self._lr)
        self._grads = self._weight_grads + self._bias_grads
        self._scaled = torch.empty_like(self.weights[0])  # the first layer, scaled by the gate's weights
        self._scaled_chunks = split_terms(self._scaled, 2)
        self._bias_columns = [b.unsqueeze(2) for b in self.biases]
        self._ones = torch.ones(models, 1, shape.sizes[0][0], device=device)
        self._gate_grad = torch.empty(models, shape.columns, device=device)
        self._gate_grad_row = self._gate_grad.unsqueeze(1)
        self._workspaces: dict[int, Workspace] = {}
        self.reset_parameters()

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether every number is the same with any number of threads.

        Exponentials of long tensors are not: threads divide them, and the ends of each part are computed by
        other instructions. Matrix products (``matmul.py``) and ReLU are.
        """
        exponential_widths = () if self._shape.activation == "relu" else self._shape.hidden
        return batch_size * max((self._shape.outputs, *exponential_widths)) <= PARALLEL_SIZE

    def reset_parameters(self) -> None:
        """torch.nn.Linear's own initialisation, drawn per model from the model's generator."""
        for i, (outs, ins) in enumerate(self._shape.sizes):
            bound = 1 / math.sqrt(ins)
            for t, generator in enumerate(self._generators):
                weight = torch.empty(outs, ins).uniform_(-bound, bound, generator=generator)
                bias = torch.empty(outs).uniform_(-bound, bound, generator=generator)
                self.weights[i][t].copy_(weight)
                self.biases[i][t].copy_(bias)
        self._adam.reset()

    def scale_learning_rate(self, factor: float) -> None:
        self._lr.fill_(self._initial_lr * factor)

    def train_step(self, batch: Batch, weights: Tensor) -> Tensor:
        column_weights = weights.unsqueeze(1)
        first_grad = self._backward(batch, column_weights)
        torch.mul(self.weights[0], first_grad, out=self._scaled)
        matmul(self._ones, self._scaled, out=self._gate_grad_row)
        first_grad.mul_(column_weights)
        self._adam.step(self._grads)
        return self._gate_grad

    def _backward(self, batch: Batch, column_weights: Tensor, *, dropout: bool = True) -> Tensor:
        """Compute all gradients; returns that of the first layer after scaling by ``column_weights`` (T, 1, c)."""
        x, w = batch.x, batch.w
        space = self._workspace(x)
        self._first_layer(x, column_weights, space)
        self._upper_layers(space, dropout=dropout)
        delta = self._loss.grad(space.out, batch.y).mT
        delta.mul_(space.row_share if w is None else (w * space.row_share).unsqueeze(1))
        for i in range(len(self.weights) - 1, 0, -1):
            matmul(delta, space.inputs[i - 1].mT, out=self._weight_grads[i])
            torch.sum(delta, 2, out=self._bias_grads[i])
            delta = matmul(self.weights[i].mT, delta, out=space.deltas[i - 1])
            if space.dropout_factors:
                delta.mul_(space.dropout_factors[i - 1])
            self._activation.backward(delta, space.sums[i - 1], space.activations[i - 1])
        torch.sum(delta, 2, out=self._bias_grads[0])
        return matmul(delta, x, out=self._weight_grads[0])

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        with torch.enable_grad():
            params = [p.detach().requires_grad_() for p in self._adam.params]
            x = (batch.x * weights.unsqueeze(1)).requires_grad_()
            loss = self._autograd_loss(x, params, batch)
            (x_grad,) = torch.autograd.grad(loss.sum(), x, create_graph=True)
            total = loss.sum() + penalty(x_grad * x.shape[1]).sum()
            new_grads = torch.autograd.grad(total, params)
        for grad, new in zip(self._grads, new_grads, strict=True):
            grad.copy_(new)
        self._adam.step(self._grads)

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
                hidden = self._activation.function(hidden)
                if dropout and self._shape.dropout:
                    hidden = hidden * self._draw_dropout(hidden)
            hidden = params[i] @ hidden + params[layers + i].unsqueeze(2)
        self._workspace(batch.x).out.copy_(hidden.mT.detach())  # for ``last_loss``
        return weighted_mean(self._loss.per_row(hidden.mT, batch.y), batch.w)

    def first_layer(self) -> Tensor:
        return self.weights[0]

    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        return self._backward(batch, weights.unsqueeze(1), dropout=False).clone()

    def last_loss(self, batch: Batch) -> Tensor:
        return weighted_mean(self._loss.per_row(self._workspace(batch.x).out, batch.y), batch.w)

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        return weighted_mean(self._loss.per_row(self.predict(batch.x, weights), batch.y), batch.w)

    def scale_first_layer(self, factors: Tensor) -> None:
        self.weights[0].mul_(factors.unsqueeze(1))

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, valid: Tensor) -> Tensor:
        """Computes the first layer once, then subtracts each set of columns from it, a few sets at a time."""
        x, y, w = batch.x, batch.y, batch.w
        space = self._workspace(x)
        self._first_layer(x, weights.unsqueeze(1), space)
        models, width, rows = space.sums[0].shape
        cells_per_set = models * rows * (columns.shape[2] + sum(outs for outs, _ in self._shape.sizes))
        sets_per_chunk = max(1, CHUNK_CELLS[x.device.type == "cpu"] // cells_per_set)
        chunks = torch.split(columns, sets_per_chunk, 1), torch.split(valid, sets_per_chunk, 1)
        losses = []
        for some, some_valid in zip(*chunks, strict=True):
            sets, size = some.shape[1:]
            index = some.flatten(1).unsqueeze(1)
            inputs = x.gather(2, index.expand(-1, rows, -1)) * some_valid.flatten(1).unsqueeze(1)
            layer = self._scaled.gather(2, index.expand(-1, width, -1))
            inputs = inputs.view(models, rows, sets, size).permute(0, 2, 3, 1)
            layer = layer.view(models, width, sets, size).transpose(1, 2)
            hidden = space.sums[0].unsqueeze(1) - layer @ inputs
            for i in range(1, len(self.weights)):
                hidden = self._activation.forward(hidden, torch.empty_like(hidden))
                hidden = self.weights[i].unsqueeze(1) @ hidden + self._bias_columns[i].unsqueeze(1)
            target = y.unsqueeze(1).expand(-1, sets, *y.shape[1:]).flatten(0, 1)
            per_row = self._loss.per_row(hidden.flatten(0, 1).mT, target).view(models, sets, rows)
            losses.append(weighted_mean(per_row, None if w is None else w.unsqueeze(1)))
        return torch.cat(losses, 1)

    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        space = self._workspace(x)
        self._first_layer(x, weights.unsqueeze(1), space)
        self._upper_layers(space, dropout=False)
        return space.out.clone()

    def _first_layer(self, x: Tensor, column_weights: Tensor, space: Workspace) -> None:
        torch.mul(self.weights[0], column_weights, out=self._scaled)
        sums = chunked_matmul(self._scaled_chunks, space.split_inputs(x), out=space.sums[0])
        sums.add_(self._bias_columns[0])

    def _upper_layers(self, space: Workspace, *, dropout: bool = True) -> None:
        space.activations, space.inputs, space.dropout_factors = [], [], []
        for i in range(1, len(self.weights)):
            hidden = self._activation.forward(space.sums[i - 1], space.activation_buffers[i - 1])
            space.activations.append(hidden)
            if dropout and self._shape.dropout:
                space.dropout_factors.append(self._draw_dropout(hidden))
                hidden = hidden * space.dropout_factors[-1]
            space.inputs.append(hidden)
            matmul(self.weights[i], hidden, out=space.sums[i]).add_(self._bias_columns[i])

    def _workspace(self, x: Tensor) -> Workspace:
        if x.shape[1] not in self._workspaces:
            self._workspaces[x.shape[1]] = Workspace(x, [outs for outs, _ in self._shape.sizes])
        return self._workspaces[x.shape[1]]

    def _draw_dropout(self, like: Tensor) -> Tensor:
        """Factors of inverted dropout, each model's from its own generator: other models change nothing."""
        keep = 1 - self._shape.dropout
        draws = [torch.empty(like.shape[1:]).bernoulli_(keep, generator=g) for g in self._generators]
        return torch.stack(draws).to(like.device) / keep
