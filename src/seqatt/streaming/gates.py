"""Gates for training over files, where features have embeddings and each row is seen once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqatt.algorithms.gated.batch_attention import BatchAttentionGate
from seqatt.algorithms.gated.group_lasso import AVERAGE_RATE, MIN_NORM, GroupLassoGate, HasFirstLayer
from seqatt.streaming.allreduce import RankMeans
from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.masks import Mask
from seqatt.training.selection_state import SelectionState

CARRY_OVER = 0.5  # factor on the logits from one phase to the next
BETAS = (0.9, 0.999)  # decay rates of the running means, those of Adam
EPSILON = 1e-12  # added to the root mean square before dividing by it


class SharedScaleAttention(AttentionGate):
    """Sequential Attention whose logits share one scale.

    Adam divides each gradient by its own root mean square, so the logits of all features with a steady gradient
    rise equally, whether the feature matters much or is only learnt early. Here all gradients are divided by
    their common root mean square. A phase has few steps, so half of each logit is carried over to the next.
    """

    def __init__(self, features: int, mask: Mask, lr: float, device: torch.device) -> None:
        super().__init__(1, features, mask, lr, device)
        self._exp_avg = torch.zeros_like(self.logits)
        self._exp_avg_sq = torch.zeros(1, 1, device=device)
        self._betas = torch.tensor(BETAS, device=device)
        self._beta_powers = torch.ones_like(self._betas)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        logit_grad = self.mask.backward(grad, self._mask_weights, self.logits)
        self._exp_avg.lerp_(logit_grad, 1 - BETAS[0])
        self._exp_avg_sq.lerp_(logit_grad.square().mean(1, keepdim=True), 1 - BETAS[1])
        correction, correction_sq = (1 - self._beta_powers.mul_(self._betas)).unbind()
        step_size = self._lr / (self._exp_avg_sq / correction_sq).sqrt_().add_(EPSILON)
        self.logits.sub_(self._exp_avg / correction * step_size)
        self.refresh(state)

    def reset(self) -> None:
        self.logits.mul_(CARRY_OVER)
        self._exp_avg.zero_()
        self._exp_avg_sq.zero_()
        self._beta_powers.fill_(1)


class EmbeddingGroupLasso(GroupLassoGate):
    """Group LASSO: the penalty is ``penalty * sum_f sqrt(size_f) ||W_f|| s_f`` over the unselected features f.

    size_f is the number of columns of f and W_f their first-layer weights. Large embeddings could make up for
    small weights, so s_f is the root mean square of f's columns together, but at least 1, the value of
    standardised numbers. The score of a feature is ``||W_f||`` times that root mean square.
    """

    def __init__(
        self,
        network: HasFirstLayer,
        columns: FeatureColumns,
        penalty: float,
        learning_rate: float,
        means: RankMeans,
    ) -> None:
        first = network.first_layer()
        sizes = columns.to_features(torch.ones(1, columns.columns, device=first.device))[0]
        penalties = torch.tensor([penalty], device=first.device)
        super().__init__(network, columns, penalties, sizes.sqrt(), learning_rate)
        self._mean_squares = torch.ones_like(self.weights)
        self._means = means

    def observe(self, batch: Batch, state: SelectionState) -> None:
        squares = self._columns.to_features(batch.x.square().mean(1))
        self._means.allreduce([squares], batch.x.shape[1])
        self._mean_squares.lerp_(squares, AVERAGE_RATE)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        scale = self._mean_squares.sqrt()
        norms = self.norms()
        shrinkage = self._shrinkage * scale.clamp_min(1) * (1 - state.selected)
        factors = (1 - shrinkage / norms.clamp_min(MIN_NORM)).clamp_min_(0)
        self._model.scale_first_layer(self._columns.to_columns(factors))
        self._mean_norms.lerp_(norms.mul_(factors).mul_(scale), AVERAGE_RATE)


class StreamedBatchAttention(BatchAttentionGate):
    """Batch-wise attention whose scores are a running mean of the weights, so that no row is read again."""

    scoring_rows = 0

    def __init__(self, means: RankMeans, *arguments: Any) -> None:
        self._means = means
        super().__init__(*arguments)

    def _average_over_ranks(self, means: list[Tensor], rows: int) -> None:
        self._means.allreduce(means, rows)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        super().update(grad, state)
        self._mean_weights.lerp_(self.weights, AVERAGE_RATE)

    def reset(self) -> None:
        super().reset()
        self._mean_weights.zero_()
