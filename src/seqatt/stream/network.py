"""The network for streams: numbers and embeddings, gated feature by feature, into an MLP.

A step is written out, into memory that is there before it, so that its cost is that of its matrix products
and an accelerator can replay it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.neural.adam import Adam
from seqatt.neural.losses import make_loss
from seqatt.neural.owner import Owner
from seqatt.neural.stacked import ACTIVATIONS
from seqatt.stream.embeddings import RATE, make_tables
from seqatt.stream.source import Stream


class Room:
    """Memory for one size of batch: inputs, and each layer's sums, activations and gradients."""

    def __init__(self, rows: int, columns: int, embedded: int, widths: list[int], device: torch.device) -> None:
        self.inputs = torch.empty(rows, columns, device=device)
        self.sums = [torch.empty(rows, width, device=device) for width in widths]
        self.spare = [torch.empty_like(sums) for sums in self.sums[:-1]]
        self.deltas = [torch.empty_like(sums) for sums in self.sums[:-1]]
        self.embedded = torch.empty(rows, embedded, device=device)


class Network:
    """Trains by ``train``: one step, and the gradient with respect to the features' weights."""

    def __init__(
        self,
        stream: Stream,
        hidden: tuple[int, ...],
        activation: str,
        rate: float,
        embedding: int | Mapping[str, int] | None,
        seed: int,
        device: torch.device,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.task = stream.target.task
        self.tables = make_tables(stream.categories, embedding, generator, device)
        owners = torch.from_numpy(stream.category_owner).to(device)
        by_table = [owners[t.positions].repeat_interleave(t.width) for t in self.tables]
        self.owner = torch.cat([torch.from_numpy(stream.number_owner).to(device), *by_table])
        self._features = Owner(self.owner, stream.features)
        self._numbers = len(stream.number_owner)
        widths = [len(self.owner), *hidden, stream.target.outputs]
        self.layers = [_layer(n, m, generator, device) for n, m in pairwise(widths)]
        # No step is spent on learning how frequent the classes are.
        self.layers[-1][1].copy_(torch.from_numpy(stream.labels.start))
        self._activation = ACTIVATIONS[activation]
        self._loss = make_loss(self.task)
        self._rate = rate
        self.adam = Adam([p for layer in self.layers for p in layer], torch.tensor(rate, device=device))
        self.grads = [torch.zeros_like(p) for p in self.adam.params]
        self.moved: list[tuple[Tensor, Tensor]] = []  # rows of each table and their gradients
        self._scaled = torch.empty_like(self.layers[0][0])
        self._device = device
        self._rooms: dict[int, Room] = {}

    def open(self, numbers: Tensor, places: Tensor) -> Tensor:
        """The inputs (B, c): numbers, and the embeddings of places, which ``train`` goes on to teach.

        They lie where the inputs of the next batch of this size will.
        """
        parts = [numbers, *(table.look_up(places) for table in self.tables)]
        return torch.cat(parts, 1, out=self._room(len(numbers)).inputs)

    def outputs(self, x: Tensor, weights: Tensor) -> Tensor:
        """(B, o), features entering with ``weights`` (d,)."""
        (first, bias), *others = self.layers
        # Weights scale the first layer, not the batch: the same product, of the smaller matrix.
        out = F.linear(x, first * weights.index_select(0, self.owner), bias)
        for matrix, bias in others:
            out = F.linear(self._activation.plain(out), matrix, bias)
        return out

    @torch.no_grad()
    def train(self, x: Tensor, target: Tensor, row_weights: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """One step on what was just opened: the loss and the gradient with respect to ``weights`` (d,)."""
        loss, grad = self.differentiate(x, target, row_weights, weights)
        self.learn()
        return loss, grad

    def differentiate(
        self, x: Tensor, target: Tensor, row_weights: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What ``train`` gives; all other gradients stay in ``grads`` and ``moved``."""
        room = self._room(len(x))
        wide = weights.index_select(0, self.owner)
        torch.mul(self.layers[0][0], wide, out=self._scaled)
        active = [x]
        for i, (matrix, bias) in enumerate(self.layers):
            torch.addmm(bias, active[i], (matrix if i else self._scaled).t(), out=room.sums[i])
            if i + 1 < len(self.layers):
                active.append(self._activation.forward(room.sums[i], room.spare[i]))
        out = room.sums[-1].unsqueeze(0)
        y = (target if self.task == "multiclass" else target.unsqueeze(1)).unsqueeze(0)
        loss = (self._loss.rows(out, y)[0] * row_weights).mean()
        delta = self._loss.grad(out, y)[0].mul_((row_weights / len(x)).unsqueeze(1))
        for i in range(len(self.layers) - 1, -1, -1):
            torch.mm(delta.t(), active[i], out=self.grads[2 * i])
            torch.sum(delta, 0, out=self.grads[2 * i + 1])
            if i:
                delta = torch.mm(delta, self.layers[i][0], out=room.deltas[i - 1])
                self._activation.backward(delta, room.sums[i - 1], active[i])
        if self.tables:
            torch.mm(delta, self._scaled[:, self._numbers :], out=room.embedded)
            parts = room.embedded.split([table.columns for table in self.tables], 1)
            self.moved = [table.collect(part) for table, part in zip(self.tables, parts, strict=True)]
        by_column = torch.mul(self.layers[0][0], self.grads[0], out=self._scaled).sum(0)
        self.grads[0].mul_(wide)
        return loss, self._features.narrow(by_column.unsqueeze(0))[0]

    def learn(self) -> None:
        """A step along the gradients that are there."""
        self.adam.step(self.grads)
        for table, (rows, sums) in zip(self.tables, self.moved, strict=True):
            table.learn(rows, sums)

    def set_rate(self, factor: float) -> None:
        """Scale the rates that the network was made with."""
        self.adam.rate.fill_(self._rate * factor)
        for table in self.tables:
            table.rate.fill_(RATE * factor)

    def first_layer(self) -> Tensor:
        """The weights (1, h, c) of the first layer themselves, as gates ask for them."""
        return self.layers[0][0].unsqueeze(0)

    def shrink(self, factors: Tensor) -> None:
        """Scale what the first layer holds of each column by (1, c)."""
        self.layers[0][0].mul_(factors)

    def _room(self, rows: int) -> Room:
        """The first size is that of all batches but the last ones: its room may be recorded, so it stays."""
        if rows not in self._rooms:
            if len(self._rooms) > 1:
                self._rooms.popitem()
            widths = [len(bias) for _, bias in self.layers]
            embedded = len(self.owner) - self._numbers
            self._rooms[rows] = Room(rows, len(self.owner), embedded, widths, self._device)
        return self._rooms[rows]


def _layer(
    inputs: int, outputs: int, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    reach = 1 / math.sqrt(inputs)  # as torch's own Linear starts
    matrix = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) * reach
    bias = (torch.rand(outputs, generator=generator) * 2 - 1) * reach
    return matrix.to(device), bias.to(device)
