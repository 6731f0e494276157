"""Forward and backward pass through the layers of T MLPs above the first, written out.

Activations are stored as (T, width, B), one column per row of the batch: then the batch is the long side of every
product, whatever the width, which is what matrix products on a CPU are fast at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from seqatt.training.models.architecture import ACTIVATIONS, MLPShape

Tensors = Sequence[Tensor]  # one per layer


def init_linear(outs: int, ins: int, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """torch.nn.Linear's own initialisation for T models: weights (T, outs, ins) and biases (T, outs)."""
    bound = 1 / math.sqrt(ins)
    sizes = (outs, ins), (outs,)
    drawn = [[torch.empty(size).uniform_(-bound, bound, generator=g) for size in sizes] for g in generators]
    return torch.stack([weight for weight, _ in drawn]), torch.stack([bias for _, bias in drawn])


class Backpropagation:
    """Both passes of a batch, or of a slice of it, in buffers (T, width, B) that ``new(width)`` makes.

    ``sums`` are the pre-activations of each layer; the caller computes those of the first, and its gradients.
    ``activations`` are those of the hidden layers, and ``deltas`` the gradients of their sums. With ``ones``, the
    inputs of the layers above the first end with a row of ones, whose weights are the biases. ``matmul`` writes a
    product into ``out``.
    """

    def __init__(
        self, shape: MLPShape, new: Callable[[int], Tensor], matmul: Callable[..., Any], *, ones: bool = False
    ) -> None:
        self._activation, self.matmul = ACTIVATIONS[shape.activation], matmul
        hidden = shape.hidden
        self._buffers = [new(width + ones) for width in hidden]
        self.activations = [buffer[:, :width] for buffer, width in zip(self._buffers, hidden, strict=True)]
        for buffer, width in zip(self._buffers, hidden, strict=True):
            buffer[:, width:] = 1  # the row of ones, if there is one
        sums = self.activations if self._activation.in_place else [new(width) for width in hidden]
        self.sums = [*sums, new(shape.outputs)]
        self.deltas = [new(width) for width in hidden]
        self._inputs: list[Tensor] = []  # of each layer above the first: the buffers, after dropout
        self._dropout: Tensors = ()  # factors

    def forward(self, matrices: Tensors, biases: Tensors = (), dropout: Tensors = ()) -> None:
        """From ``sums[0]`` to the outputs, ``sums[-1]``, with biases (T, width, 1) and factors of ``dropout``."""
        self._inputs, self._dropout = [], dropout
        for layer, matrix in enumerate(matrices):
            self._activation.forward(self.sums[layer], self.activations[layer])
            buffer = self._buffers[layer]
            self._inputs.append(buffer * dropout[layer] if dropout else buffer)
            sums = self.matmul(matrix, self._inputs[layer], out=self.sums[layer + 1])
            if biases:
                sums.add_(biases[layer])

    def backward(self, delta: Tensor, matrices: Tensors, grads: Tensors, bias_grads: Tensors = ()) -> Tensor:
        """From the gradient ``delta`` (T, o, B) of the outputs to that of ``sums[0]``, which it returns.

        ``matrices`` are those of ``forward`` without the weights of ones. The gradients of all their weights are
        written into ``grads``, and those of the biases of every layer, the first too, into ``bias_grads``.
        """
        for layer in range(len(matrices) - 1, -1, -1):
            self.matmul(delta, self._inputs[layer].mT, out=grads[layer])
            if bias_grads:
                torch.sum(delta, 2, out=bias_grads[layer + 1])
            delta = self.matmul(matrices[layer].mT, delta, out=self.deltas[layer])
            if self._dropout:
                delta.mul_(self._dropout[layer])
            self._activation.backward(delta, self.sums[layer], self.activations[layer])
        if bias_grads:
            torch.sum(delta, 2, out=bias_grads[0])
        return delta
