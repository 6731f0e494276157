"""The features selected so far, on the device as tensors of fixed shape, so that no phase changes a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

CONSTANT_SCORE = -1e300  # score of a constant feature, below that of any other feature


class FeatureState(NamedTuple):
    """What T models may see: which features are selected (1 or 0) and blocked (-inf or 0), both (T, d)."""

    selected: torch.Tensor
    blocked: torch.Tensor


class SelectionState:
    """The features that each trial has selected; ``order[t]`` lists those of trial t in order of selection.

    The models read them from ``selected`` (1 or 0) and ``blocked`` (0 or -inf), both (trials * repeats, d):
    one row per model, ``repeats`` models per trial. After ``use_features`` they have the columns of these alone.
    The features ``kept`` are selected from the start, stay first, and are never dropped.
    """

    def __init__(
        self,
        trials: int,
        constant: NDArray[np.bool_],
        device: torch.device,
        repeats: int = 1,
        kept: Sequence[int] = (),
    ) -> None:
        self._constant = constant
        self.kept = list(kept)
        self._repeats = repeats
        self._active: NDArray[np.int64] | None = None  # the features of the tensors, None if all
        self.order: list[list[int]] = [list(kept) for _ in range(trials)]
        self._dropped: list[list[int]] = [[] for _ in range(trials)]
        self.selected = torch.zeros(trials * repeats, len(constant), device=device)
        self.blocked = torch.zeros_like(self.selected)
        self._update_tensors()

    def of_models(self, models: slice) -> FeatureState:
        """The state of some models, as views that change with the selection."""
        return FeatureState(self.selected[models], self.blocked[models])

    def use_features(self, active: NDArray[np.int64]) -> None:
        """Make new tensors for these features alone, to which the selected ones belong."""
        self._active = active
        self.selected = self.selected.new_zeros(len(self.selected), len(active))
        self.blocked = torch.zeros_like(self.selected)
        self._update_tensors()

    def take(self, scores: NDArray[np.float64], count: int) -> list[list[int]]:
        """Select the ``count`` unselected features of each trial with the highest scores (trials, d).

        Ties go to the lowest index. Returns the features that each trial took.
        """
        key = np.where(self._constant, CONSTANT_SCORE, scores)
        for row, order in zip(key, self.order, strict=True):
            row[order] = -np.inf
        ranked = key.argmax(1)[:, None] if count == 1 else np.argsort(-key, axis=1, kind="stable")
        taken: list[list[int]] = ranked[:, :count].tolist()
        for order, features in zip(self.order, taken, strict=True):
            order.extend(features)
            # Stable: moves constant features to the end, but not those that are kept.
            order.sort(key=lambda f: bool(self._constant[f]) and f not in self.kept)
        self._update_tensors()
        return taken

    def drop(self, usefulness: NDArray[np.float64], count: int) -> list[list[int]]:
        """Remove the ``count`` least useful selected features of each trial.

        ``usefulness[t, i]`` is that of ``order[t][i]``. Constant features are removed first, those that are kept
        never. Returns the features that each trial dropped.
        """
        dropped = []
        for order, row in zip(self.order, usefulness, strict=True):
            key = np.where(self._constant[order], -np.inf, row)
            key[: len(self.kept)] = np.inf
            positions = np.argsort(key, kind="stable")[:count]
            features = [order[p] for p in positions]
            order[:] = [f for f in order if f not in features]
            dropped.append(features)
        for before, features in zip(self._dropped, dropped, strict=True):
            before[:] = [f for f in before if f not in features] + features
        self._update_tensors()
        return dropped

    def rank_unselected(self, trial: int, scores: NDArray[np.float64]) -> list[int]:
        """The unselected features of a trial, best first.

        Features that were selected once and then dropped come first, the last dropped first. The others
        follow by score (d,), ties by index; constant features come last.
        """
        selected = self.order[trial]
        dropped = [f for f in reversed(self._dropped[trial]) if f not in selected and not self._constant[f]]
        is_other = np.ones(len(scores), dtype=bool)
        is_other[selected + dropped] = False
        others = np.flatnonzero(is_other)
        ranked = np.lexsort((-scores[others], self._constant[others]))  # stable: ties by index
        return dropped + list(others[ranked].tolist())

    def candidates(self) -> NDArray[np.bool_]:
        """Which features (trials, d) can still be selected: neither selected nor constant."""
        candidates = np.tile(~self._constant, (len(self.order), 1))
        for row, order in zip(candidates, self.order, strict=True):
            row[order] = False
        return candidates

    def to_dict(self) -> dict[str, Any]:
        """A copy of the state for JSON."""
        return {
            "order": [list(order) for order in self.order],
            "dropped": [list(dropped) for dropped in self._dropped],
        }

    def load_dict(self, state: dict[str, Any]) -> None:
        for own, saved in zip((self.order, self._dropped), (state["order"], state["dropped"]), strict=True):
            for features, saved_features in zip(own, saved, strict=True):
                features[:] = saved_features
        self._update_tensors()

    def _update_tensors(self) -> None:
        selected = np.zeros((len(self.order), len(self._constant)), dtype=bool)
        for row, order in zip(selected, self.order, strict=True):
            row[order] = True
        blocked = selected | self._constant
        none_left = blocked.all(1)
        blocked[none_left] = selected[none_left]  # only constant features are left: unblock them
        self._copy_per_model(self.selected, selected)
        self._copy_per_model(self.blocked, np.where(blocked, -np.inf, 0.0))

    def _copy_per_model(self, models: torch.Tensor, trials: NDArray[Any]) -> None:
        own = trials if self._active is None else trials[:, self._active]
        models.copy_(torch.from_numpy(np.repeat(own, self._repeats, axis=0)))
