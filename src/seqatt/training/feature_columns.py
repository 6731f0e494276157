"""The mapping between features and their encoded columns."""

from __future__ import annotations

import torch
from torch import Tensor


class FeatureColumns:
    """``feature_of[c]`` is the feature of column c."""

    def __init__(self, feature_of: Tensor, features: int) -> None:
        self.features = features
        self.columns = len(feature_of)
        self._feature_of = feature_of
        self._is_identity = bool(
            (feature_of == torch.arange(len(feature_of), device=feature_of.device)).all()
        )

    def to_columns(self, features: Tensor) -> Tensor:
        """Repeat values per feature (T, d) for the columns of each feature (T, c)."""
        return features if self._is_identity else features.index_select(1, self._feature_of)

    def to_features(self, columns: Tensor) -> Tensor:
        """Sum values per column (T, c) over the columns of each feature (T, d)."""
        if self._is_identity:
            return columns
        features = columns.new_zeros(columns.shape[0], self.features)
        return features.index_add_(1, self._feature_of, columns)

    def padded_columns(self) -> tuple[Tensor, Tensor]:
        """Column numbers of each feature, padded to (d, p), and a (d, p) mask: 1 for columns, 0 for padding.

        p is the largest number of columns of any feature.
        """
        feature_of, order = torch.sort(self._feature_of, stable=True)
        counts = torch.bincount(feature_of, minlength=self.features)
        slot = (
            torch.arange(len(feature_of), device=feature_of.device) - (counts.cumsum(0) - counts)[feature_of]
        )
        columns = feature_of.new_zeros(self.features, int(counts.max()))
        valid = torch.zeros(columns.shape, device=feature_of.device)
        columns[feature_of, slot] = order
        valid[feature_of, slot] = 1.0
        return columns, valid
