"""Forward and backward pass of T MLPs, written out. The first layer's matrix belongs to the caller.

Activations are stored as (T, width, B), one column per row of the batch: then the batch is the long side of every
product, whatever the width, which is what matrix products on a CPU are fast at.

On a CPU a large batch is cut into slices, always at the same rows. Each slice runs on one thread, and the gradients of
the slices are added in order. So the result does not depend on the number of threads, and the threads wait for each
other once per step; the threads of a BLAS library wait in every product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.losses.table import make_loss
from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.models.activations import ACTIVATIONS
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.model import weighted_mean

MIN_SLICED_ROWS = 1024  # batches of fewer rows are one slice
SLICE_ROWS = 512  # rows per slice, at least: products of more rows are not faster


def init_linear(outs: int, ins: int, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """torch.nn.Linear's own initialisation for T models: weights (T, outs, ins) and biases (T, outs)."""
    bound = 1 / math.sqrt(ins)
    sizes = (outs, ins), (outs,)
    drawn = [[torch.empty(size).uniform_(-bound, bound, generator=g) for size in sizes] for g in generators]
    return torch.stack([weight for weight, _ in drawn]), torch.stack([bias for _, bias in drawn])


def split_batch(rows: int, device: torch.device, coupled: bool = False) -> list[slice]:
    """The slices of a batch of ``rows``; one on a GPU, and one if the loss of a row depends on the others."""
    sliced = device.type == "cpu" and rows >= MIN_SLICED_ROWS and not coupled
    count = rows // SLICE_ROWS if sliced else 1
    return [slice(i * rows // count, (i + 1) * rows // count) for i in range(count)]


class Workspace:
    """Buffers for one slice of a batch: pre-activations, activations and gradients of each layer.

    ``grads`` are the gradients of the first matrix, of the other matrices and of the biases.
    """

    def __init__(
        self,
        rows: slice,
        x: Tensor,
        widths: Sequence[int],
        grads: list[Tensor],
        *,
        sliced: bool,
        skipped: int = 0,
    ) -> None:
        """``skipped`` is the number of rows that a skip connection adds to the first layer."""
        self.rows, self.grads, self._sliced = rows, grads, sliced
        count = rows.stop - rows.start
        sizes = [(x.shape[0], width, count) for width in widths]
        first = x.new_empty(x.shape[0], widths[0] + skipped, count)
        self.sums = [first, *(x.new_empty(size) for size in sizes[1:])]  # pre-activations
        self.activation_buffers = [x.new_empty(size) for size in sizes[:-1]]
        self.deltas = [x.new_empty(size) for size in sizes[:-1]]
        # ``activations`` are those of each layer but the last. ``inputs`` are the same after dropout: what the next
        # layer receives.
        self.activations: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.dropout_factors: list[Tensor] = []
        self._x: Tensor | None = None
        self._x_chunks: Sequence[Tensor] = ()

    def matmul(self, a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        """A slice is computed on one thread, so no sum has to be split."""
        return torch.bmm(a, b, out=out) if self._sliced else matmul(a, b, out)

    def split_inputs(self, x: Tensor) -> Sequence[Tensor]:
        """The transposed inputs in chunks; batches gathered into the same buffer are split once."""
        if x is not self._x:
            self._x = x
            own = x[:, self.rows].mT if self._sliced else x.mT
            self._x_chunks = [own] if self._sliced else split_terms(own, 1)
        return self._x_chunks


class MLPLayers:
    """Everything of T MLPs but the matrix of the first layer.

    With ``skip``, the first matrix has one more row per output, and the products of these rows with the inputs are
    added to the outputs: one matrix product computes the first layer and the skip connection.

    ``matrices`` are those above the first layer, ``biases`` those of all layers; ``params`` lists both. ``gradients``
    computes the gradients of the first matrix and of ``params`` in place: ``first_grad`` and ``grads``.
    """

    def __init__(
        self,
        shape: MLPShape,
        task: str | Loss,
        generators: Sequence[torch.Generator],
        device: torch.device,
        *,
        skip: bool = False,
    ) -> None:
        models = len(generators)
        self.shape, self._skip, self._generators = shape, skip, list(generators)
        self.loss_function = make_loss(task, shape.label_smoothing)
        self._activation = ACTIVATIONS[shape.activation]
        self.matrices = [torch.zeros(models, *size, device=device) for size in shape.sizes[1:]]
        self.biases = [torch.zeros(models, size[0], device=device) for size in shape.sizes]
        self.params = self.matrices + self.biases
        width = shape.sizes[0][0] + (shape.outputs if skip else 0)
        self.first_grad = torch.zeros(models, width, shape.columns, device=device)
        self.grads = [torch.zeros_like(param) for param in self.params]
        self._bias_columns = [bias.unsqueeze(2) for bias in self.biases]
        self._first: Tensor | None = None  # the first matrix that was last split into chunks
        self._first_chunks: Sequence[Tensor] = ()
        self._workspaces: dict[int, list[Workspace]] = {}
        self.pool = WorkerPool(1)  # of the slices; ``train`` sets one with several threads

    def use_columns(self, columns: int) -> None:
        """Compute with a first matrix of another number of columns from now on."""
        self.first_grad = self.first_grad.new_empty(*self.first_grad.shape[:2], columns)
        self._first, self._workspaces = None, {}

    def is_sliced(self, batch_size: int) -> bool:
        return len(split_batch(batch_size, self.biases[0].device, self.loss_function.coupled)) > 1

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether every number is the same with any number of threads.

        Exponentials of long tensors are not: threads divide them, and the ends of each part are computed by
        other instructions. Matrix products (``matmul.py``), ReLU and batches in slices are.
        """
        exponential_widths = () if self.shape.activation == "relu" else self.shape.hidden
        widest = batch_size * max((self.shape.outputs, *exponential_widths))
        return self.is_sliced(batch_size) or widest <= PARALLEL_SIZE

    def reset_parameters(self, first_bias: Tensor) -> None:
        """Draw the matrices and biases above the first layer as torch.nn.Linear does."""
        self.biases[0].copy_(first_bias)
        for i, (outs, ins) in enumerate(self.shape.sizes[1:]):
            matrix, bias = init_linear(outs, ins, self._generators)
            self.matrices[i].copy_(matrix)
            self.biases[i + 1].copy_(bias)

    def outputs(self, first: Tensor, x: Tensor) -> Tensor:
        """Outputs (T, B, o), without dropout, for inputs (T, B, c) and a first matrix (T, h, c)."""
        spaces = self._spaces(x)
        self._run([partial(self._forward, first, x, space, False) for space in spaces])
        return torch.cat([space.sums[-1] for space in spaces], 2).mT

    def last_loss(self, x: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
        """The mean loss (T,) of the outputs that were computed last for a batch of this size."""
        outs = [space.sums[-1] for space in self._spaces(x)]
        return self.loss((outs[0] if len(outs) == 1 else torch.cat(outs, 2)).mT, y, w)

    def loss(self, out: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
        return weighted_mean(self.loss_function.per_row(out, y), w)

    def hidden_sums(self, first: Tensor, x: Tensor) -> Tensor:
        """The pre-activations (T, h, B) of the first layer."""
        spaces = self._spaces(x)
        self._run([partial(self._forward, first, x, space, False, upper=False) for space in spaces])
        return torch.cat([space.sums[0] for space in spaces], 2)

    def upper_outputs(self, hidden: Tensor) -> Tensor:
        """Outputs (..., B, o) from pre-activations (T, m, h, B) of the first layer, for m variants of each model."""
        for matrix, bias in zip(self.matrices, self._bias_columns[1:], strict=True):
            hidden = self._activation.forward(hidden, torch.empty_like(hidden))
            hidden = matrix.unsqueeze(1) @ hidden + bias.unsqueeze(1)
        return hidden.mT

    def gradients(
        self,
        first: Tensor,
        x: Tensor,
        y: Tensor,
        w: Tensor | None,
        *,
        dropout: bool = True,
        input_grads: Tensor | None = None,
    ) -> None:
        """Gradients of the mean loss with respect to ``first`` and to ``params``, into ``first_grad`` and ``grads``.

        The gradients (T, B, e) with respect to the last e inputs are written into ``input_grads``.
        """
        spaces = self._spaces(x)
        if len(spaces) == 1:
            self._forward(first, x, spaces[0], dropout)
            self._backward(first, x, y, w, 1 / x.shape[1], spaces[0], input_grads)
            return

        def differentiate(space: Workspace) -> None:
            self._forward(first, x, space, dropout)
            own = [None if values is None else values[:, space.rows] for values in (w, input_grads)]
            own_x, own_y = x[:, space.rows], y[:, space.rows]
            self._backward(first, own_x, own_y, own[0], 1 / x.shape[1], space, own[1])

        self._run([partial(differentiate, space) for space in spaces])
        own_grads = [space.grads for space in spaces]
        for grad, one, *others in zip([self.first_grad, *self.grads], *own_grads, strict=True):
            grad.copy_(one)
            for other in others:
                grad.add_(other)

    def hidden_gradient(self, first: Tensor, x: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
        """The gradient (T, h, B) of the mean loss with respect to the first hidden layer, for at most one slice."""
        self.gradients(first, x, y, w, dropout=False)
        return self._spaces(x)[0].deltas[0].clone()

    def _forward(
        self, first: Tensor, x: Tensor, space: Workspace, dropout: bool, *, upper: bool = True
    ) -> None:
        """All sums and activations, or, without ``upper``, the sums of the first layer."""
        inputs = space.split_inputs(x)
        if len(inputs) == 1:
            torch.bmm(first, inputs[0], out=space.sums[0])
        else:
            if first is not self._first:
                self._first, self._first_chunks = first, split_terms(first, 2)
            chunked_matmul(self._first_chunks, inputs, out=space.sums[0])
        sums = self._layer_sums(space, 0).add_(self._bias_columns[0])
        if not upper:
            return
        space.activations, space.inputs, space.dropout_factors = [], [], []
        for i, matrix in enumerate(self.matrices, 1):
            hidden = self._activation.forward(sums, space.activation_buffers[i - 1])
            space.activations.append(hidden)
            if dropout and self.shape.dropout:
                space.dropout_factors.append(self.draw_dropout(hidden))
                hidden = hidden * space.dropout_factors[-1]
            space.inputs.append(hidden)
            sums = space.matmul(matrix, hidden, space.sums[i]).add_(self._bias_columns[i])
        if self._skip:
            sums.add_(space.sums[0][:, self.biases[0].shape[1] :])

    def _layer_sums(self, space: Workspace, layer: int) -> Tensor:
        """The pre-activations of a layer, without the rows of a skip connection."""
        sums = space.sums[layer]
        return sums[:, : self.biases[0].shape[1]] if layer == 0 and self._skip else sums

    def _backward(
        self,
        first: Tensor,
        x: Tensor,
        y: Tensor,
        w: Tensor | None,
        row_share: float,
        space: Workspace,
        input_grads: Tensor | None,
    ) -> None:
        first_grad, grads = space.grads[0], space.grads[1:]
        matrix_grads, bias_grads = grads[: len(self.matrices)], grads[len(self.matrices) :]
        delta = self.loss_function.grad(space.sums[-1].mT, y).mT
        delta.mul_(row_share if w is None else (w * row_share).unsqueeze(1))
        out_delta = delta
        for i in range(len(self.matrices), 0, -1):
            space.matmul(delta, space.inputs[i - 1].mT, matrix_grads[i - 1])
            torch.sum(delta, 2, out=bias_grads[i])
            delta = space.matmul(self.matrices[i - 1].mT, delta, space.deltas[i - 1])
            if space.dropout_factors:
                delta.mul_(space.dropout_factors[i - 1])
            self._activation.backward(delta, self._layer_sums(space, i - 1), space.activations[i - 1])
        torch.sum(delta, 2, out=bias_grads[0])
        space.matmul(torch.cat([delta, out_delta], 1) if self._skip else delta, x, first_grad)
        if input_grads is not None and input_grads.shape[2]:
            torch.bmm(delta.mT, first[:, :, -input_grads.shape[2] :], out=input_grads)

    def _run(self, functions: list[partial[None]]) -> None:
        # With dropout, the order of the slices is that of their random draws.
        (WorkerPool(1) if self.shape.dropout else self.pool).run(functions)

    def _spaces(self, x: Tensor) -> list[Workspace]:
        """One workspace per slice. A single slice writes the gradients itself, several have buffers for them."""
        if x.shape[1] not in self._workspaces:
            # The first is that of CUDA graphs; the last batch of a pass is smaller.
            if len(self._workspaces) > 2:
                self._workspaces.popitem()
            widths, grads = [outs for outs, _ in self.shape.sizes], [self.first_grad, *self.grads]
            slices = split_batch(x.shape[1], x.device, self.loss_function.coupled)
            sliced = len(slices) > 1
            own_grads = [[torch.empty_like(g) for g in grads] if sliced else grads for _ in slices]
            self._workspaces[x.shape[1]] = [
                Workspace(rows, x, widths, own, sliced=sliced, skipped=self.shape.outputs * self._skip)
                for rows, own in zip(slices, own_grads, strict=True)
            ]
        return self._workspaces[x.shape[1]]

    def draw_dropout(self, like: Tensor) -> Tensor:
        """Factors of inverted dropout, each model's from its own generator: other models change nothing."""
        keep = 1 - self.shape.dropout
        draws = [torch.empty(like.shape[1:]).bernoulli_(keep, generator=g) for g in self._generators]
        return torch.stack(draws).to(like.device) / keep
