"""OMP's state on rows: an orthonormal basis of the chosen columns, and the residual itself."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.path import (
    DEPENDENT,
    DEPENDENT_ROWS,
    NEGLIGIBLE,
    LinearPath,
    negligible,
    pick,
    why_stopped,
)
from seqatt.linear.threads import Floats

NONE = np.empty(0, dtype=np.intp)


class OrthonormalPursuit:
    """OMP on an orthonormal basis of the chosen columns."""

    def __init__(
        self, design: DesignMatrix, targets: Floats, blocks: FeatureBlocks, seen: list[Floats] | None = None
    ) -> None:
        self.seen = seen
        self.design, self.targets, self.blocks = design, targets, blocks
        self.norms = design.norms()
        self.null_loss = float(np.sum(targets**2))
        self.residual = targets.copy()
        self.basis: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None
        self.open = np.ones(blocks.count, dtype=bool)

    def resume(self, pursuit: GramPursuit) -> OrthonormalPursuit:
        """Start from what was chosen while the columns of the Gram matrix could be trusted."""
        for feature, score in zip(pursuit.order, pursuit.scores, strict=True):
            self._enter(feature, score)
        return self

    def run(self, k: int) -> OrthonormalPursuit:
        while len(self.order) < k:
            scores = self.blocks.norms(self.design.products(NONE, self.residual).T)
            scores[~self.open] = 0.0
            scores[scores <= negligible(self.norms, self.null_loss, self.blocks)] = 0.0
            best = pick(scores)
            if scores[best] == 0:
                self._stop()
                break
            if self._enter(best, float(scores[best])) and self.seen is not None:
                self.seen.append(scores)
        return self

    def _enter(self, feature: int, score: float) -> bool:
        began = len(self.columns)
        for j in self.blocks.columns(feature).tolist():
            q = self.design.columns(np.array([j]))[:, 0]
            for _ in range(2):
                for other in self.basis:
                    q -= other * (other @ q)
            length = float(q @ q)
            if length <= DEPENDENT_ROWS * self.norms[j]:
                continue
            q /= np.sqrt(length)
            for _ in range(2):
                self.residual -= np.multiply.outer(q, q @ self.residual)
            self.basis.append(q)
            self.columns.append(j)
        self.open[feature] = False
        if len(self.columns) == began:
            return False
        self.order.append(feature)
        self.scores.append(score)
        self.losses.append(float(np.sum(self.residual**2)))
        return True

    def _stop(self) -> None:
        known = np.zeros(self.design.d)
        if self.basis:
            known = np.sum(self.design.products(NONE, np.array(self.basis).T) ** 2, axis=0)
        new = self.blocks.most(np.where(self.norms - known > DEPENDENT * self.norms, 1.0, 0.0))
        loss = float(np.sum(self.residual**2))
        self.stopped = why_stopped(loss, self.null_loss, not new[self.open].any(), NEGLIGIBLE**2)

    def path(self, flat: bool) -> LinearPath:
        coef = np.zeros((self.design.d, self.targets.shape[1]))
        if self.columns:
            basis = np.array(self.basis)
            factor = np.triu(basis @ self.design.columns(np.array(self.columns)))
            coef[self.columns] = solve_triangular(factor, basis @ self.targets, check_finite=False)
        return LinearPath(
            self.order,
            np.array(self.scores),
            np.array(self.losses),
            self.null_loss,
            coef[:, 0] if flat else coef,
            self.stopped,
        )
