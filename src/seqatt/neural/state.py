"""What has been chosen so far. On the device as tensors, so that no phase changes a shape."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

CONSTANT = -1e300  # a score below any that a feature can earn


class State:
    """``kept`` (1 or 0) and ``closed`` (0 or -inf) are (T, d); ``order`` has the features as chosen."""

    def __init__(self, trials: int, constant: NDArray[np.bool_], device: torch.device) -> None:
        self._constant = constant
        self.order: list[list[int]] = [[] for _ in range(trials)]
        self.kept = torch.zeros(trials, len(constant), device=device)
        self.closed = torch.zeros_like(self.kept)
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
            positions = np.argsort(row, kind="stable")[:count]
            gone = [order[p] for p in positions]
            order[:] = [f for f in order if f not in gone]
            dropped.append(gone)
        self._write()
        return dropped

    def rest(self, trial: int, scores: NDArray[np.float64]) -> list[int]:
        """The features not chosen: informative before constant ones, then by score, then by index."""
        free = np.ones(len(scores), dtype=bool)
        free[self.order[trial]] = False
        candidates = np.flatnonzero(free)
        ranked = np.lexsort((-scores[candidates], self._constant[candidates]))  # stable: ties by index
        return list(candidates[ranked].tolist())

    def _write(self) -> None:
        kept = np.zeros(tuple(self.kept.shape), dtype=bool)
        for row, order in zip(kept, self.order, strict=True):
            row[order] = True
        barred = kept | self._constant
        spent = barred.all(1)
        barred[spent] = kept[spent]  # only constant features are left: let them in after all
        self.kept.copy_(torch.from_numpy(kept))
        self.closed.copy_(torch.from_numpy(np.where(barred, -np.inf, 0.0)))
