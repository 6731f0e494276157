"""MLPs whose first layer's matrix is somebody else's: they give its gradient and train the rest.

For methods whose first layer is no plain matrix of weights. With ``skip`` the matrix has a row more for each
output, and what these rows make of the inputs is added to the outputs: one product serves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.batch import Batch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.losses import LOSSES
from seqatt.training.models.mlp import ACTIVATIONS
from seqatt.training.models.model import weighted_mean


def init_linear(outs: int, ins: int, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """torch.nn.Linear's own initialisation: a matrix and a bias for each of T models."""
    bound = 1 / math.sqrt(ins)
    drawn = [
        (
            torch.empty(outs, ins).uniform_(-bound, bound, generator=generator),
            torch.empty(outs).uniform_(-bound, bound, generator=generator),
        )
        for generator in generators
    ]
    return torch.stack([weight for weight, _ in drawn]), torch.stack([bias for _, bias in drawn])


class MLPTail:
    """``params`` are all that is trained here: biases, the first layer's too, and the upper matrices."""

    def __init__(
        self,
        shape: MLPShape,
        task: str,
        first_bias: Tensor,
        generators: Sequence[torch.Generator],
        device: torch.device,
        *,
        skip: bool = False,
    ) -> None:
        self._shape = shape
        self._skip = skip
        self._loss = LOSSES[task]
        self._activation = ACTIVATIONS[shape.activation]
        upper = [init_linear(outs, ins, generators) for outs, ins in shape.sizes[1:]]
        self._matrices = [matrix.to(device) for matrix, _ in upper]
        self._biases = [bias.to(device) for bias in (first_bias, *(bias for _, bias in upper))]
        self.params = self._matrices + self._biases

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether every number comes out the same on any number of threads, as in ``Stacked``."""
        curved = () if self._shape.activation == "relu" else self._shape.hidden
        return batch_size * max((self._shape.outputs, *curved)) <= PARALLEL_SIZE

    def outputs(self, first: Tensor, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for inputs (T, B, c), nothing changed."""
        return self._forward(first, x)[1].mT

    def loss(self, out: Tensor, batch: Batch) -> Tensor:
        """The mean loss (T,) of outputs."""
        return weighted_mean(self._loss.rows(out, batch.y), batch.w)

    def gradients(self, first: Tensor, batch: Batch) -> tuple[Tensor, list[Tensor], Tensor]:
        """Of the mean loss with respect to the first matrix and to ``params``; and the outputs it had."""
        x, w = batch.x, batch.w
        flows, sums = self._forward(first, x)
        out = sums.mT
        delta = self._loss.grad(out, batch.y).mT / x.shape[1]
        delta = delta if w is None else delta * w.unsqueeze(1)
        above, matrices, biases = delta, [], [delta.sum(2)]
        for matrix, (total, flow) in zip(reversed(self._matrices), reversed(flows), strict=True):
            matrices.append(matmul(delta, flow.mT, out=torch.empty_like(matrix)))
            delta = matmul(matrix.mT, delta, out=torch.empty_like(flow))
            delta = self._activation.backward(delta, total, flow)
            biases.append(delta.sum(2))
        outer = torch.cat([delta, above], 1) if self._skip else delta
        grad = matmul(outer, x, out=torch.empty_like(first))
        return grad, matrices[::-1] + biases[::-1], out

    def _forward(self, first: Tensor, x: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Each layer's sums and activations, then the outputs on their side (T, o, B)."""
        sums = x.new_empty(len(first), first.shape[1], x.shape[1])
        chunked_matmul(split_terms(first, 2), split_terms(x.mT, 1), out=sums)
        width = self._biases[0].shape[1]
        passed, sums = sums[:, width:], sums[:, :width] + self._biases[0].unsqueeze(2)
        flows = []
        for matrix, bias in zip(self._matrices, self._biases[1:], strict=True):
            flow = self._activation.forward(sums, torch.empty_like(sums))
            flows.append((sums, flow))
            sums = x.new_empty(len(first), matrix.shape[1], x.shape[1])
            matmul(matrix, flow, out=sums).add_(bias.unsqueeze(2))
        if self._skip:
            sums = sums + passed
        return flows, sums
