"""What has been chosen so far. On the device as tensors, so that no phase changes a shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

CONSTANT = -1e300  # a score below any that a feature can earn


class SelectionState:
    """What each trial has chosen: ``order`` has the features as chosen.

    ``selected`` (1 or 0) and ``blocked`` (0 or -inf) say it to the models: a row for each, ``repeats`` models
    a trial.
    """

    def __init__(
        self, trials: int, constant: NDArray[np.bool_], device: torch.device, repeats: int = 1
    ) -> None:
        self._constant = constant
        self._repeats = repeats
        self.order: list[list[int]] = [[] for _ in range(trials)]
        self._dropped: list[list[int]] = [[] for _ in range(trials)]
        self.selected = torch.zeros(trials * repeats, len(constant), device=device)
        self.blocked = torch.zeros_like(self.selected)
        self._write()

    def take(self, scores: NDArray[np.float64], count: int) -> list[list[int]]:
        """Choose the ``count`` best of each trial's free features, ties to the lowest index."""
        key = np.where(self._constant, CONSTANT, scores)
        for row, order in zip(key, self.order, strict=True):
            row[order] = -np.inf
        ranked = key.argmax(1)[:, None] if count == 1 else np.argsort(-key, axis=1, kind="stable")
        taken: list[list[int]] = ranked[:, :count].tolist()
        for order, some in zip(self.order, taken, strict=True):
            order.extend(some)
            order.sort(key=lambda f: bool(self._constant[f]))  # stable: a constant one goes last
        self._write()
        return taken

    def drop(self, harm: NDArray[np.float64], count: int) -> list[list[int]]:
        """Let go of the ``count`` chosen features whose removal harms least; harm follows ``order``."""
        dropped = []
        for order, row in zip(self.order, harm, strict=True):
            harmless = np.where(self._constant[order], -np.inf, row)
            positions = np.argsort(harmless, kind="stable")[:count]
            gone = [order[p] for p in positions]
            order[:] = [f for f in order if f not in gone]
            dropped.append(gone)
        for once, gone in zip(self._dropped, dropped, strict=True):
            once[:] = [f for f in once if f not in gone] + gone
        self._write()
        return dropped

    def rest(self, trial: int, scores: NDArray[np.float64]) -> list[int]:
        """The features not chosen: those that once were, the last dropped first, then the others.

        Of these informative before constant ones, then by score, then by index.
        """
        selected = self.order[trial]
        once = [f for f in reversed(self._dropped[trial]) if f not in selected and not self._constant[f]]
        free = np.ones(len(scores), dtype=bool)
        free[selected + once] = False
        candidates = np.flatnonzero(free)
        ranked = np.lexsort((-scores[candidates], self._constant[candidates]))  # stable: ties by index
        return once + list(candidates[ranked].tolist())

    def free(self) -> NDArray[np.bool_]:
        """Which features (trials, d) may still be chosen."""
        free = np.tile(~self._constant, (len(self.order), 1))
        for row, order in zip(free, self.order, strict=True):
            row[order] = False
        return free

    def _write(self) -> None:
        selected = np.zeros((len(self.order), self.selected.shape[1]), dtype=bool)
        for row, order in zip(selected, self.order, strict=True):
            row[order] = True
        barred = selected | self._constant
        spent = barred.all(1)
        barred[spent] = selected[spent]  # only constant features are left: let them in after all
        self._tell(self.selected, selected)
        self._tell(self.blocked, np.where(barred, -np.inf, 0.0))

    def _tell(self, models: torch.Tensor, trials: NDArray[Any]) -> None:
        models.copy_(torch.from_numpy(np.repeat(trials, self._repeats, axis=0)))
