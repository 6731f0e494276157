"""Forward and backward pass of an MLP on one slice of a batch, in preallocated memory.

On a CPU a batch is always cut at the same rows, each slice runs on one thread, and the gradients of the slices
are added in order. So the result does not depend on the number of threads, and the threads wait for each other
once per step. The threads of a BLAS library wait in every product, which is slow where other processes use a
core.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.models.activations import Activation
from seqatt.training.models.losses import Loss

MIN_SLICE_ROWS = 128  # rows per slice, at least
FULL_SPEED_ROWS = 512  # rows per slice from which on products do not get faster
MIN_SLICES = 2  # slices per batch, if each has MIN_SLICE_ROWS


def split_batch(rows: int, device: torch.device) -> list[slice]:
    """The slices of a batch of ``rows``; on a GPU one."""
    if device.type != "cpu":
        return [slice(0, rows)]
    count = max(1, min(rows // MIN_SLICE_ROWS, max(MIN_SLICES, rows // FULL_SPEED_ROWS)))
    return [slice(i * rows // count, (i + 1) * rows // count) for i in range(count)]


class BatchSlice:
    """One slice. ``grads`` holds the gradients of weights and bias, layer by layer; the first layer's are those
    of its scaled weights.
    """

    def __init__(self, rows: slice, layers: Sequence[tuple[Tensor, Tensor]], grads: list[Tensor]) -> None:
        self.rows = rows
        self.grads = grads
        self._layers = layers
        sizes = [(rows.stop - rows.start, len(bias)) for _, bias in layers]
        self._sums = [layers[0][0].new_empty(size) for size in sizes]
        self._activation_buffers = [torch.empty_like(sums) for sums in self._sums[:-1]]
        self._deltas = [torch.empty_like(sums) for sums in self._sums[:-1]]

    def differentiate(
        self,
        x: Tensor,
        y: Tensor,
        shares: Tensor,
        first: Tensor,
        loss: Loss,
        activation: Activation,
        columns: tuple[int, Tensor],
    ) -> Tensor:
        """The loss with row weights ``shares`` (1, B); ``first`` is the scaled first layer.

        ``columns`` is (c, out): the gradients of the inputs from column c on are written to ``out``.
        """
        activations = [x]
        for i, (matrix, bias) in enumerate(self._layers):
            torch.addmm(bias, activations[i], (matrix if i else first).t(), out=self._sums[i])
            if i + 1 < len(self._layers):
                activations.append(activation.forward(self._sums[i], self._activation_buffers[i]))
        out = self._sums[-1].unsqueeze(0)
        total = (loss.per_row(out, y) * shares).sum()
        delta = loss.grad(out, y)[0].mul_(shares.mT)
        for i in range(len(self._layers) - 1, -1, -1):
            torch.mm(delta.t(), activations[i], out=self.grads[2 * i])
            torch.sum(delta, 0, out=self.grads[2 * i + 1])
            if i:
                delta = torch.mm(delta, self._layers[i][0], out=self._deltas[i - 1])
                activation.backward(delta, self._sums[i - 1], activations[i])
        start, input_grads = columns
        if input_grads.shape[1]:
            torch.mm(delta, first[:, start:], out=input_grads)
        return total
