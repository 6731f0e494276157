"""T small networks in one tensor, none of whose results depends on the others.

A product or an exponential may be computed by other instructions, with other last digits, at another address. So the
matrices of every network start at a multiple of 128 bytes and are followed by a gap: then torch computes them network
by network, by the same instructions for one network as for many. On one thread, a network trained beside others is
the network trained alone, bit for bit.

The biases are the weights of an input that is always 1: the last column of the inputs, and the last row of the
activations of each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.losses.table import make_loss
from seqatt.training.backend.adam import Adam
from seqatt.training.models.activations import ACTIVATIONS
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.embeddings import Embeddings
from seqatt.training.models.layers import init_linear

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
    """T networks of ``shape``, trained by Adam; of its columns, ``columns[t]`` are inputs of network t.

    The other columns are zeros, and the last is ones. All networks have ``embeddings`` of the same categories, if any,
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
        self.width, self.models = shape.columns, len(columns)
        self._embeddings, self._embedded = embeddings, 0 if embeddings is None else embeddings.columns
        self._activation = ACTIVATIONS[shape.activation]
        self._in_place = shape.activation == "relu"
        self._loss_grad = make_loss(task, shape.label_smoothing).grad
        self._outs = [outs for outs, _ in shape.sizes]
        inputs = self.width + self._embedded
        shapes = [(self._outs[0], inputs), *((outs, ins + 1) for outs, ins in shape.sizes[1:])]
        cells = sum(_space(rows * columns) for rows, columns in shapes)
        params, grads = torch.zeros(self.models, cells), torch.zeros(self.models, cells)
        self._weights, self._grads = _views(params, shapes), _views(grads, shapes)
        self._flat_grads = [grads]
        self._initial_lr, self._lr = lr, torch.tensor(lr)
        self._adam = Adam([params], self._lr)
        self._buffers: dict[int, _Buffers] = {}
        for model, (count, generator) in enumerate(zip(columns, generators, strict=True)):
            self._draw_weights(model, count, generator)
        if embeddings is not None:
            embeddings.reset_parameters(generators)

    def _draw_weights(self, model: int, columns: int, generator: torch.Generator) -> None:
        """torch.nn.Linear's own initialisation; the weights of padded inputs are 0 and stay so."""
        weight, bias = init_linear(self._outs[0], columns + self._embedded, [generator])
        first = self._weights[0][model]
        first[:, :columns] = weight[0, :, :columns]
        first[:, self.width - 1] = bias[0]
        first[:, self.width :] = weight[0, :, columns:]
        for matrix in self._weights[1:]:
            weight, bias = init_linear(matrix.shape[1], matrix.shape[2] - 1, [generator])
            matrix[model, :, :-1] = weight[0]
            matrix[model, :, -1] = bias[0]

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
        delta = torch.mul(self._loss_grad(buffer.sums[-1].mT, y).mT, scale, out=buffer.deltas[-1])
        for layer in range(len(self._weights) - 1, 0, -1):
            hidden = self._outs[layer - 1]
            torch.bmm(delta, buffer.activations[layer - 1].mT, out=self._grads[layer])
            matrix = self._weights[layer][:, :, :hidden]
            delta = torch.bmm(matrix.mT, delta, out=buffer.deltas[layer - 1])
            activations = buffer.activations[layer - 1][:, :hidden]
            self._activation.backward(delta, buffer.sums[layer - 1], activations)
        torch.bmm(delta, x, out=self._grads[0])
        if self._embeddings is not None:
            embedding_weights = self._weights[0][:, :, self.width :]
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
        first, *others = (matrix[model] for matrix in self._weights)
        own = torch.cat([first[:, :columns], first[:, self.width :]], dim=1)
        weights = [own, *(matrix[:, :-1].clone() for matrix in others)]
        biases = [first[:, self.width - 1].clone(), *(matrix[:, -1].clone() for matrix in others)]
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
        values = x.mT
        for layer, matrix in enumerate(self._weights):
            sums = torch.bmm(matrix, values, out=buffer.sums[layer])
            if layer < len(self._weights) - 1:
                self._activation.forward(sums, buffer.activations[layer][:, :-1])
                values = buffer.activations[layer]
        return x

    def _buffer(self, rows: int) -> _Buffers:
        if rows not in self._buffers:
            self._buffers[rows] = _Buffers(
                self.models, rows, self.width, self._embedded, self._outs, self._in_place
            )
        return self._buffers[rows]


class _Buffers:
    """Inputs, sums, activations and gradients of a batch of ``rows`` rows."""

    def __init__(
        self, models: int, rows: int, width: int, embedded: int, outs: Sequence[int], in_place: bool
    ) -> None:
        # Without a gap, so that one operation can gather the rows of all networks.
        self.all_x = torch.zeros(models, padded_rows(rows, width), width)
        self.x = self.all_x[:, :rows]
        self.with_embeddings = aligned_zeros(models, rows, width + embedded) if embedded else self.x
        self.embedding_grads = aligned_zeros(models, rows, embedded)
        self.activations = [aligned_zeros(models, out + 1, rows) for out in outs[:-1]]
        for activations in self.activations:
            activations[:, -1] = 1
        hidden = [
            a[:, :-1] if in_place else aligned_zeros(models, out, rows)
            for a, out in zip(self.activations, outs, strict=False)
        ]
        self.sums = [*hidden, aligned_zeros(models, outs[-1], rows)]
        self.deltas = [aligned_zeros(models, out, rows) for out in outs]
