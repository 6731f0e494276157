"""Attention that a small network pays to a batch as a whole (Liao, Latty, Yang 2021)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE, matmul
from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.masks import SoftmaxMask
from seqatt.training.models.adam import Adam
from seqatt.training.selection_state import SelectionState


class BatchAttentionGate(Gate):
    """``softmax(mean over the batch of W2 tanh(W1 x + b1) + b2)``, averaged over rows to score.

    The mean goes inside: ``W2`` meets the batch's mean activations, once.
    """

    scoring_rows = 2048

    def __init__(
        self,
        feature_of: FeatureColumns,
        width: int,
        rate: float,
        generators: Sequence[torch.Generator],
        device: torch.device,
    ) -> None:
        models = len(generators)
        sizes = [(width, feature_of.columns), (feature_of.features, width)]
        self._generators = list(generators)
        self.layers = [torch.zeros(models, *size, device=device) for size in sizes]
        self.biases = [torch.zeros(models, size[0], device=device) for size in sizes]
        self.weights = torch.full((models, feature_of.features), 1 / feature_of.features, device=device)
        self._params = self.layers + self.biases
        self._grads = [torch.zeros_like(p) for p in self._params]
        self._adam = Adam(self._params, torch.tensor(rate, device=device))
        self._mask = SoftmaxMask()
        self._mean = torch.zeros(models, width, device=device)
        self._seen = torch.zeros_like(self.weights)
        self._batch: tuple[Tensor, Tensor] | None = None
        self.reset()

    def is_thread_invariant(self) -> bool:
        return self.weights.numel() <= PARALLEL_SIZE

    def refresh(self, state: SelectionState) -> None:
        return

    def observe(self, batch: Batch, state: SelectionState) -> None:
        x = batch.x
        sums = x.new_empty(len(x), self._mean.shape[1], x.shape[1])
        active = matmul(self.layers[0], x.mT, out=sums).add_(self.biases[0].unsqueeze(2)).tanh_()
        torch.mean(active, 2, out=self._mean)
        self._share([self._mean], x.shape[1])
        logits = (self.layers[1] @ self._mean.unsqueeze(2)).squeeze(2).add_(self.biases[1])
        self._mask.weights(logits, state.blocked, out=self.weights)
        self._batch = x, active

    def update(self, grad: Tensor, state: SelectionState) -> None:
        assert self._batch is not None
        x, active = self._batch
        flow = self._mask.pull(grad, self.weights, self.weights)
        lower, upper, lower_bias, upper_bias = self._grads
        torch.mul(flow.unsqueeze(2), self._mean.unsqueeze(1), out=upper)
        upper_bias.copy_(flow)
        back = (self.layers[1].mT @ flow.unsqueeze(2)) / max(1, x.shape[1])
        delta = active.square_().neg_().add_(1).mul_(back)
        matmul(delta, x, out=lower)
        torch.sum(delta, 2, out=lower_bias)
        self._share([lower, lower_bias], x.shape[1])
        self._adam.step(self._grads)

    def _share(self, means: list[Tensor], rows: int) -> None:
        """A place to make means over a batch's rows, in place, those over a larger batch's."""

    def score_rows(self, batches: Iterable[Batch], state: SelectionState) -> None:
        total, rows = torch.zeros_like(self._seen), 0
        for batch in batches:
            self.observe(batch, state)
            total += self.weights * batch.x.shape[1]
            rows += batch.x.shape[1]
        self._seen.copy_(total / rows)

    def scores(self) -> Tensor:
        return self._seen

    def reset(self) -> None:
        """torch.nn.Linear's own initialisation."""
        for layer, bias in zip(self.layers, self.biases, strict=True):
            bound = 1 / math.sqrt(layer.shape[2])
            for t, generator in enumerate(self._generators):
                layer[t].copy_(torch.empty(layer.shape[1:]).uniform_(-bound, bound, generator=generator))
                bias[t].copy_(torch.empty(bias.shape[1:]).uniform_(-bound, bound, generator=generator))
        self._adam.forget()
