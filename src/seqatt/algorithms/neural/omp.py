"""Orthogonal Matching Pursuit for networks (paper, appendix B.2.2)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import OpenGate
from seqatt.training.models.model import Model
from seqatt.training.selection_state import SelectionState


class OMPGate(OpenGate):
    """The model sees the chosen features alone; the next is the one whose weights it would change most.

    That is the length of the loss's gradient with respect to a feature's first-layer weights, at zero. For a
    linear model with squared loss it is the correlation with the residual, so this is OMP.
    """

    scoring_rows = 4096

    def __init__(self, model: Model, feature_of: FeatureColumns, scale: Tensor) -> None:
        layer = model.first_layer()
        self._model = model
        self._feature_of = feature_of
        self._scale = scale
        self.weights = torch.ones(len(layer), feature_of.features, device=layer.device)
        self._lengths = torch.zeros_like(self.weights)

    def is_thread_invariant(self) -> bool:
        return True  # steps are the body's own, and what is summed here is summed on one thread

    def score_rows(self, batches: Iterable[Batch], state: SelectionState) -> None:
        selected = self._feature_of.to_columns(state.selected)
        gradient, rows = torch.zeros_like(self._model.first_layer()), 0
        for batch in batches:
            count = batch.y.shape[1]
            gradient += self._model.first_layer_gradient(batch, selected) * count
            rows += count
        squares = self._feature_of.to_features((gradient / rows).square().sum(1))
        self._lengths.copy_(squares.sqrt() / self._scale)

    def scores(self) -> Tensor:
        return self._lengths
