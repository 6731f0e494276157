"""The built-in MLP: all trials in one tensor, forward and backward written out.

The gate's weights scale the columns of the first layer instead of the batch, which is the same product and
far cheaper; so a step costs two large matrix products and little else. Layers hold a row of the batch in a
column, (T, width, B): then the long side of every product is the batch, whatever the width, which is what
a CPU's matrix products are fast at. ``separate.py`` trains the same network through autograd and is its
reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.batch import Batch
from seqatt.training.models.adam import Adam
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.losses import make_loss
from seqatt.training.models.model import GradientPenalty, Model, weighted_mean

aten = torch.ops.aten
CHUNK_CELLS = (1 << 25, 1 << 18)  # numbers worked on at a time: on an accelerator, on a CPU


class Activation(NamedTuple):
    """``forward(sums, room)`` and, from the gradient it is given and overwrites, ``backward``.

    ``plain`` is the same function for autograd.
    """

    forward: Callable[[Tensor, Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]  # (gradient, sums, activations); it may spoil all
    plain: Callable[[Tensor], Tensor]


# Rectified sums are not needed again: what was positive is all that counts on the way back.
ACTIVATIONS = {
    "relu": Activation(
        lambda z, room: torch.relu_(z),
        lambda g, z, a: g.mul_(torch.sign(a, out=a)),
        torch.relu,
    ),
    "tanh": Activation(
        lambda z, room: torch.tanh(z, out=room),
        lambda g, z, a: aten.tanh_backward.grad_input(g, a, grad_input=g),
        torch.tanh,
    ),
    "gelu": Activation(
        lambda z, room: aten.gelu.out(z, out=room),
        lambda g, z, a: aten.gelu_backward.grad_input(g, z, grad_input=g),
        F.gelu,
    ),
    "silu": Activation(
        lambda z, room: aten.silu.out(z, out=room),
        lambda g, z, a: aten.silu_backward.grad_input(g, z, grad_input=g),
        F.silu,
    ),
}


class Workspace:
    """Memory for one size of batch: each layer's sums, activations and gradients."""

    def __init__(self, x: Tensor, widths: Sequence[int]) -> None:
        sizes = [(x.shape[0], width, x.shape[1]) for width in widths]
        self.sums = [x.new_empty(size) for size in sizes]
        self.spare = [x.new_empty(size) for size in sizes[:-1]]
        self.deltas = [x.new_empty(size) for size in sizes[:-1]]
        self.out = self.sums[-1].mT  # (T, B, o), as losses have it
        self.share = x.new_tensor(1 / x.shape[1])  # of a row in the mean
        self.active: list[Tensor] = []  # what each layer but the last makes of its sums,
        self.flows: list[Tensor] = []  # and what it hands on
        self.noise: list[Tensor] = []
        self._x = x
        self._pieces = split_terms(x.mT, 1)

    def inputs(self, x: Tensor) -> Sequence[Tensor]:
        """The batch on its side, in pieces; batches gathered into the same place are cut once."""
        if x is not self._x:
            self._x, self._pieces = x, split_terms(x.mT, 1)
        return self._pieces


class MLP(Model):
    def __init__(
        self,
        shape: MLPShape,
        task: str,
        generators: Sequence[torch.Generator],
        rate: float,
        device: torch.device,
    ) -> None:
        self._shape = shape
        self._loss = make_loss(task, shape.smoothing)
        self.graph_capturable = not shape.dropout  # its noise is drawn on the host
        self._generators = list(generators)
        self._activation = ACTIVATIONS[shape.activation]
        trials = len(self._generators)
        self.weights = [torch.zeros(trials, *s, device=device) for s in shape.sizes]
        self.biases = [torch.zeros(trials, s[0], device=device) for s in shape.sizes]
        self._weight_grads = [torch.zeros_like(w) for w in self.weights]
        self._bias_grads = [torch.zeros_like(b) for b in self.biases]
        self._base_rate = rate
        self._rate = torch.tensor(rate, device=device)
        self._adam = Adam(self.weights + self.biases, self._rate)
        self._grads = self._weight_grads + self._bias_grads
        self._scaled = torch.empty_like(self.weights[0])
        self._pieces = split_terms(self._scaled, 2)
        self._tall_biases = [b.unsqueeze(2) for b in self.biases]
        self._ones = torch.ones(trials, 1, shape.sizes[0][0], device=device)
        self._gate_grad = torch.empty(trials, shape.columns, device=device)
        self._wide_gate_grad = self._gate_grad.unsqueeze(1)
        self._rooms: dict[int, Workspace] = {}
        self.restart()

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether every number comes out the same on any number of threads.

        Exponentials of long tensors do not: threads divide them, and ends are worked out differently.
        Sums and products do (``product.py``), and so does the rectifier.
        """
        curved = () if self._shape.activation == "relu" else self._shape.hidden
        return batch_size * max((self._shape.outputs, *curved)) <= PARALLEL_SIZE

    def restart(self) -> None:
        """torch.nn.Linear's own initialisation, drawn trial by trial from the trial's generator."""
        for i, (outs, ins) in enumerate(self._shape.sizes):
            bound = 1 / math.sqrt(ins)
            for t, generator in enumerate(self._generators):
                weight = torch.empty(outs, ins).uniform_(-bound, bound, generator=generator)
                bias = torch.empty(outs).uniform_(-bound, bound, generator=generator)
                self.weights[i][t].copy_(weight)
                self.biases[i][t].copy_(bias)
        self._adam.forget()

    def set_rate(self, factor: float) -> None:
        self._rate.fill_(self._base_rate * factor)

    def train(self, batch: Batch, weights: Tensor) -> Tensor:
        row = weights.unsqueeze(1)
        outer = self._backward(batch, row)
        torch.mul(self.weights[0], outer, out=self._scaled)
        matmul(self._ones, self._scaled, out=self._wide_gate_grad)
        outer.mul_(row)
        self._adam.step(self._grads)
        return self._gate_grad

    def _backward(self, batch: Batch, row: Tensor, *, noisy: bool = True) -> Tensor:
        """All gradients; of the first layer's weights as they are when scaled by ``row`` (T, 1, c)."""
        x, w = batch.x, batch.w
        room = self._room(x)
        self._first_layer(x, row, room)
        self._upper_layers(room, noisy=noisy)
        delta = self._loss.grad(room.out, batch.y).mT
        delta.mul_(room.share if w is None else (w * room.share).unsqueeze(1))
        for i in range(len(self.weights) - 1, 0, -1):
            matmul(delta, room.flows[i - 1].mT, out=self._weight_grads[i])
            torch.sum(delta, 2, out=self._bias_grads[i])
            delta = matmul(self.weights[i].mT, delta, out=room.deltas[i - 1])
            if room.noise:
                delta.mul_(room.noise[i - 1])
            self._activation.backward(delta, room.sums[i - 1], room.active[i - 1])
        torch.sum(delta, 2, out=self._bias_grads[0])
        return matmul(delta, x, out=self._weight_grads[0])

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        with torch.enable_grad():
            params = [p.detach().requires_grad_() for p in self._adam.params]
            x = (batch.x * weights.unsqueeze(1)).requires_grad_()
            loss = self._plain_loss(x, params, batch)
            (flow,) = torch.autograd.grad(loss.sum(), x, create_graph=True)
            total = loss.sum() + penalty(flow * x.shape[1]).sum()
            found = torch.autograd.grad(total, params)
        for grad, new in zip(self._grads, found, strict=True):
            grad.copy_(new)
        self._adam.step(self._grads)

    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        with torch.enable_grad():
            x = (batch.x * weights.unsqueeze(1)).requires_grad_()
            loss = self._plain_loss(x, self._adam.params, batch, noisy=False)
            return torch.autograd.grad(loss.sum(), x)[0] * x.shape[1]

    def _plain_loss(self, x: Tensor, params: Sequence[Tensor], batch: Batch, *, noisy: bool = True) -> Tensor:
        """The mean loss (T,) in operations that autograd knows."""
        layers = len(self.weights)
        flow = x.mT
        for i in range(layers):
            if i:
                flow = self._activation.plain(flow)
                if noisy and self._shape.dropout:
                    flow = flow * self._draw_noise(flow)
            flow = params[i] @ flow + params[layers + i].unsqueeze(2)
        # What ``last_loss`` looks at.
        self._room(batch.x).out.copy_(flow.mT.detach())
        return weighted_mean(self._loss.rows(flow.mT, batch.y), batch.w)

    def first_layer(self) -> Tensor:
        return self.weights[0]

    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        return self._backward(batch, weights.unsqueeze(1), noisy=False).clone()

    def last_loss(self, batch: Batch) -> Tensor:
        return weighted_mean(self._loss.rows(self._room(batch.x).out, batch.y), batch.w)

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        return weighted_mean(self._loss.rows(self.predict(batch.x, weights), batch.y), batch.w)

    def shrink(self, factors: Tensor) -> None:
        self.weights[0].mul_(factors.unsqueeze(1))

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, live: Tensor) -> Tensor:
        """The first layer once; then each set of columns is taken out of its sums, a few at a time."""
        x, y, w = batch.x, batch.y, batch.w
        room = self._room(x)
        self._first_layer(x, weights.unsqueeze(1), room)
        trials, width, rows = room.sums[0].shape
        cells = CHUNK_CELLS[x.device.type == "cpu"]
        held = columns.shape[2] + sum(outs for outs, _ in self._shape.sizes)
        at_once = max(1, cells // (trials * rows * held))
        parts = torch.split(columns, at_once, 1), torch.split(live, at_once, 1)
        losses = []
        for some, alive in zip(*parts, strict=True):
            sets, size = some.shape[1:]
            index = some.flatten(1).unsqueeze(1)
            inputs = x.gather(2, index.expand(-1, rows, -1)) * alive.flatten(1).unsqueeze(1)
            layer = self._scaled.gather(2, index.expand(-1, width, -1))
            inputs = inputs.view(trials, rows, sets, size).permute(0, 2, 3, 1)
            layer = layer.view(trials, width, sets, size).transpose(1, 2)
            flow = room.sums[0].unsqueeze(1) - layer @ inputs
            for i in range(1, len(self.weights)):
                flow = self._activation.forward(flow, torch.empty_like(flow))
                flow = self.weights[i].unsqueeze(1) @ flow + self._tall_biases[i].unsqueeze(1)
            truth = y.unsqueeze(1).expand(-1, sets, *y.shape[1:]).flatten(0, 1)
            each = self._loss.rows(flow.flatten(0, 1).mT, truth).view(trials, sets, rows)
            losses.append(weighted_mean(each, None if w is None else w.unsqueeze(1)))
        return torch.cat(losses, 1)

    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        room = self._room(x)
        self._first_layer(x, weights.unsqueeze(1), room)
        self._upper_layers(room, noisy=False)
        return room.out.clone()

    def _first_layer(self, x: Tensor, row: Tensor, room: Workspace) -> None:
        torch.mul(self.weights[0], row, out=self._scaled)
        sums = chunked_matmul(self._pieces, room.inputs(x), out=room.sums[0])
        sums.add_(self._tall_biases[0])

    def _upper_layers(self, room: Workspace, *, noisy: bool = True) -> None:
        room.active, room.flows, room.noise = [], [], []
        for i in range(1, len(self.weights)):
            flow = self._activation.forward(room.sums[i - 1], room.spare[i - 1])
            room.active.append(flow)
            if noisy and self._shape.dropout:
                room.noise.append(self._draw_noise(flow))
                flow = flow * room.noise[-1]
            room.flows.append(flow)
            matmul(self.weights[i], flow, out=room.sums[i]).add_(self._tall_biases[i])

    def _room(self, x: Tensor) -> Workspace:
        if x.shape[1] not in self._rooms:
            self._rooms[x.shape[1]] = Workspace(x, [outs for outs, _ in self._shape.sizes])
        return self._rooms[x.shape[1]]

    def _draw_noise(self, like: Tensor) -> Tensor:
        """Inverted dropout, each trial from its own generator, so that company changes nothing."""
        keep = 1 - self._shape.dropout
        draws = [torch.empty(like.shape[1:]).bernoulli_(keep, generator=g) for g in self._generators]
        return torch.stack(draws).to(like.device) / keep
