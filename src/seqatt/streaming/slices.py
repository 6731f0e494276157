"""A slice of a batch, through the layers of an MLP and back, in memory of its own.

A batch on a CPU is always cut at the same rows, each slice is one thread's work, and their gradients are
added in order. So an answer does not depend on the number of threads, and these wait for each other once a
step: a library's own threads do so in every product, and crawl where another process holds a core.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.models.losses import Loss
from seqatt.training.models.mlp import Activation

LEAST, ROWS = 128, 512  # rows of a slice: at least, and those with which products are as fast as they get
SLICES = 2  # as long as they are not longer than that


def split_batch(rows: int, device: torch.device) -> list[slice]:
    """Where a batch is cut; an accelerator's stays whole."""
    if device.type != "cpu":
        return [slice(0, rows)]
    count = max(1, min(rows // LEAST, max(SLICES, rows // ROWS)))
    return [slice(i * rows // count, (i + 1) * rows // count) for i in range(count)]


class BatchSlice:
    """``grads`` are those of matrix and bias, layer by layer; of the first as it is when scaled."""

    def __init__(self, rows: slice, layers: Sequence[tuple[Tensor, Tensor]], grads: list[Tensor]) -> None:
        self.rows = rows
        self.grads = grads
        self._layers = layers
        sizes = [(rows.stop - rows.start, len(bias)) for _, bias in layers]
        self._sums = [layers[0][0].new_empty(size) for size in sizes]
        self._spare = [torch.empty_like(sums) for sums in self._sums[:-1]]
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
        """The loss, each row weighed by its share (1, B); ``first`` is the first layer, scaled.

        The gradients of the inputs from some column on go where ``columns`` says.
        """
        active = [x]
        for i, (matrix, bias) in enumerate(self._layers):
            torch.addmm(bias, active[i], (matrix if i else first).t(), out=self._sums[i])
            if i + 1 < len(self._layers):
                active.append(activation.forward(self._sums[i], self._spare[i]))
        out = self._sums[-1].unsqueeze(0)
        total = (loss.rows(out, y) * shares).sum()
        delta = loss.grad(out, y)[0].mul_(shares.mT)
        for i in range(len(self._layers) - 1, -1, -1):
            torch.mm(delta.t(), active[i], out=self.grads[2 * i])
            torch.sum(delta, 0, out=self.grads[2 * i + 1])
            if i:
                delta = torch.mm(delta, self._layers[i][0], out=self._deltas[i - 1])
                activation.backward(delta, self._sums[i - 1], active[i])
        start, room = columns
        if room.shape[1]:
            torch.mm(delta, first[:, start:], out=room)
        return total
