"""The group LASSO on the first layer: all weights of a feature shrink together, and the longest stay."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from seqatt.training.backend.matmul import matmul
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import OpenGate
from seqatt.training.selection_state import SelectionState

SMALLEST = 1e-30  # length that a group is divided by: an empty one stays empty
AVERAGE_RATE = 1 / 32  # weight of a step in the lengths that are compared: near zero they come and go


class HasFirstLayer(Protocol):
    """What a LASSO asks of a model: its first layer, as ``Body`` has it."""

    def first_layer(self) -> Tensor: ...

    def shrink(self, factors: Tensor) -> None: ...


class GroupLassoGate(OpenGate):
    """``penalty * sum_f sqrt(size_f) * ||W_f||`` over the features not chosen, W_f f's first-layer weights.

    Each step of the optimizer is followed by the penalty's proximal step of the same size, which takes
    ``rate * penalty * sqrt(size_f)`` off the length of every W_f and leaves it at zero if that is all there
    is. A step of Adam moves a weight by the rate at most, so a penalty of 1 undoes a whole one.
    """

    def __init__(
        self, model: HasFirstLayer, feature_of: FeatureColumns, penalty: Tensor, scale: Tensor, rate: float
    ) -> None:
        """``penalty`` (T,) is each model's, ``scale`` (d,) the root of a feature's table columns."""
        layer = model.first_layer()
        self._model = model
        self._feature_of = feature_of
        self._bite = rate * math.sqrt(layer.shape[1]) * penalty[:, None] * scale
        self.weights = torch.ones(len(layer), feature_of.features, device=layer.device)
        self._lately = torch.zeros_like(self.weights)
        self._ones = torch.ones(len(layer), 1, layer.shape[1], device=layer.device)
        self._sums = torch.empty(len(layer), 1, layer.shape[2], device=layer.device)

    def is_thread_invariant(self) -> bool:
        return True  # squares, and sums by products that no number of threads changes

    def update(self, grad: Tensor, state: SelectionState) -> None:
        bite = self._bite * (1 - state.selected)
        lengths = self.lengths()
        left = (1 - bite / lengths.clamp_min(SMALLEST)).clamp_min_(0)
        self._model.shrink(self._feature_of.to_columns(left))
        self._lately.lerp_(lengths.mul_(left), AVERAGE_RATE)

    def scores(self) -> Tensor:
        return self._lately

    def lengths(self) -> Tensor:
        """The length of each feature's weights (T, d)."""
        matmul(self._ones, self._model.first_layer().square(), out=self._sums)
        return self._feature_of.to_features(self._sums[:, 0].clone()).sqrt_()
