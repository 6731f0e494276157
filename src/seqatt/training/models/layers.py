"""Outputs and gradients of T MLPs. The first layer's matrix belongs to the caller.

On a CPU a large batch is cut into slices, always at the same rows. Each slice runs on one thread, and the gradients of
the slices are added in order. So the result does not depend on the number of threads, and the threads wait for each
other once per step; the threads of a BLAS library wait in every product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.losses.table import make_loss
from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import ACTIVATIONS, MLPShape
from seqatt.training.models.backpropagation import Backpropagation, init_linear
from seqatt.training.models.model import weighted_mean

MIN_SLICED_ROWS = 1024  # batches of fewer rows are one slice
SLICE_ROWS = 512  # rows per slice, at least: products of more rows are not faster


def split_batch(rows: int, device: torch.device, coupled: bool = False) -> list[slice]:
    """The slices of a batch of ``rows``; one on a GPU, and one if the loss of a row depends on the others."""
    sliced = device.type == "cpu" and rows >= MIN_SLICED_ROWS and not coupled
    count = rows // SLICE_ROWS if sliced else 1
    return [slice(i * rows // count, (i + 1) * rows // count) for i in range(count)]


class Workspace(Backpropagation):
    """One slice of a batch of inputs ``x``.

    ``grads`` are the gradients of the first matrix, of the others and of the biases. If the batch is one slice, they
    are written there, else into buffers of this slice.
    """

    def __init__(self, rows: slice, x: Tensor, shape: MLPShape, grads: list[Tensor], *, skip: bool) -> None:
        def new(width: int) -> Tensor:
            return x.new_empty(x.shape[0], width, rows.stop - rows.start)

        self.rows, self.sliced = rows, rows.stop - rows.start < x.shape[1]
        # A slice is computed on one thread, so no sum has to be split.
        super().__init__(shape, new, torch.bmm if self.sliced else matmul)
        self.grads = [torch.empty_like(grad) for grad in grads] if self.sliced else grads
        end = 1 + len(shape.hidden)
        self.upper_grads = self.grads[1:end], self.grads[end:]  # of the other matrices, and of the biases
        # The product of the first layer, which has more rows with a skip connection.
        self.first_sums = new(shape.sizes[0][0] + shape.outputs) if skip else self.sums[0]
        self._x: Tensor | None = None
        self._x_chunks: Sequence[Tensor] = ()

    def split_inputs(self, x: Tensor) -> Sequence[Tensor]:
        """The transposed inputs in chunks; batches gathered into the same buffer are split once."""
        if x is not self._x:
            self._x, self._x_chunks = x, [x[:, self.rows].mT] if self.sliced else split_terms(x.mT, 1)
        return self._x_chunks


class MLPLayers:
    """T MLPs without the matrix of the first layer.

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

    def last_loss(self, batch: Batch) -> Tensor:
        """The mean loss (T,) of the outputs that were computed last for a batch of this size."""
        outs = [space.sums[-1] for space in self._spaces(batch.x)]
        return self.loss((outs[0] if len(outs) == 1 else torch.cat(outs, 2)).mT, batch)

    def loss(self, out: Tensor, batch: Batch) -> Tensor:
        return weighted_mean(self.loss_function.per_row(out, batch.y), batch.w)

    def hidden_sums(self, first: Tensor, x: Tensor) -> Tensor:
        """The pre-activations (T, h, B) of the first layer."""
        spaces = self._spaces(x)
        self._run([partial(self._forward, first, x, space, False, upper=False) for space in spaces])
        return torch.cat([space.sums[0] for space in spaces], 2)

    def upper_outputs(self, hidden: Tensor) -> Tensor:
        """Outputs (..., B, o) from pre-activations (T, m, h, B) of the first layer, for m variants of each model.

        Overwrites ``hidden``.
        """
        for matrix, bias in zip(self.matrices, self._bias_columns[1:], strict=True):
            ACTIVATIONS[self.shape.activation].forward(hidden, hidden)
            hidden = (matrix.unsqueeze(1) @ hidden).add_(bias.unsqueeze(1))
        return hidden.mT

    def gradients(
        self, first: Tensor, batch: Batch, *, dropout: bool = True, input_grads: Tensor | None = None
    ) -> None:
        """Gradients of the mean loss with respect to ``first`` and to ``params``, into ``first_grad`` and ``grads``.

        The gradients (T, B, e) with respect to the last e inputs are written into ``input_grads``.
        """
        x = batch.x
        spaces = self._spaces(x)
        if len(spaces) == 1:
            self._differentiate(first, x, batch, dropout, input_grads, spaces[0])
            return
        self._run([partial(self._differentiate, first, x, batch, dropout, input_grads, s) for s in spaces])
        own_grads = [space.grads for space in spaces]
        for grad, one, *others in zip([self.first_grad, *self.grads], *own_grads, strict=True):
            grad.copy_(one)
            for other in others:
                grad.add_(other)

    def hidden_gradient(self, first: Tensor, batch: Batch) -> Tensor:
        """The gradient (T, h, B) of the mean loss with respect to the first hidden layer, for at most one slice."""
        self.gradients(first, batch, dropout=False)
        return self._spaces(batch.x)[0].deltas[0].clone()

    def _forward(
        self, first: Tensor, x: Tensor, space: Workspace, dropout: bool, *, upper: bool = True
    ) -> None:
        """The sums of every layer or, without ``upper``, of the first one."""
        inputs = space.split_inputs(x)
        if len(inputs) == 1:
            torch.bmm(first, inputs[0], out=space.first_sums)
        else:
            if first is not self._first:
                self._first, self._first_chunks = first, split_terms(first, 2)
            chunked_matmul(self._first_chunks, inputs, out=space.first_sums)
        if self._skip:
            torch.add(
                space.first_sums[:, : self.biases[0].shape[1]], self._bias_columns[0], out=space.sums[0]
            )
        else:
            space.first_sums.add_(self._bias_columns[0])
        if not upper:
            return
        drawn = [self.draw_dropout(a) for a in space.activations] if dropout and self.shape.dropout else []
        space.forward(self.matrices, self._bias_columns[1:], drawn)
        if self._skip:
            space.sums[-1].add_(space.first_sums[:, self.biases[0].shape[1] :])

    def _differentiate(
        self,
        first: Tensor,
        x: Tensor,
        batch: Batch,
        dropout: bool,
        input_grads: Tensor | None,
        space: Workspace,
    ) -> None:
        self._forward(first, x, space, dropout)
        y, w, row_share = batch.y, batch.w, 1 / x.shape[1]
        if space.sliced:
            x, y = x[:, space.rows], y[:, space.rows]
            w, input_grads = (None if t is None else t[:, space.rows] for t in (w, input_grads))
        out_delta = self.loss_function.grad(space.sums[-1].mT, y).mT
        out_delta.mul_(row_share if w is None else (w * row_share).unsqueeze(1))
        delta = space.backward(out_delta, self.matrices, *space.upper_grads)
        space.matmul(torch.cat([delta, out_delta], 1) if self._skip else delta, x, out=space.grads[0])
        if input_grads is not None and input_grads.shape[2]:
            torch.bmm(delta.mT, first[:, :, -input_grads.shape[2] :], out=input_grads)

    def _run(self, functions: list[partial[None]]) -> None:
        # With dropout, the order of the slices is that of their random draws.
        (WorkerPool(1) if self.shape.dropout else self.pool).run(functions)

    def _spaces(self, x: Tensor) -> list[Workspace]:
        """One workspace per slice."""
        if x.shape[1] not in self._workspaces:
            # The first is that of CUDA graphs; the last batch of a pass is smaller.
            if len(self._workspaces) > 2:
                self._workspaces.popitem()
            grads = [self.first_grad, *self.grads]
            slices = split_batch(x.shape[1], x.device, self.loss_function.coupled)
            self._workspaces[x.shape[1]] = [
                Workspace(rows, x, self.shape, grads, skip=self._skip) for rows in slices
            ]
        return self._workspaces[x.shape[1]]

    def draw_dropout(self, like: Tensor) -> Tensor:
        """Factors of inverted dropout, each model's from its own generator: other models change nothing."""
        keep = 1 - self.shape.dropout
        draws = [torch.empty(like.shape[1:]).bernoulli_(keep, generator=g) for g in self._generators]
        return torch.stack(draws).to(like.device) / keep
