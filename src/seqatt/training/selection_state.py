"""The features selected so far, on the device as tensors of fixed shape, so that no phase changes a shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

CONSTANT_SCORE = -1e300  # score of a constant feature, below that of any other feature


@dataclass(frozen=True)
class Quotas:
    """Bounds on a selection of ``k`` features: ``least[q]`` to ``most[q]`` of those with ``quota_of[f] == q``.

    The last number q stands for the features in no quota; its bounds are 0 and the number of these features.

    While features are selected one by one, the bounds must still be reachable: with n of k features selected, the
    quotas may lack at most k - n features, and none may have more than it allows. A schedule that selects more than k
    and drops the surplus may exceed the bounds by as many features as it has to drop. As no feature is in two quotas,
    that is all there is to check: there is always a next feature (the sets that can be reached form a matroid).
    """

    quota_of: NDArray[np.int64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    k: int

    def takeable(self, selected: Sequence[int]) -> NDArray[np.bool_]:
        """Which features (d,) may be selected next; the selected ones, which never may, are not looked at."""
        counts = self._counts(selected)
        after = len(selected) + 1
        lacking, excess = self.lacking(selected), self._excess(counts)
        helps = counts < self.least
        exceeds = counts >= self.most
        possible = (lacking - helps <= max(0, self.k - after)) & (excess + exceeds <= max(0, after - self.k))
        return np.asarray(possible[self.quota_of])

    def droppable(self, selected: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the selected features may be dropped next, in their order."""
        counts = self._counts(selected)
        after = len(selected) - 1
        lacking, excess = self.lacking(selected), self._excess(counts)
        needed = counts <= self.least
        exceeds = counts > self.most
        possible = (lacking + needed <= max(0, self.k - after)) & (excess - exceeds <= max(0, after - self.k))
        return np.asarray(possible[self.quota_of[list(selected)]])

    def first(self, ranking: Iterable[int], kept: Sequence[int] = ()) -> list[int]:
        """The first k features of a ranking of all features that the quotas allow, after those that are ``kept``."""
        selected, allowed = list(kept), self.takeable(kept)
        for feature in ranking:
            if len(selected) == self.k:
                break
            if allowed[feature] and feature not in kept:
                selected.append(feature)
                allowed = self.takeable(selected)
        return selected

    def lacking(self, selected: Sequence[int]) -> int:
        """How many features the quotas still need beside those that are selected."""
        return int(np.maximum(0, self.least - self._counts(selected)).sum())

    def are_met(self, selected: Sequence[int]) -> bool:
        """Whether these features, however many they are, are within all bounds."""
        return self.lacking(selected) == 0 and self._excess(self._counts(selected)) == 0

    def _counts(self, selected: Sequence[int]) -> NDArray[np.int64]:
        return np.bincount(self.quota_of[list(selected)], minlength=len(self.least))

    def _excess(self, counts: NDArray[np.int64]) -> int:
        """How many features the quotas have too many."""
        return int(np.maximum(0, counts - self.most).sum())


class FeatureState(NamedTuple):
    """The features that T models may see: selected (1 or 0) and blocked (-inf or 0), both (T, d)."""

    selected: torch.Tensor
    blocked: torch.Tensor


class SelectionState:
    """The features that each trial has selected; ``order[t]`` lists those of trial t in order of selection.

    The models read them from ``selected`` (1 or 0) and ``blocked`` (0 or -inf), both (trials * repeats, d):
    one row per model, ``repeats`` models per trial. After ``use_features`` they have the columns of these alone.
    ``constant`` is (d,), or (trials, d) where trials see different rows.
    The features ``kept`` are selected from the start, stay first, and are never dropped. What ``quotas`` do not allow
    next is blocked.
    """

    def __init__(
        self,
        trials: int,
        constant: NDArray[np.bool_],
        device: torch.device,
        repeats: int = 1,
        kept: Sequence[int] = (),
        quotas: Quotas | None = None,
    ) -> None:
        self._constant = np.broadcast_to(constant, (trials, constant.shape[-1]))
        self._quotas = quotas
        self.kept = list(kept)
        self._repeats = repeats
        self._active: NDArray[np.int64] | None = None  # the features of the tensors, None if all
        self.order: list[list[int]] = [list(kept) for _ in range(trials)]
        self._dropped: list[list[int]] = [[] for _ in range(trials)]
        self._make_tensors(constant.shape[-1], device)

    def of_models(self, models: slice) -> FeatureState:
        """The state of some models, as views that change with the selection."""
        return FeatureState(self.selected[models], self.blocked[models])

    def use_features(self, active: NDArray[np.int64]) -> None:
        """Make new tensors for these features alone, to which the selected ones belong."""
        self._active = active
        self._make_tensors(len(active), self.selected.device)

    def take(self, scores: NDArray[np.float64], count: int) -> list[list[int]]:
        """Select the ``count`` unselected features of each trial with the highest scores (trials, d).

        Ties go to the lowest index. Returns the features that each trial took.
        """
        if self._quotas is not None and count > 1:
            # Each feature that is selected changes what is allowed next.
            one_by_one = [self.take(scores, 1) for _ in range(count)]
            return [[feature for (feature,) in trial] for trial in zip(*one_by_one, strict=True)]
        key = np.where(self._constant, CONSTANT_SCORE, scores)
        for row, order in zip(key, self.order, strict=True):
            row[order] = -np.inf
            if self._quotas is not None:
                row[~self._quotas.takeable(order)] = -np.inf
        ranked = key.argmax(1)[:, None] if count == 1 else np.argsort(-key, axis=1, kind="stable")
        taken: list[list[int]] = ranked[:, :count].tolist()
        for order, features, constant in zip(self.order, taken, self._constant, strict=True):
            order.extend(features)
            # Stable: moves constant features to the end, but not those that are kept.
            is_last = constant.copy()
            is_last[self.kept] = False
            order.sort(key=is_last.__getitem__)
        self._update_tensors()
        return taken

    def drop(self, usefulness: NDArray[np.float64]) -> list[int]:
        """Remove the least useful selected feature of each trial.

        ``usefulness[t, i]`` is that of ``order[t][i]``. Constant features are removed first, those that are kept
        never. Returns the feature that each trial dropped.
        """
        dropped = []
        for order, before, row, constant in zip(
            self.order, self._dropped, usefulness, self._constant, strict=True
        ):
            key = np.where(constant[order], -np.inf, row)
            if self._quotas is not None:
                key[~self._quotas.droppable(order)] = np.inf
            key[: len(self.kept)] = np.inf
            feature = order.pop(np.argsort(key, kind="stable")[0])  # unlike argmin, takes no NaN
            before[:] = [f for f in before if f != feature] + [feature]
            dropped.append(feature)
        self._update_tensors()
        return dropped

    def rank_unselected(self, trial: int, scores: NDArray[np.float64]) -> list[int]:
        """The unselected features of a trial, best first.

        Features that were selected once and then dropped come first, the last dropped first. The others
        follow by score (d,), ties by index; constant features come last.
        """
        selected, constant = self.order[trial], self._constant[trial]
        dropped = [f for f in reversed(self._dropped[trial]) if f not in selected and not constant[f]]
        is_other = np.ones(len(scores), dtype=bool)
        is_other[selected + dropped] = False
        never_selected = np.flatnonzero(is_other)
        ranked = np.lexsort((-scores[never_selected], constant[never_selected]))  # stable: ties by index
        return dropped + list(never_selected[ranked].tolist())

    def candidates(self) -> NDArray[np.bool_]:
        """Which features (trials, d) can be selected next: neither selected nor constant, and allowed by the quotas."""
        candidates = ~self._constant
        for row, order in zip(candidates, self.order, strict=True):
            row[order] = False
            if self._quotas is not None:
                row &= self._quotas.takeable(order)
        return candidates

    def to_dict(self) -> dict[str, Any]:
        """A copy of the state for JSON."""
        return {
            "order": [list(order) for order in self.order],
            "dropped": [list(dropped) for dropped in self._dropped],
        }

    def load_dict(self, state: dict[str, Any]) -> None:
        for trials, saved in ((self.order, state["order"]), (self._dropped, state["dropped"])):
            for features, saved_features in zip(trials, saved, strict=True):
                features[:] = saved_features
        self._update_tensors()

    def _make_tensors(self, features: int, device: torch.device) -> None:
        self._tensors = torch.zeros(2, len(self.order) * self._repeats, features, device=device)
        self.selected, self.blocked = self._tensors
        self._update_tensors()

    def _update_tensors(self) -> None:
        selected = np.zeros(self._constant.shape, dtype=bool)
        for row, order in zip(selected, self.order, strict=True):
            row[order] = True
        blocked = ~self.candidates()
        none_left = blocked.all(1)
        blocked[none_left] = selected[none_left]  # only constant features are left: unblock them
        both = np.stack([selected, np.where(blocked, -np.inf, 0.0)]).astype(np.float32)
        active = both if self._active is None else both[:, :, self._active]
        # Both in one copy, for which a GPU waits.
        self._tensors.copy_(torch.from_numpy(np.repeat(active, self._repeats, axis=1)))
