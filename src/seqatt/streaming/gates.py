"""Gates where features have embeddings and rows come once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqatt.algorithms.neural.batch_attention import BatchAttentionGate
from seqatt.algorithms.neural.group_lasso import AVERAGE_RATE, SMALLEST, GroupLassoGate, HasFirstLayer
from seqatt.streaming.allreduce import RankMeans
from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.masks import Mask
from seqatt.training.selection_state import SelectionState

CARRIED = 0.5  # of the logits, from one choice to the next
FADING = (0.9, 0.999)  # Adam's
TINY = 1e-12


class SharedScaleAttention(AttentionGate):
    """Sequential Attention whose logits share one scale.

    Adam divides each gradient by its own size, so that all features with a steady gradient rise alike, and
    those that matter most are not told from those that are learnt first. Here all are divided by their common
    root mean square. A phase has few steps, so half of what it found is carried to the next.
    """

    def __init__(self, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        super().__init__(1, features, mask, rate, device)
        self._mean = torch.zeros_like(self.logits)
        self._square = torch.zeros(1, 1, device=device)
        self._fading = torch.tensor(FADING, device=device)
        self._faded = torch.ones_like(self._fading)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        pulled = self.mask.pull(grad, self._shares, self.logits)
        self._mean.lerp_(pulled, 1 - FADING[0])
        self._square.lerp_(pulled.square().mean(1, keepdim=True), 1 - FADING[1])
        first, second = (1 - self._faded.mul_(self._fading)).unbind()
        pace = self._rate / (self._square / second).sqrt_().add_(TINY)
        self.logits.sub_(self._mean / first * pace)
        self.refresh(state)

    def reset(self) -> None:
        self.logits.mul_(CARRIED)
        self._mean.zero_()
        self._square.zero_()
        self._faded.fill_(1)


class EmbeddingGroupLasso(GroupLassoGate):
    """``penalty * sum_f sqrt(size_f) ||W_f|| s_f`` over the features not chosen, size_f the columns of f.

    A network could make up for small weights by large embeddings, so what W_f multiplies counts: s_f is the
    root of the mean square of f's columns together, but at least 1, which is what numbers have. Features are
    compared by the length of W_f times that root itself.
    """

    def __init__(
        self,
        network: HasFirstLayer,
        feature_of: FeatureColumns,
        penalty: float,
        rate: float,
        means: RankMeans,
    ) -> None:
        first = network.first_layer()
        columns = feature_of.to_features(torch.ones(1, feature_of.columns, device=first.device))[0]
        told = torch.tensor([penalty], device=first.device)
        super().__init__(network, feature_of, told, columns.sqrt(), rate)
        self._squares = torch.ones_like(self.weights)
        self._means = means

    def observe(self, batch: Batch, state: SelectionState) -> None:
        squares = self._feature_of.to_features(batch.x.square().mean(1))
        self._means.share([squares], batch.x.shape[1])
        self._squares.lerp_(squares, AVERAGE_RATE)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        size = self._squares.sqrt()
        lengths = self.lengths()
        bite = self._bite * size.clamp_min(1) * (1 - state.selected)
        left = (1 - bite / lengths.clamp_min(SMALLEST)).clamp_min_(0)
        self._model.shrink(self._feature_of.to_columns(left))
        self._lately.lerp_(lengths.mul_(left).mul_(size), AVERAGE_RATE)


class StreamedBatchAttention(BatchAttentionGate):
    """Scores are the weights of late, so that no row has to be seen again."""

    scoring_rows = 0

    def __init__(self, means: RankMeans, *about: Any) -> None:
        self._means = means
        super().__init__(*about)

    def _share(self, means: list[Tensor], rows: int) -> None:
        self._means.share(means, rows)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        super().update(grad, state)
        self._seen.lerp_(self.weights, AVERAGE_RATE)

    def reset(self) -> None:
        super().reset()
        self._seen.zero_()
