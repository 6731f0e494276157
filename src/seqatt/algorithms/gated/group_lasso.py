"""The group LASSO on the first layer, with one selection at the end or as Sequential LASSO.

A penalty shrinks the first-layer weights of each feature together; the features with the largest norms are selected.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, PenaltyOptions, register_gated
from seqatt.training.backend.matmul import matmul
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate, OpenGate
from seqatt.training.loaders.batch import Batch
from seqatt.training.reducer import Reducer
from seqatt.training.schedule import one_by_one
from seqatt.training.selection_state import FeatureState

MIN_NORM = 1e-30  # norms are divided by at least this: a group of zeros stays zero
AVERAGE_RATE = 1 / 32  # of the moving average of norms by which features are compared: single norms fluctuate


class HasFirstLayer(Protocol):
    """What the gate needs of a model: its first layer."""

    def first_layer(self) -> Tensor: ...

    def scale_first_layer(self, factors: Tensor) -> None: ...


class GroupLassoGate(OpenGate):
    """Adds ``penalty * sum_f sqrt(size_f) * ||W_f||`` to the loss, a sum over the unselected features f.

    W_f are the first-layer weights of f, and size_f is the number of hidden units times that of f's input columns. Each
    step of the optimizer is followed by a proximal step of the penalty, which shortens every W_f by
    ``learning_rate * penalty * sqrt(size_f)``, at most to zero. A step of Adam moves a weight by at most the learning
    rate, so a penalty of 1 undoes a whole step.

    Large embeddings could make up for small weights. If there are embeddings, the penalty of f is therefore multiplied
    by the root mean square of f's columns together, but at least by 1, the value of standardised numbers, and the
    score of f by that root mean square.
    """

    def __init__(
        self,
        model: HasFirstLayer,
        columns: FeatureColumns,
        penalty: Tensor,
        scale: Tensor,
        learning_rate: float,
        *,
        embedded: bool = False,
        reducer: Reducer | None = None,
    ) -> None:
        """``penalty`` (T,) has one strength per model; ``scale`` (d,) is the root of each feature's input columns."""
        layer = model.first_layer()
        self._model = model
        self._columns = columns
        self._shrinkage = learning_rate * math.sqrt(layer.shape[1]) * penalty[:, None] * scale
        self.weights = torch.ones(len(layer), columns.features, device=layer.device)
        self._mean_norms = torch.zeros_like(self.weights)
        self._mean_squares = torch.ones_like(self.weights) if embedded else None
        self._reducer = reducer or Reducer()
        self._ones = torch.ones(len(layer), 1, layer.shape[1], device=layer.device)
        self._sums = torch.empty(len(layer), 1, layer.shape[2], device=layer.device)

    def is_thread_invariant(self) -> bool:
        return True  # squares, and sums by matmul, which does not depend on the number of threads

    def observe(self, batch: Batch, state: FeatureState) -> None:
        if self._mean_squares is None:
            return
        squares = self._columns.to_features(batch.x.square().mean(1))
        self._reducer.average([squares], batch.x.shape[1])
        self._mean_squares.lerp_(squares, AVERAGE_RATE)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        shrinkage = self._shrinkage * (1 - state.selected)
        norms = self.norms()
        if self._mean_squares is None:
            factors = (1 - shrinkage / norms.clamp_min(MIN_NORM)).clamp_min_(0)
        else:
            scale = self._mean_squares.sqrt()
            factors = (1 - shrinkage * scale.clamp_min(1) / norms.clamp_min(MIN_NORM)).clamp_min_(0)
            norms.mul_(scale)
        self._model.scale_first_layer(self._columns.to_columns(factors))
        self._mean_norms.lerp_(norms.mul_(factors), AVERAGE_RATE)

    def scores(self) -> Tensor:
        return self._mean_norms

    def norms(self) -> Tensor:
        """The norm (T, d) of each feature's first-layer weights."""
        matmul(self._ones, self._model.first_layer().square(), out=self._sums)
        return self._columns.to_features(self._sums[:, 0].clone()).sqrt_()


def _strengths(k: int) -> tuple[float, ...]:
    """Strengths to choose from; 1 undoes a whole step of Adam."""
    return (0.25, 0.5, 1.0, 2.0)


@register_gated(
    "sequential_lasso",
    title="Sequential LASSO",
    summary="a group LASSO on the first layer; one feature is selected per phase",
    options=PenaltyOptions,
    schedule=one_by_one,
    penalties=_strengths,
)
@register_gated(
    "group_lasso",
    title="Group LASSO",
    summary="a group LASSO on the first layer; all features are selected at the end",
    options=PenaltyOptions,
    penalties=_strengths,
)
def make_gate(context: GateContext) -> Gate:
    learning_rate = context.options.learning_rate
    return GroupLassoGate(
        context.model,
        context.columns,
        context.penalty,
        context.scale,
        learning_rate,
        embedded=context.embedded,
        reducer=context.reducer,
    )
