"""Deep Lasso (Cherepanova et al. 2023): a penalty on the gradient of the loss with respect to each feature."""

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

EPSILON = 1e-8  # under the square root, which has no gradient at zero


class DeepLassoGate(OpenGate):
    """The score of feature f is ``sqrt(mean over rows of ||gradient of the row's loss with respect to x_f||^2)``.

    The sum of the scores, times ``penalty``, is added to the loss.
    """

    scoring_rows = 2048
    graph_capturable = False  # autograd runs on threads of its own

    def __init__(self, model: Model, columns: FeatureColumns, penalty: Tensor) -> None:
        """``penalty`` (T,) has one strength per model."""
        self._model = model
        self._columns = columns
        self._penalty = penalty
        self.weights = torch.ones(len(penalty), columns.features, device=penalty.device)
        self.gradient_penalty = self._penalise
        self._scores = torch.zeros_like(self.weights)

    def _penalise(self, gradients: Tensor) -> Tensor:
        squares = self._columns.to_features(gradients.square().mean(1))
        return self._penalty * (squares + EPSILON).sqrt().sum(1)

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        all_columns = torch.ones(len(self.weights), self._columns.columns, device=self.weights.device)
        total, rows = torch.zeros_like(all_columns), 0
        for batch in batches:
            gradients = self._model.input_gradients(batch, all_columns)
            total += gradients.square().sum(1)
            rows += gradients.shape[1]
        self._scores.copy_(self._columns.to_features(total / rows).sqrt())

    def scores(self) -> Tensor:
        return self._scores


@register_gated("deep_lasso", penalties=lambda k: (0.01, 0.03, 0.1, 0.3))
def make_gate(context: GateContext) -> Gate:
    return DeepLassoGate(context.model, context.columns, context.penalty)
