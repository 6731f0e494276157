"""OMP on rows: an orthonormal basis of the selected columns, and the residual itself."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.path import (
    DEPENDENT,
    DEPENDENT_ROWS,
    NEGLIGIBLE,
    LinearPath,
    argmax_lowest,
    rounding_floor,
    stop_reason,
)
from seqatt.linear.threads import Floats


class OrthonormalPursuit:
    """OMP on an orthonormal basis of the selected columns.

    It needs one pass over the rows per step, but loses no digits to squaring. ``step_scores`` collects the
    scores of all features at every step.
    """

    def __init__(
        self,
        design: DesignMatrix,
        targets: Floats,
        blocks: FeatureBlocks,
        step_scores: list[Floats] | None = None,
    ) -> None:
        self.step_scores = step_scores
        self.design, self.targets, self.blocks = design, targets, blocks
        self.squared_norms = design.squared_norms()
        self.null_loss = float(np.sum(targets**2))
        self.residual = targets.copy()
        self.basis: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None
        self.eligible = np.ones(blocks.count, dtype=bool)

    def resume(self, pursuit: GramPursuit) -> OrthonormalPursuit:
        """Start from the features that were selected on the Gram matrix."""
        for feature, score in zip(pursuit.order, pursuit.scores, strict=True):
            self._add_feature(feature, score)
        return self

    def run(self, k: int) -> OrthonormalPursuit:
        """Select up to ``k`` features; end early if no feature reduces the residual."""
        while len(self.order) < k:
            scores = self.blocks.norms(self.design.products(NO_COLUMNS, self.residual).T)
            scores[~self.eligible] = 0.0
            scores[scores <= rounding_floor(self.squared_norms, self.null_loss, self.blocks)] = 0.0
            best = argmax_lowest(scores)
            if scores[best] == 0:
                self._record_stop()
                break
            if self._add_feature(best, float(scores[best])) and self.step_scores is not None:
                self.step_scores.append(scores)
        return self

    def _add_feature(self, feature: int, score: float) -> bool:
        """Add a feature's columns; False if they depend linearly on the selected ones."""
        n_before = len(self.columns)
        for j in self.blocks.columns(feature).tolist():
            q = self.design.columns(np.array([j]))[:, 0]
            for _ in range(2):
                for other in self.basis:
                    q -= other * (other @ q)
            length = float(q @ q)
            if length <= DEPENDENT_ROWS * self.squared_norms[j]:
                continue
            q /= np.sqrt(length)
            for _ in range(2):
                self.residual -= np.multiply.outer(q, q @ self.residual)
            self.basis.append(q)
            self.columns.append(j)
        self.eligible[feature] = False
        if len(self.columns) == n_before:
            return False
        self.order.append(feature)
        self.scores.append(score)
        self.losses.append(float(np.sum(self.residual**2)))
        return True

    def _record_stop(self) -> None:
        explained = np.zeros(self.design.d)
        if self.basis:
            explained = np.sum(self.design.products(NO_COLUMNS, np.array(self.basis).T) ** 2, axis=0)
        left = self.squared_norms - explained
        independent = self.blocks.block_max(np.where(left > DEPENDENT * self.squared_norms, 1.0, 0.0))
        all_dependent = not independent[self.eligible].any()
        loss = float(np.sum(self.residual**2))
        self.stopped = stop_reason(loss, self.null_loss, all_dependent, NEGLIGIBLE**2)

    def path(self, flat: bool) -> LinearPath:
        """The result, with coefficients by back substitution; ``flat`` makes them (d,) for one target."""
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
