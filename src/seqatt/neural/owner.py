"""From features to the columns they own, and back."""

from __future__ import annotations

import torch
from torch import Tensor


class Owner:
    """``owner[c]`` is the feature of column c; columns of a feature stand side by side."""

    def __init__(self, owner: Tensor, features: int) -> None:
        self.features = features
        self.columns = len(owner)
        self._owner = owner
        self._plain = bool((owner == torch.arange(len(owner), device=owner.device)).all())

    def widen(self, features: Tensor) -> Tensor:
        """From features (T, d) to the columns they own (T, c)."""
        return features if self._plain else features.index_select(1, self._owner)

    def narrow(self, columns: Tensor) -> Tensor:
        """From columns (T, c) to their sums by feature (T, d)."""
        if self._plain:
            return columns
        features = columns.new_zeros(columns.shape[0], self.features)
        return features.index_add_(1, self._owner, columns)

    def members(self) -> tuple[Tensor, Tensor]:
        """Each feature's columns (d, p), padded to a common p, and 0 where there is only padding."""
        owner = self._owner
        counts = torch.bincount(owner, minlength=self.features)
        slot = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
        columns = owner.new_zeros(self.features, int(counts.max()))
        live = torch.zeros(columns.shape, device=owner.device)
        columns[owner, slot] = torch.arange(len(owner), device=owner.device)
        live[owner, slot] = 1.0
        return columns, live
