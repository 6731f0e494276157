"""Batch-wise attention (Liao, Latty and Yang 2021): a second network computes attention weights from the batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE, matmul
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.gates.masks import SoftmaxMask
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.raw_module import NEEDS_COLUMNS, RawModule
from seqatt.training.reducer import Reducer
from seqatt.training.selection_state import FeatureState


class BatchAttentionGate(Gate):
    """Weights ``softmax(mean over the batch of (W2 tanh(W1 x + b1) + b2))``; scores are their mean over many rows.

    The mean over the batch is computed before the product with W2, which gives the same and costs less.
    """

    scoring_rows = 2048

    def __init__(
        self,
        columns: FeatureColumns,
        width: int,
        learning_rate: float,
        generators: Sequence[torch.Generator],
        device: torch.device,
        reducer: Reducer,
    ) -> None:
        self._reducer = reducer
        models = len(generators)
        sizes = [(width, columns.columns), (columns.features, width)]
        self._generators = list(generators)
        self.layers = [torch.zeros(models, *size, device=device) for size in sizes]
        self.biases = [torch.zeros(models, size[0], device=device) for size in sizes]
        self.weights = torch.full((models, columns.features), 1 / columns.features, device=device)
        self._params = self.layers + self.biases
        self._grads = [torch.zeros_like(p) for p in self._params]
        self._adam = Adam(self._params, torch.tensor(learning_rate, device=device))
        self._mask = SoftmaxMask()
        self._hidden_mean = torch.zeros(models, width, device=device)
        self._mean_weights = torch.zeros_like(self.weights)
        self._batch: tuple[Tensor, Tensor] | None = None
        self.reset()

    def is_thread_invariant(self) -> bool:
        return self.weights.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        return

    def observe(self, batch: Batch, state: FeatureState) -> None:
        x = batch.x
        sums = x.new_empty(len(x), self._hidden_mean.shape[1], x.shape[1])
        hidden = matmul(self.layers[0], x.mT, out=sums).add_(self.biases[0].unsqueeze(2)).tanh_()
        torch.mean(hidden, 2, out=self._hidden_mean)
        self._reducer.average([self._hidden_mean], x.shape[1])
        logits = (self.layers[1] @ self._hidden_mean.unsqueeze(2)).squeeze(2).add_(self.biases[1])
        self._mask.weights(logits, state.blocked, out=self.weights)
        self._batch = x, hidden

    def update(self, grad: Tensor, state: FeatureState) -> None:
        assert self._batch is not None
        x, hidden = self._batch
        logits_grad = self._mask.backward(grad, self.weights, self.weights)
        first_grad, second_grad, first_bias_grad, second_bias_grad = self._grads
        torch.mul(logits_grad.unsqueeze(2), self._hidden_mean.unsqueeze(1), out=second_grad)
        second_bias_grad.copy_(logits_grad)
        hidden_grad = (self.layers[1].mT @ logits_grad.unsqueeze(2)) / max(1, x.shape[1])
        delta = hidden.square_().neg_().add_(1).mul_(hidden_grad)
        matmul(delta, x, out=first_grad)
        torch.sum(delta, 2, out=first_bias_grad)
        self._reducer.average([first_grad, first_bias_grad], x.shape[1])
        self._adam.step(self._grads)

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        total, rows = torch.zeros_like(self._mean_weights), 0
        for batch in batches:
            self._reducer.total = self._reducer.ranks * batch.x.shape[1]  # all ranks have the same rows
            self.observe(batch, state)
            total += self.weights * batch.x.shape[1]
            rows += batch.x.shape[1]
        self._mean_weights.copy_(total / rows)

    def scores(self) -> Tensor:
        return self._mean_weights

    def reset(self) -> None:
        """Initialise as torch.nn.Linear does."""
        for layer, bias in zip(self.layers, self.biases, strict=True):
            bound = 1 / math.sqrt(layer.shape[2])
            for t, generator in enumerate(self._generators):
                layer[t].copy_(torch.empty(layer.shape[1:]).uniform_(-bound, bound, generator=generator))
                bias[t].copy_(torch.empty(bias.shape[1:]).uniform_(-bound, bound, generator=generator))
        self._adam.reset()


@register_gated("batch_attention", weight_decay=True)
def make_gate(context: GateContext) -> Gate:
    options, device = context.options, context.penalty.device
    if isinstance(context.model, RawModule):
        raise ValueError(NEEDS_COLUMNS)
    return BatchAttentionGate(
        context.columns,
        options.attention_width,
        options.learning_rate,
        context.generators,
        device,
        context.reducer,
    )
