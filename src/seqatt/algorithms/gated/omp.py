"""Orthogonal Matching Pursuit for networks (paper, appendix B.2.2)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate, OpenGate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import Model
from seqatt.training.schedule import one_by_one
from seqatt.training.selection_state import FeatureState


class OMPGate(OpenGate):
    """The score of a feature is the norm of the gradient of the loss with respect to its first-layer weights, at zero.

    The model sees the selected features only. For a linear model with squared loss the score is the correlation with
    the residual, so this is OMP.
    """

    scoring_rows = 4096

    def __init__(self, model: Model, columns: FeatureColumns, scale: Tensor) -> None:
        layer = model.first_layer()
        self._model = model
        self._columns = columns
        self._scale = scale
        self.weights = torch.ones(len(layer), columns.features, device=layer.device)
        self._norms = torch.zeros_like(self.weights)

    def is_thread_invariant(self) -> bool:
        return True  # the steps are the model's, and the sums here are computed on one thread

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        weights = self._columns.to_columns(state.selected)
        gradient, rows = torch.zeros_like(self._model.first_layer()), 0
        for batch in batches:
            count = batch.y.shape[1]
            gradient += self._model.first_layer_gradient(batch, weights) * count
            rows += count
        squares = self._columns.to_features((gradient / rows).square().sum(1))
        self._norms.copy_(squares.sqrt() / self._scale)

    def scores(self) -> Tensor:
        return self._norms


@register_gated("omp", schedule=partial(one_by_one, sees="selected"))
def make_gate(context: GateContext) -> Gate:
    return OMPGate(context.model, context.columns, context.scale)
