"""From features to the columns they own, and back."""

from __future__ import annotations

import torch
from torch import Tensor


class FeatureColumns:
    """``feature_of[c]`` is the feature of column c; columns of a feature stand side by side."""

    def __init__(self, feature_of: Tensor, features: int) -> None:
        self.features = features
        self.columns = len(feature_of)
        self._feature_of = feature_of
        self._plain = bool((feature_of == torch.arange(len(feature_of), device=feature_of.device)).all())

    def to_columns(self, features: Tensor) -> Tensor:
        """From features (T, d) to the columns they own (T, c)."""
        return features if self._plain else features.index_select(1, self._feature_of)

    def to_features(self, columns: Tensor) -> Tensor:
        """From columns (T, c) to their sums by feature (T, d)."""
        if self._plain:
            return columns
        features = columns.new_zeros(columns.shape[0], self.features)
        return features.index_add_(1, self._feature_of, columns)

    def members(self) -> tuple[Tensor, Tensor]:
        """Each feature's columns (d, p), padded to a common p, and 0 where there is only padding."""
        feature_of = self._feature_of
        counts = torch.bincount(feature_of, minlength=self.features)
        slot = (
            torch.arange(len(feature_of), device=feature_of.device) - (counts.cumsum(0) - counts)[feature_of]
        )
        columns = feature_of.new_zeros(self.features, int(counts.max()))
        live = torch.zeros(columns.shape, device=feature_of.device)
        columns[feature_of, slot] = torch.arange(len(feature_of), device=feature_of.device)
        live[feature_of, slot] = 1.0
        return columns, live
