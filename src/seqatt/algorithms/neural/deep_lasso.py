"""Deep Lasso (Cherepanova et al. 2023): how far the loss feels each input."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import OpenGate
from seqatt.training.models.model import Model
from seqatt.training.selection_state import SelectionState

SMOOTH = 1e-8  # under the root, which has no gradient at zero


class DeepLassoGate(OpenGate):
    """``sqrt(mean over rows of ||gradient of the row's loss by x_f||^2)``: of each feature f its score.

    Their sum, ``penalty`` times, is added to the loss.
    """

    scoring_rows = 2048
    graph_capturable = False  # autograd works on threads of its own

    def __init__(self, model: Model, feature_of: FeatureColumns, penalty: Tensor) -> None:
        """``penalty`` (T,) is each model's."""
        self._model = model
        self._feature_of = feature_of
        self._penalty = penalty
        self.weights = torch.ones(len(penalty), feature_of.features, device=penalty.device)
        self._still = torch.zeros(len(penalty), feature_of.columns, device=penalty.device)
        self._felt = torch.zeros_like(self.weights)

    def train(self, model: Model, batch: Batch, weights: Tensor) -> Tensor:
        model.train_step_with_penalty(batch, weights, self.penalise)
        return self._still

    def penalise(self, gradients: Tensor) -> Tensor:
        squares = self._feature_of.to_features(gradients.square().mean(1))
        return self._penalty * (squares + SMOOTH).sqrt().sum(1)

    def score_rows(self, batches: Iterable[Batch], state: SelectionState) -> None:
        total, rows = torch.zeros_like(self._still), 0
        open_all = torch.ones_like(self._still)
        for batch in batches:
            gradients = self._model.input_gradients(batch, open_all)
            total += gradients.square().sum(1)
            rows += gradients.shape[1]
        self._felt.copy_(self._feature_of.to_features(total / rows).sqrt())

    def scores(self) -> Tensor:
        return self._felt
