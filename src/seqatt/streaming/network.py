"""The network for files: numbers and embeddings of categories, weighted per feature, into an MLP.

Forward and backward pass are written out and use preallocated memory: a step costs little more than its matrix
products, and a GPU can replay it as a CUDA graph.
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
from seqatt.streaming.embeddings import EMBEDDING_LR, make_embedding_tables
from seqatt.streaming.slices import BatchSlice, split_batch
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.models.activations import ACTIVATIONS
from seqatt.training.models.adam import Adam
from seqatt.training.models.losses import make_loss


class EmbeddingWorkspace:
    """Memory for batches of one size: the inputs, and, once a step needs them, buffers for its gradients."""

    def __init__(
        self, rows: int, embedded: int, layers: list[tuple[Tensor, Tensor]], grads: list[Tensor]
    ) -> None:
        self._rows, self._embedded, self._layers, self._grads = rows, embedded, layers, grads
        self.inputs = layers[0][0].new_empty(rows, layers[0][0].shape[1])

    @cached_property
    def embedded(self) -> Tensor:
        """Gradients of the inputs that are embeddings (B, embedded)."""
        return self.inputs.new_empty(self._rows, self._embedded)

    @cached_property
    def slices(self) -> list[BatchSlice]:
        """The slices of a batch; one slice writes the network's own gradients, several have buffers each."""
        ranges = split_batch(self._rows, self.inputs.device)
        single = len(ranges) == 1
        return [
            BatchSlice(
                rows, self._layers, self._grads if single else [torch.empty_like(g) for g in self._grads]
            )
            for rows in ranges
        ]


class EmbeddingMLP:
    """An MLP on numbers and embeddings, with one weight per feature on its inputs.

    ``share_threads_with`` is a network whose threads this one uses; the two train in turn, never at once.
    """

    def __init__(
        self,
        data: FileData,
        hidden: tuple[int, ...],
        activation: str,
        lr: float,
        embedding: int | Mapping[str, int] | None,
        seed: int,
        device: torch.device,
        *,
        share_threads_with: EmbeddingMLP | None = None,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.task = data.target.task
        self.tables = make_embedding_tables(data.categories, embedding, generator, device)
        category_features = torch.from_numpy(data.categorical_feature).to(device)
        by_table = [category_features[t.positions].repeat_interleave(t.width) for t in self.tables]
        self.feature_of = torch.cat([torch.from_numpy(data.numeric_feature).to(device), *by_table])
        self._columns = FeatureColumns(self.feature_of, data.features)
        self._numbers = len(data.numeric_feature)
        widths = [len(self.feature_of), *hidden, data.target.outputs]
        self.layers = [_layer(n, m, generator, device) for n, m in pairwise(widths)]
        # The bias starts at the class frequencies, so that no step is spent on learning them.
        self.layers[-1][1].copy_(torch.from_numpy(data.target_column.initial_output))
        self._activation = ACTIVATIONS[activation]
        self._loss = make_loss(self.task)
        self._lr = lr
        self.adam = Adam([p for layer in self.layers for p in layer], torch.tensor(lr, device=device))
        self.grads = [torch.zeros_like(p) for p in self.adam.params]
        self.table_grads: list[tuple[Tensor, Tensor]] = []  # rows of each table and their gradients
        self._scaled = torch.empty_like(self.layers[0][0])
        self._workspaces: dict[int, EmbeddingWorkspace] = {}
        self._pool: WorkerPool | None = None
        self._thread_owner = share_threads_with

    def gather_inputs(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """The inputs (B, c): numbers, then the embeddings of the codes, which the next ``train_step`` updates.

        The next batch of the same size overwrites them.
        """
        inputs = [numbers, *(table.lookup(codes) for table in self.tables)]
        return torch.cat(inputs, 1, out=self._workspace(len(numbers)).inputs)

    def outputs(self, x: Tensor, weights: Tensor) -> Tensor:
        """The outputs (B, o) with feature weights (d,)."""
        (first, bias), *others = self.layers
        # The weights scale the first layer instead of the batch: the same product, and the smaller matrix.
        out = F.linear(x, first * weights.index_select(0, self.feature_of), bias)
        for matrix, bias in others:
            out = F.linear(self._activation.function(out), matrix, bias)
        return out

    @torch.no_grad()
    def train_step(
        self, x: Tensor, target: Tensor, row_weights: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One step on the inputs just gathered: the loss, and its gradient with respect to ``weights`` (d,)."""
        loss, grad = self.differentiate(x, target, row_weights, weights)
        self.apply_gradients()
        return loss, grad

    def differentiate(
        self, x: Tensor, target: Tensor, row_weights: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The result of ``train_step`` without the step; the other gradients are in ``grads`` and ``table_grads``."""
        workspace = self._workspace(len(x))
        column_weights = weights.index_select(0, self.feature_of)
        torch.mul(self.layers[0][0], column_weights, out=self._scaled)
        y = (target.long() if self.task == "multiclass" else target.unsqueeze(1)).unsqueeze(0)
        shares = (row_weights / len(x)).unsqueeze(0)

        embedded = workspace.embedded  # allocated here: two threads that found it missing would allocate two

        def differentiate_slice(batch_slice: BatchSlice) -> Tensor:
            at = batch_slice.rows
            columns = self._numbers, embedded[at]
            return batch_slice.differentiate(
                x[at], y[:, at], shares[:, at], self._scaled, self._loss, self._activation, columns
            )

        losses = self._worker_pool().run(
            [partial(differentiate_slice, batch_slice) for batch_slice in workspace.slices]
        )
        if len(losses) > 1:
            slice_grads = [batch_slice.grads for batch_slice in workspace.slices]
            for grad, first, *others in zip(self.grads, *slice_grads, strict=True):
                grad.copy_(first)
                for other in others:
                    grad.add_(other)
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        grads = torch.split(embedded, [table.columns for table in self.tables], 1)
        self.table_grads = [table.collect(grad) for table, grad in zip(self.tables, grads, strict=True)]
        by_column = torch.mul(self.layers[0][0], self.grads[0], out=self._scaled).sum(0)
        self.grads[0].mul_(column_weights)
        return loss, self._columns.to_features(by_column.unsqueeze(0))[0]

    def zero_gradients(self) -> tuple[Tensor, Tensor]:
        """What ``differentiate`` would compute for a batch without rows."""
        for grad in self.grads:
            grad.zero_()
        self.table_grads = [(table.starts[:0].long(), table.values[:0]) for table in self.tables]
        return self._scaled.new_zeros(()), self._scaled.new_zeros(self._columns.features)

    def apply_gradients(self) -> None:
        """One optimizer step with ``grads`` and ``table_grads``."""
        self.adam.step(self.grads)
        for table, (rows, sums) in zip(self.tables, self.table_grads, strict=True):
            table.apply_gradients(rows, sums)

    def scale_learning_rate(self, factor: float) -> None:
        """Set the learning rates to ``factor`` times their initial values."""
        self.adam.lr.fill_(self._lr * factor)
        for table in self.tables:
            table.lr.fill_(EMBEDDING_LR * factor)

    def first_layer(self) -> Tensor:
        """The first layer's weights (1, h, c), not a copy."""
        return self.layers[0][0].unsqueeze(0)

    def scale_first_layer(self, factors: Tensor) -> None:
        """Multiply the first layer's columns by factors (1, c)."""
        self.layers[0][0].mul_(factors)

    def _workspace(self, rows: int) -> EmbeddingWorkspace:
        """The workspace for this batch size.

        The first one is never released: all batches but the last have its size, and CUDA graphs refer to it.
        """
        if rows not in self._workspaces:
            if len(self._workspaces) > 1:
                self._workspaces.popitem()
            embedded = len(self.feature_of) - self._numbers
            self._workspaces[rows] = EmbeddingWorkspace(rows, embedded, self.layers, self.grads)
        return self._workspaces[rows]

    def _worker_pool(self) -> WorkerPool:
        """On a CPU one thread per slice, up to torch's number of threads; torch itself then uses one."""
        if self._thread_owner is not None:
            return self._thread_owner._worker_pool()
        if self._pool is None:
            on_cpu = self.feature_of.device.type == "cpu"
            self._pool = WorkerPool(torch.get_num_threads() if on_cpu else 1)
            if on_cpu:
                torch.set_num_threads(1)  # until ``training_threads`` restores it
        return self._pool


def _layer(
    inputs: int, outputs: int, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Weights and bias of a linear layer, initialised as by ``torch.nn.Linear``."""
    bound = 1 / math.sqrt(inputs)
    matrix = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) * bound
    bias = (torch.rand(outputs, generator=generator) * 2 - 1) * bound
    return matrix.to(device), bias.to(device)
