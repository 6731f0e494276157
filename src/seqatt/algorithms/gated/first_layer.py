"""Contributions to the first layer's activations (Roy et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate, OpenGate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import Model
from seqatt.training.selection_state import FeatureState


class FirstLayerGate(OpenGate):
    """The score of feature f is its share of ``sum_f |x_f w_uf|`` on an average row, summed over the hidden units u."""

    scoring_rows = 2048

    def __init__(self, model: Model, columns: FeatureColumns) -> None:
        layer = model.first_layer()
        self._model = model
        self._columns = columns
        self.weights = torch.ones(len(layer), columns.features, device=layer.device)
        self._shares = torch.zeros_like(self.weights)

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        sums = [batch.x.abs().sum(1) for batch in batches]
        contributions = self._model.first_layer().abs() * torch.stack(sums).sum(0).unsqueeze(1)
        tiny = torch.finfo(contributions.dtype).tiny
        shares = contributions / contributions.sum(2, keepdim=True).clamp_min(tiny)
        self._shares.copy_(self._columns.to_features(shares.sum(1)))

    def scores(self) -> Tensor:
        return self._shares


@register_gated("first_layer", weight_decay=True)
def make_gate(context: GateContext) -> Gate:
    return FirstLayerGate(context.model, context.columns)
