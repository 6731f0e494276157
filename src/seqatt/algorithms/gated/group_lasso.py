"""The group LASSO on the first layer, with one selection at the end or as Sequential LASSO.

A penalty shrinks the first-layer weights of each feature together; the features with the largest norms are selected.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.backend.matmul import matmul
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate, OpenGate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import Model
from seqatt.training.reducer import Reducer
from seqatt.training.schedule import Schedule, one_by_one
from seqatt.training.selection_state import FeatureState

MIN_NORM = 1e-18  # norms are divided by at least this, so that the gradient of a group of zeros is zero
AVERAGE_RATE = 1 / 32  # of the moving average of norms by which features are compared: single norms fluctuate
WARMUP = 0.1  # share of the steps before the first phase of Sequential LASSO


class GroupLassoGate(OpenGate):
    """Adds ``penalty * sum_f sqrt(columns_f) * ||W_f||`` to the loss, a sum over the unselected features f.

    W_f are the first-layer weights of f, and columns_f is the number of f's input columns. The gradient of the penalty,
    ``penalty * sqrt(columns_f) * W_f / ||W_f||``, is a weight decay of W_f by ``penalty * sqrt(columns_f) / ||W_f||``.
    It joins the gradient of the loss before the optimizer's step; where W_f is zero, it is zero.

    Large embeddings could make up for small weights. The penalty of a feature with an embedding is therefore multiplied
    by the root mean square of its columns together, but at least by 1, and its score by that root mean square.
    """

    def __init__(
        self,
        model: Model,
        columns: FeatureColumns,
        penalty: Tensor,
        scale: Tensor,
        embedded: Tensor | None,
        reducer: Reducer,
    ) -> None:
        """``penalty`` (T,) has one strength per model; ``scale`` (d,) is the root of each feature's input columns.

        ``embedded`` (d,) is 1 for the features that have an embedding, 0 for the others; None if no feature has one.
        """
        layer = model.first_layer()
        self._model = model
        self._columns = columns
        self._strengths = penalty[:, None] * scale
        self.weights = torch.ones(len(layer), columns.features, device=layer.device)
        self._mean_norms = torch.zeros_like(self.weights)
        self._decay = torch.zeros(len(layer), columns.columns, device=layer.device)
        model.first_layer_decay = self._decay
        self._embedded = embedded
        self._mean_squares = None if embedded is None else torch.ones_like(self.weights)
        self._reducer = reducer
        self._ones = torch.ones(len(layer), 1, layer.shape[1], device=layer.device)
        self._sums = torch.empty(len(layer), 1, layer.shape[2], device=layer.device)

    def is_thread_invariant(self) -> bool:
        return True  # squares, and sums by matmul, which does not depend on the number of threads

    def observe(self, batch: Batch, state: FeatureState) -> None:
        norms, strengths = self.norms(), self._strengths * (1 - state.selected)
        decay = strengths / norms.clamp_min(MIN_NORM)
        if self._mean_squares is not None and self._embedded is not None:
            squares = self._columns.to_features(batch.x.square().mean(1))
            squares = torch.lerp(torch.ones_like(squares), squares, self._embedded)
            self._reducer.average([squares], batch.x.shape[1])
            self._mean_squares.lerp_(squares, AVERAGE_RATE)
            size = self._mean_squares.sqrt()
            decay.mul_(size.clamp_min(1))
            norms.mul_(size)
        self._decay.copy_(self._columns.to_columns(decay))
        self._mean_norms.lerp_(norms, AVERAGE_RATE)

    def scores(self) -> Tensor:
        return self._mean_norms

    def reset(self) -> None:
        """End the penalty of this phase: a model that is trained on the selected features alone has none."""
        self._decay.zero_()

    def norms(self) -> Tensor:
        """The norm (T, d) of each feature's first-layer weights."""
        matmul(self._ones, self._model.first_layer().square(), out=self._sums)
        return self._columns.to_features(self._sums[:, 0].clone()).sqrt_()


def _one_by_one_after_warmup(k: int, steps: int) -> Schedule:
    """k phases, after ``WARMUP`` of the steps in which all features are penalised."""
    warmup = min(round(WARMUP * steps), steps - k)
    first, *later = one_by_one(k, steps - warmup)
    return (replace(first, steps=first.steps + warmup), *later)


def _strengths(k: int) -> tuple[float, ...]:
    """Strengths to choose from; the paper's is 0.01."""
    return (0.001, 0.003, 0.01, 0.03)


@register_gated("sequential_lasso", schedule=_one_by_one_after_warmup, penalties=_strengths)
@register_gated("group_lasso", penalties=_strengths)
def make_gate(context: GateContext) -> Gate:
    return GroupLassoGate(
        context.model,
        context.columns,
        context.penalty,
        context.scale,
        context.embedded,
        context.reducer,
    )
