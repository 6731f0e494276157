"""The built-in MLP: all trials in one tensor, forward and backward written out.

The gate's weights scale the rows of the first layer instead of the batch, which is the same product and
far cheaper; so a step costs two large matrix products and little else. ``separate.py`` trains the same
network through autograd and is its reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqatt.neural.adam import Adam
from seqatt.neural.body import Batch, Body, mean_rows
from seqatt.neural.losses import Loss
from seqatt.neural.shape import Shape

aten = torch.ops.aten
LANES = 16  # hidden widths are padded to whole vector registers; padded units are zero and stay zero


class Activation(NamedTuple):
    """``forward(sums, room)`` and, from the gradient it is given and overwrites, ``backward``."""

    forward: Callable[[Tensor, Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]  # (gradient, sums, activations)


# Each maps 0 to 0, which keeps padded units silent. Rectified sums are not needed again.
ACTIVATIONS = {
    "relu": Activation(
        lambda z, room: z.relu_(),
        lambda g, z, a: aten.threshold_backward.grad_input(g, a, 0, grad_input=g),
    ),
    "tanh": Activation(
        lambda z, room: torch.tanh(z, out=room),
        lambda g, z, a: aten.tanh_backward.grad_input(g, a, grad_input=g),
    ),
    "gelu": Activation(
        lambda z, room: aten.gelu.out(z, out=room),
        lambda g, z, a: aten.gelu_backward.grad_input(g, z, grad_input=g),
    ),
    "silu": Activation(
        lambda z, room: aten.silu.out(z, out=room),
        lambda g, z, a: aten.silu_backward.grad_input(g, z, grad_input=g),
    ),
}


class Room:
    """Memory for one size of batch: each layer's sums, activations and gradients."""

    def __init__(self, x: Tensor, widths: Sequence[int]) -> None:
        sizes = [(x.shape[0], x.shape[1], width) for width in widths]
        self.sums = [x.new_empty(size) for size in sizes]
        self.spare = [x.new_empty(size) for size in sizes[:-1]]
        self.deltas = [x.new_empty(size) for size in sizes[:-1]]
        self.share = x.new_tensor(1 / x.shape[1])  # of a row in the mean
        self.flows: list[Tensor] = []  # what each layer but the last hands on
        self.noise: list[Tensor] = []


class Stacked(Body):
    def __init__(
        self,
        shape: Shape,
        loss: Loss,
        generators: Sequence[torch.Generator],
        rate: float,
        device: torch.device,
    ) -> None:
        self._shape = shape
        self._loss = loss
        self._generators = list(generators)
        self._activation = ACTIVATIONS[shape.activation]
        trials = len(self._generators)
        padded = tuple(-(-h // LANES) * LANES for h in shape.hidden)
        self._padded = Shape(shape.columns, padded, shape.outputs)
        self.weights = [torch.zeros(trials, *s, device=device) for s in self._padded.sizes]
        self.biases = [torch.zeros(trials, s[0], device=device) for s in self._padded.sizes]
        self._weight_grads = [torch.zeros_like(w) for w in self.weights]
        self._bias_grads = [torch.zeros_like(b) for b in self.biases]
        self._base_rate = rate
        self._rate = torch.tensor(rate, device=device)
        self._adam = Adam(self.weights + self.biases, self._rate)
        self._grads = self._weight_grads + self._bias_grads
        self._scaled = torch.empty_like(self.weights[0])
        self._upright = [self._scaled.mT, *(w.mT for w in self.weights[1:])]
        self._tall_biases = [b.unsqueeze(1) for b in self.biases]
        self._rooms: dict[int, Room] = {}
        self.restart()

    def restart(self) -> None:
        """torch.nn.Linear's own initialisation, drawn trial by trial from the trial's generator."""
        for i, (outs, ins) in enumerate(self._shape.sizes):
            bound = 1 / math.sqrt(ins)
            for t, generator in enumerate(self._generators):
                weight = torch.empty(outs, ins).uniform_(-bound, bound, generator=generator)
                bias = torch.empty(outs).uniform_(-bound, bound, generator=generator)
                self.weights[i][t, :outs, :ins].copy_(weight)
                self.biases[i][t, :outs].copy_(bias)
        self._adam.forget()

    def set_rate(self, factor: float) -> None:
        self._rate.fill_(self._base_rate * factor)

    def train(self, batch: Batch, weights: Tensor) -> Tensor:
        x, y, w = batch
        room = self._room(x)
        row = weights.unsqueeze(1)
        self._forward(x, row, room, self._shape.dropout)
        delta = self._loss.grad(room.sums[-1], y)
        delta.mul_(room.share if w is None else (w * room.share).unsqueeze(-1))
        for i in range(len(self.weights) - 1, 0, -1):
            torch.bmm(delta.mT, room.flows[i - 1], out=self._weight_grads[i])
            torch.sum(delta, 1, out=self._bias_grads[i])
            delta = torch.bmm(delta, self.weights[i], out=room.deltas[i - 1])
            if room.noise:
                delta.mul_(room.noise[i - 1])
            self._activation.backward(delta, room.sums[i - 1], room.flows[i - 1])
        torch.sum(delta, 1, out=self._bias_grads[0])
        outer = torch.bmm(delta.mT, x, out=self._weight_grads[0])
        gate = torch.mul(self.weights[0], outer, out=self._scaled).sum(1)
        outer.mul_(row)
        self._adam.step(self._grads)
        return gate

    def last_loss(self, batch: Batch) -> Tensor:
        return mean_rows(self._loss.rows(self._room(batch.x).sums[-1], batch.y), batch.w)

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        return mean_rows(self._loss.rows(self.predict(batch.x, weights), batch.y), batch.w)

    def shrink(self, factors: Tensor) -> None:
        self.weights[0].mul_(factors.unsqueeze(1))

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, live: Tensor) -> Tensor:
        """The first layer once; then each set of columns is taken out of its sums."""
        x, y, w = batch
        room = self._room(x)
        self._first_layer(x, weights.unsqueeze(1), room)
        whole = room.sums[0].clone()
        losses = []
        for i in range(columns.shape[1]):
            index = columns[:, i].unsqueeze(1)
            inputs = x.gather(2, index.expand(-1, x.shape[1], -1)) * live[:, i].unsqueeze(1)
            layer = self._scaled.gather(2, index.expand(-1, self._scaled.shape[1], -1))
            torch.baddbmm(whole, inputs, layer.mT, alpha=-1, out=room.sums[0])
            self._upper_layers(room)
            losses.append(mean_rows(self._loss.rows(room.sums[-1], y), w))
        return torch.stack(losses, 1)

    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        room = self._room(x)
        self._forward(x, weights.unsqueeze(1), room)
        return room.sums[-1].clone()

    def _forward(self, x: Tensor, row: Tensor, room: Room, dropout: float = 0.0) -> None:
        self._first_layer(x, row, room)
        self._upper_layers(room, dropout)

    def _first_layer(self, x: Tensor, row: Tensor, room: Room) -> None:
        torch.mul(self.weights[0], row, out=self._scaled)
        torch.bmm(x, self._upright[0], out=room.sums[0]).add_(self._tall_biases[0])

    def _upper_layers(self, room: Room, dropout: float = 0.0) -> None:
        room.flows, room.noise = [], []
        for i in range(1, len(self.weights)):
            flow = self._activation.forward(room.sums[i - 1], room.spare[i - 1])
            if dropout:
                room.noise.append(self._draw_noise(flow))
                flow.mul_(room.noise[-1])
            room.flows.append(flow)
            torch.bmm(flow, self._upright[i], out=room.sums[i]).add_(self._tall_biases[i])

    def _room(self, x: Tensor) -> Room:
        if x.shape[1] not in self._rooms:
            self._rooms[x.shape[1]] = Room(x, [outs for outs, _ in self._padded.sizes])
        return self._rooms[x.shape[1]]

    def _draw_noise(self, like: Tensor) -> Tensor:
        """Inverted dropout, each trial from its own generator, so that company changes nothing."""
        keep = 1 - self._shape.dropout
        draws = [torch.empty(like.shape[1:]).bernoulli_(keep, generator=g) for g in self._generators]
        return torch.stack(draws).to(like.device) / keep
