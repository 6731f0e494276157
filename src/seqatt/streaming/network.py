"""The network for streams: numbers and embeddings, gated feature by feature, into an MLP.

A step is written out, into memory that is there before it, so that it costs little more than its matrix
products and an accelerator can replay it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, partial
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.data.files.file_data import FileData
from seqatt.streaming.embeddings import RATE, make_embedding_tables
from seqatt.streaming.slices import BatchSlice, split_batch
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.models.adam import Adam
from seqatt.training.models.losses import make_loss
from seqatt.training.models.mlp import ACTIVATIONS


class EmbeddingWorkspace:
    """Memory for one size of batch: inputs, and what a step needs, which a look alone does not."""

    def __init__(
        self, rows: int, embedded: int, layers: list[tuple[Tensor, Tensor]], grads: list[Tensor]
    ) -> None:
        self._rows, self._embedded, self._layers, self._grads = rows, embedded, layers, grads
        self.inputs = layers[0][0].new_empty(rows, layers[0][0].shape[1])

    @cached_property
    def embedded(self) -> Tensor:
        """Gradients of those inputs that come from tables."""
        return self.inputs.new_empty(self._rows, self._embedded)

    @cached_property
    def slices(self) -> list[BatchSlice]:
        cuts = split_batch(self._rows, self.inputs.device)
        alone = len(cuts) == 1
        return [
            BatchSlice(
                some, self._layers, self._grads if alone else [torch.empty_like(g) for g in self._grads]
            )
            for some in cuts
        ]


class EmbeddingMLP:
    """Trains by ``train``: one step, and the gradient with respect to the features' weights."""

    def __init__(
        self,
        stream: FileData,
        hidden: tuple[int, ...],
        activation: str,
        rate: float,
        embedding: int | Mapping[str, int] | None,
        seed: int,
        device: torch.device,
        *,
        beside: EmbeddingMLP | None = None,
    ) -> None:
        """``beside`` is a network that works before this one, on the same threads."""
        generator = torch.Generator().manual_seed(seed)
        self.task = stream.target.task
        self.tables = make_embedding_tables(stream.categories, embedding, generator, device)
        owners = torch.from_numpy(stream.categorical_feature).to(device)
        by_table = [owners[t.positions].repeat_interleave(t.width) for t in self.tables]
        self.feature_of = torch.cat([torch.from_numpy(stream.numeric_feature).to(device), *by_table])
        self._features = FeatureColumns(self.feature_of, stream.features)
        self._numbers = len(stream.numeric_feature)
        widths = [len(self.feature_of), *hidden, stream.target.outputs]
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
        self._rooms: dict[int, EmbeddingWorkspace] = {}
        self._slicing: WorkerPool | None = None
        self._beside = beside

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
        out = F.linear(x, first * weights.index_select(0, self.feature_of), bias)
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
        wide = weights.index_select(0, self.feature_of)
        torch.mul(self.layers[0][0], wide, out=self._scaled)
        y = (target.long() if self.task == "multiclass" else target.unsqueeze(1)).unsqueeze(0)
        shares = (row_weights / len(x)).unsqueeze(0)

        embedded = room.embedded  # made here: two threads that find it missing would make two

        def through(some: BatchSlice) -> Tensor:
            at = some.rows
            columns = self._numbers, embedded[at]
            return some.differentiate(
                x[at], y[:, at], shares[:, at], self._scaled, self._loss, self._activation, columns
            )

        losses = self._spread().run([partial(through, some) for some in room.slices])
        if len(losses) > 1:
            for grad, first, *others in zip(self.grads, *(some.grads for some in room.slices), strict=True):
                grad.copy_(first)
                for other in others:
                    grad.add_(other)
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        parts = torch.split(embedded, [table.columns for table in self.tables], 1)
        self.moved = [table.collect(part) for table, part in zip(self.tables, parts, strict=True)]
        by_column = torch.mul(self.layers[0][0], self.grads[0], out=self._scaled).sum(0)
        self.grads[0].mul_(wide)
        return loss, self._features.to_features(by_column.unsqueeze(0))[0]

    def zero_gradients(self) -> tuple[Tensor, Tensor]:
        """What ``differentiate`` gives and leaves where there are no rows."""
        for grad in self.grads:
            grad.zero_()
        self.moved = [(table.starts[:0].long(), table.values[:0]) for table in self.tables]
        return self._scaled.new_zeros(()), self._scaled.new_zeros(self._features.features)

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

    def _room(self, rows: int) -> EmbeddingWorkspace:
        """The first size is that of all batches but the last ones: its room may be recorded, so it stays."""
        if rows not in self._rooms:
            if len(self._rooms) > 1:
                self._rooms.popitem()
            embedded = len(self.feature_of) - self._numbers
            self._rooms[rows] = EmbeddingWorkspace(rows, embedded, self.layers, self.grads)
        return self._rooms[rows]

    def _spread(self) -> WorkerPool:
        """On a CPU a thread for each slice, as far as there are threads, and then none of torch's own."""
        if self._beside is not None:
            return self._beside._spread()
        if self._slicing is None:
            on_cpu = self.feature_of.device.type == "cpu"
            self._slicing = WorkerPool(torch.get_num_threads() if on_cpu else 1)
            if on_cpu:
                torch.set_num_threads(1)  # until ``threads_for`` sets it back
        return self._slicing


def _layer(
    inputs: int, outputs: int, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    reach = 1 / math.sqrt(inputs)  # as torch's own Linear starts
    matrix = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) * reach
    bias = (torch.rand(outputs, generator=generator) * 2 - 1) * reach
    return matrix.to(device), bias.to(device)
