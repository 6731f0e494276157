"""Contributions to the first layer's sums (Roy et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import OpenGate
from seqatt.training.models.model import Model
from seqatt.training.selection_state import SelectionState


class FirstLayerGate(OpenGate):
    """A feature's share of what reaches a hidden unit, ``|x_f w_uf|`` on the average row; of all units."""

    scoring_rows = 2048

    def __init__(self, model: Model, feature_of: FeatureColumns) -> None:
        layer = model.first_layer()
        self._model = model
        self._feature_of = feature_of
        self.weights = torch.ones(len(layer), feature_of.features, device=layer.device)
        self._shares = torch.zeros_like(self.weights)

    def score_rows(self, batches: Iterable[Batch], state: SelectionState) -> None:
        sums = [batch.x.abs().sum(1) for batch in batches]
        reach = self._model.first_layer().abs() * torch.stack(sums).sum(0).unsqueeze(1)
        shares = reach / reach.sum(2, keepdim=True).clamp_min(torch.finfo(reach.dtype).tiny)
        self._shares.copy_(self._feature_of.to_features(shares.sum(1)))

    def scores(self) -> Tensor:
        return self._shares
