"""T small networks in one tensor; the result of each does not depend on the others.

A product or an exponential may be computed by other instructions, with other last digits, at another address. So the
matrices of every network start at a multiple of 128 bytes and are followed by a gap: then torch computes them network
by network, by the same instructions for one network as for many. On one thread, a network trained beside others is
the network trained alone, bit for bit.

The biases are the weights of an input that is always 1: the last column of the inputs, and the last row of the
activations of each layer. So a step has fewer operations than in ``layers.py``; both are ``backpropagation.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.losses.table import make_loss
from seqatt.training.backend.adam import Adam
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.backpropagation import Backpropagation, init_linear
from seqatt.training.models.embeddings import Embeddings

ALIGNMENT = 32  # floats: the unit in which torch's elementwise operations are vectorised
WIDTH_STEP = 16  # of the widths of inputs: products of other widths are not faster


def padded_width(columns: int) -> int:
    """The width of the inputs of a network with so many columns, and one of ones; networks of one width train together.

    It depends on the columns of that network alone, because it has an influence on the last digits.
    """
    return -(-(columns + 1) // WIDTH_STEP) * WIDTH_STEP


def padded_rows(rows: int, width: int) -> int:
    """Rows of a buffer of inputs, such that those of every network are aligned."""
    return rows + rows * width % ALIGNMENT // WIDTH_STEP


def aligned_zeros(models: int, rows: int, columns: int) -> Tensor:
    """Zeros (T, rows, columns), each matrix aligned and followed by a gap."""
    return _views(torch.zeros(models, _space(rows * columns)), [(rows, columns)])[0]


def _space(cells: int) -> int:
    return (cells // ALIGNMENT + 1) * ALIGNMENT


def _views(flat: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Matrices (T, rows, columns) of these shapes, one after another in ``flat`` (T, cells)."""
    views, start = [], 0
    for rows, columns in shapes:
        views.append(flat.as_strided((len(flat), rows, columns), (flat.shape[1], columns, 1), start))
        start += _space(rows * columns)
    return views


class NetworkParameters(NamedTuple):
    """The parameters of one trained network.

    ``weights`` (outs, ins) and ``biases`` (outs,) have one tensor per layer; the inputs of the first layer are the
    columns, then the embeddings of each category. ``embeddings`` (codes, width) has one table per category.
    """

    weights: list[Tensor]
    biases: list[Tensor]
    embeddings: list[Tensor]


class Networks:
    """T networks of ``shape``, trained by Adam; the first ``columns[t]`` columns are the inputs of network t.

    Its other columns are zeros, and the last is ones. All networks have ``embeddings`` of the same categories, if any,
    which are further inputs.
    """

    def __init__(
        self,
        shape: MLPShape,
        columns: Sequence[int],
        task: str | Loss,
        generators: Sequence[torch.Generator],
        lr: float,
        embeddings: Embeddings | None,
    ) -> None:
        self._shape, self.width, self.models = shape, shape.columns, len(columns)
        self._embeddings, self._embedded = embeddings, 0 if embeddings is None else embeddings.columns
        self._loss_grad = make_loss(task, shape.label_smoothing).grad
        inputs = self.width + self._embedded
        shapes = [(shape.sizes[0][0], inputs), *((outs, ins + 1) for outs, ins in shape.sizes[1:])]
        cells = sum(_space(rows * columns) for rows, columns in shapes)
        params, grads = torch.zeros(self.models, cells), torch.zeros(self.models, cells)
        self._first, *self._upper = _views(params, shapes)
        self._upper_without_biases = [matrix[:, :, :-1] for matrix in self._upper]
        self._first_grad, *self._upper_grads = _views(grads, shapes)
        self._flat_grads = [grads]
        self._initial_lr, self._lr = lr, torch.tensor(lr)
        self._adam = Adam([params], self._lr)
        self._buffers: dict[int, _Buffers] = {}
        self._draw_weights(columns, generators)
        if embeddings is not None:
            embeddings.reset_parameters(generators)

    def _draw_weights(self, columns: Sequence[int], generators: Sequence[torch.Generator]) -> None:
        """torch.nn.Linear's own initialisation; the weights of padded inputs are 0 and stay so."""
        for first, count, generator in zip(self._first, columns, generators, strict=True):
            weight, bias = init_linear(len(first), count + self._embedded, [generator])
            first[:, :count] = weight[0, :, :count]
            first[:, self.width - 1] = bias[0]
            first[:, self.width :] = weight[0, :, count:]
        for matrix, size in zip(self._upper, self._shape.sizes[1:], strict=True):
            matrix[:, :, :-1], matrix[:, :, -1] = init_linear(*size, generators)

    def scale_learning_rate(self, factor: float) -> None:
        self._lr.fill_(self._initial_lr * factor)
        if self._embeddings is not None:
            self._embeddings.scale_learning_rate(factor)

    def inputs(self, rows: int) -> Tensor:
        """The buffer (T, padded_rows(B), width) of the inputs of a batch, without embeddings."""
        return self._buffer(rows).all_x

    def train_step(self, rows: int, y: Tensor, w: Tensor | None, codes: Tensor | None) -> None:
        """One step on the inputs in the buffer, with targets (T, B) or (T, B, o), weights (T, B), codes (T, B, m)."""
        buffer = self._buffer(rows)
        x = self._forward(buffer, codes)
        scale = 1 / rows if w is None else (w / rows).unsqueeze(1)
        out_delta = torch.mul(self._loss_grad(buffer.sums[-1].mT, y).mT, scale, out=buffer.out_delta)
        delta = buffer.backward(out_delta, self._upper_without_biases, self._upper_grads)
        torch.bmm(delta, x, out=self._first_grad)
        if self._embeddings is not None:
            embedding_weights = self._first[:, :, self.width :]
            self._embeddings.collect(torch.bmm(delta.mT, embedding_weights, out=buffer.embedding_grads))
        self._adam.step(self._flat_grads)
        if self._embeddings is not None:
            self._embeddings.step()

    def predict(self, rows: int, codes: Tensor | None) -> Tensor:
        """Outputs (T, B, o) for the inputs in the buffer."""
        buffer = self._buffer(rows)
        self._forward(buffer, codes)
        return buffer.sums[-1].mT

    def parameters(self, model: int, columns: int) -> NetworkParameters:
        """Copies of the parameters of a network with so many columns, without padding."""
        first, upper = self._first[model], [matrix[model] for matrix in self._upper]
        unpadded = torch.cat([first[:, :columns], first[:, self.width :]], dim=1)
        weights = [unpadded, *(matrix[:, :-1].clone() for matrix in upper)]
        biases = [first[:, self.width - 1].clone(), *(matrix[:, -1].clone() for matrix in upper)]
        tables = [] if self._embeddings is None else self._embeddings.tables(model)
        return NetworkParameters(weights, biases, tables)

    def release_buffers(self) -> None:
        self._buffers.clear()

    def finite(self) -> Tensor:
        """Whether all weights of each network (T,) are finite."""
        return torch.isfinite(self._adam.params[0]).all(1)

    def _forward(self, buffer: _Buffers, codes: Tensor | None) -> Tensor:
        x = buffer.x
        if self._embeddings is not None:
            assert codes is not None
            x = buffer.with_embeddings
            x[:, :, : self.width].copy_(buffer.x)
            x[:, :, self.width :].copy_(self._embeddings.lookup(codes))
        torch.bmm(self._first, x.mT, out=buffer.sums[0])
        buffer.forward(self._upper)
        return x

    def _buffer(self, rows: int) -> _Buffers:
        if rows not in self._buffers:
            self._buffers[rows] = _Buffers(self._shape, self.models, rows, self._embedded)
        return self._buffers[rows]


class _Buffers(Backpropagation):
    """Both passes of a batch of ``rows`` rows, with its inputs and the gradients of outputs and embeddings."""

    def __init__(self, shape: MLPShape, models: int, rows: int, embedded: int) -> None:
        super().__init__(shape, lambda width: aligned_zeros(models, width, rows), torch.bmm, ones=True)
        width = shape.columns
        # Without a gap, so that one operation can gather the rows of all networks.
        self.all_x = torch.zeros(models, padded_rows(rows, width), width)
        self.x = self.all_x[:, :rows]
        self.with_embeddings = aligned_zeros(models, rows, width + embedded) if embedded else self.x
        self.embedding_grads = aligned_zeros(models, rows, embedded)
        self.out_delta = aligned_zeros(models, shape.outputs, rows)
