"""MLPs without the matrix of their first layer, for methods that compute that matrix themselves.

They return its gradient and those of all other parameters. With ``skip``, the matrix has one more row per
output, and the products of these rows with the inputs are added to the outputs: one matrix product computes
the first layer and the skip connection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE, chunked_matmul, matmul, split_terms
from seqatt.training.batch import Batch
from seqatt.training.models.activations import ACTIVATIONS
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.losses import LOSSES
from seqatt.training.models.model import weighted_mean


def init_linear(outs: int, ins: int, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """torch.nn.Linear's own initialisation for T models: weights (T, outs, ins) and biases (T, outs)."""
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
    """``params`` holds the trained parameters: the matrices above the first layer, then all biases."""

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
        """Whether every number is the same with any number of threads; see ``MLP.is_thread_invariant``."""
        exponential_widths = () if self._shape.activation == "relu" else self._shape.hidden
        return batch_size * max((self._shape.outputs, *exponential_widths)) <= PARALLEL_SIZE

    def outputs(self, first: Tensor, x: Tensor) -> Tensor:
        """Outputs (T, B, o) for inputs (T, B, c) and a first layer (T, h, c); changes nothing."""
        return self._forward(first, x)[1].mT

    def loss(self, out: Tensor, batch: Batch) -> Tensor:
        """The mean loss (T,) of outputs (T, B, o)."""
        return weighted_mean(self._loss.per_row(out, batch.y), batch.w)

    def gradients(self, first: Tensor, batch: Batch) -> tuple[Tensor, list[Tensor], Tensor]:
        """Gradients of the mean loss with respect to the first matrix and to ``params``, and the outputs."""
        x, w = batch.x, batch.w
        layers, sums = self._forward(first, x)
        out = sums.mT
        delta = self._loss.grad(out, batch.y).mT / x.shape[1]
        delta = delta if w is None else delta * w.unsqueeze(1)
        out_delta, matrix_grads, bias_grads = delta, [], [delta.sum(2)]
        for matrix, (sums, activations) in zip(reversed(self._matrices), reversed(layers), strict=True):
            matrix_grads.append(matmul(delta, activations.mT, out=torch.empty_like(matrix)))
            delta = matmul(matrix.mT, delta, out=torch.empty_like(activations))
            delta = self._activation.backward(delta, sums, activations)
            bias_grads.append(delta.sum(2))
        first_delta = torch.cat([delta, out_delta], 1) if self._skip else delta
        first_grad = matmul(first_delta, x, out=torch.empty_like(first))
        return first_grad, matrix_grads[::-1] + bias_grads[::-1], out

    def _forward(self, first: Tensor, x: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Pre-activations and activations of each hidden layer, and the transposed outputs (T, o, B)."""
        sums = x.new_empty(len(first), first.shape[1], x.shape[1])
        chunked_matmul(split_terms(first, 2), split_terms(x.mT, 1), out=sums)
        width = self._biases[0].shape[1]
        skipped, sums = sums[:, width:], sums[:, :width] + self._biases[0].unsqueeze(2)
        layers = []
        for matrix, bias in zip(self._matrices, self._biases[1:], strict=True):
            activations = self._activation.forward(sums, torch.empty_like(sums))
            layers.append((sums, activations))
            sums = x.new_empty(len(first), matrix.shape[1], x.shape[1])
            matmul(matrix, activations, out=sums).add_(bias.unsqueeze(2))
        if self._skip:
            sums = sums + skipped
        return layers, sums
