"""The network for streams: numbers and embeddings, gated feature by feature, into an MLP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqatt.neural.adam import Adam
from seqatt.neural.losses import plain_rows
from seqatt.stream.embeddings import make_tables
from seqatt.stream.source import Stream

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


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
        widths = [len(self.owner), *hidden, stream.target.outputs]
        self.layers = [_layer(n, m, generator, device) for n, m in pairwise(widths)]
        with torch.no_grad():  # no step is spent on learning how frequent the classes are
            self.layers[-1][1].copy_(torch.from_numpy(stream.labels.start))
        self.activation = ACTIVATIONS[activation]()
        params = [p for layer in self.layers for p in layer]
        self._rate = rate
        self.adam = Adam(params, torch.tensor(rate, device=device))

    def open(self, numbers: Tensor, places: Tensor) -> Tensor:
        """The inputs (B, c): numbers, and the embeddings of places, which ``train`` goes on to teach."""
        return torch.cat([numbers, *(table.look_up(places) for table in self.tables)], 1)

    def outputs(self, x: Tensor, weights: Tensor) -> Tensor:
        """(B, o), features entering with ``weights`` (d,)."""
        (first, bias), *others = self.layers
        # Weights scale the first layer, not the batch: the same product, of the smaller matrix.
        out = F.linear(x, first * weights.index_select(0, self.owner), bias)
        for matrix, bias in others:
            out = F.linear(self.activation(out), matrix, bias)
        return out

    def train(self, x: Tensor, target: Tensor, row_weights: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """One step on what was just opened: the loss and the gradient with respect to ``weights`` (d,)."""
        weights = weights.detach().requires_grad_()
        out = self.outputs(x, weights)
        y = target if self.task == "multiclass" else target.unsqueeze(1)
        loss = (plain_rows(self.task, out, y) * row_weights).mean()
        params = self.adam.params
        for leaf in (weights, *params):
            leaf.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self.adam.step([p.grad for p in params if p.grad is not None])
        for table in self.tables:
            table.learn()
        assert weights.grad is not None
        return loss.detach(), weights.grad

    def set_rate(self, factor: float) -> None:
        """Scale the rates that the network was made with."""
        self.adam.rate.fill_(self._rate * factor)
        for table in self.tables:
            table.pace = factor

    def first_layer(self) -> Tensor:
        """The weights (1, h, c) of the first layer themselves, as gates ask for them."""
        return self.layers[0][0].detach().unsqueeze(0)

    def shrink(self, factors: Tensor) -> None:
        """Scale what the first layer holds of each column by (1, c)."""
        self.layers[0][0].data.mul_(factors)


def _layer(
    inputs: int, outputs: int, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    reach = 1 / math.sqrt(inputs)  # as torch's own Linear starts
    matrix = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) * reach
    bias = (torch.rand(outputs, generator=generator) * 2 - 1) * reach
    return matrix.to(device).requires_grad_(), bias.to(device).requires_grad_()
