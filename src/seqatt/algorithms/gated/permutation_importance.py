"""Permutation importance (Breiman 2001; Fisher, Rudin and Dominici 2019) of the built-in network.

A network is trained on all features. The importance of a feature is the mean increase of the loss when its values are
permuted among the rows, which breaks their relation to the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate, OpenGate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import Model
from seqatt.training.selection_state import FeatureState


class PermutationGate(OpenGate):
    """Every feature enters with weight 1; the score of a feature is the increase of the loss when it is permuted."""

    scoring_rows = 2048

    def __init__(
        self,
        model: Model,
        columns: FeatureColumns,
        n_repeats: int,
        generators: Sequence[torch.Generator],
        device: torch.device,
    ) -> None:
        self._model = model
        self._columns = columns
        self._n_repeats = n_repeats
        self._generators = list(generators)
        self.weights = torch.ones(len(generators), columns.features, device=device)
        self._importance = torch.zeros_like(self.weights)

    def is_thread_invariant(self) -> bool:
        return True  # the steps and the losses are the model's

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        column_weights = self._columns.to_columns(self.weights)
        total, rows = torch.zeros_like(self._importance), 0
        for batch in batches:
            count = batch.x.shape[1]
            loss = self._model.loss(batch, column_weights)
            for _ in range(self._n_repeats):
                shuffled = self._permute_rows(batch.x)
                for feature in range(self._columns.features):
                    one = torch.zeros_like(self.weights)
                    one[:, feature] = 1
                    permuted = self._columns.to_columns(one).bool().unsqueeze(1)  # the columns of the feature
                    x = torch.where(permuted, shuffled, batch.x)
                    total[:, feature] += (
                        self._model.loss(Batch(x, batch.y, batch.w), column_weights) - loss
                    ) * count
            rows += count * self._n_repeats
        self._importance.copy_(total / rows)

    def scores(self) -> Tensor:
        return self._importance

    def _permute_rows(self, x: Tensor) -> Tensor:
        """The rows (T, B, c) of each model in a random order of its own."""
        orders = [torch.randperm(x.shape[1], generator=generator) for generator in self._generators]
        index = torch.stack(orders).to(x.device).unsqueeze(2)
        return x.gather(1, index.expand_as(x))


@register_gated("permutation_importance", weight_decay=True)
def make_gate(context: GateContext) -> Gate:
    n_repeats, device = context.options.n_repeats, context.penalty.device
    return PermutationGate(context.model, context.columns, n_repeats, context.generators, device)
