"""OMP on columns of the Gram matrix: an incremental Cholesky factor and the correlations X'r."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.path import (
    DEPENDENT,
    NEGLIGIBLE,
    LinearPath,
    argmax_lowest,
    rounding_floor,
    stop_reason,
)
from seqatt.linear.threads import Floats

# From rows, a Gram matrix is precise enough while these shares are exceeded; below them, OrthonormalPursuit
# continues.
MIN_NEW_SHARE = 1e-6  # of a column's squared length that is orthogonal to the selected columns
MIN_LOSS_SHARE = 1e-8  # of the squared length of the target that is not explained yet
# Maps j to (column j of the Gram matrix minus the part explained by the first m basis vectors, m).
PartialGramColumn = Callable[[int], tuple[Floats, int]]


class GramPursuit:
    """The state of OMP on columns of a Gram matrix.

    ``correlations`` is X'r (d, o). Row t of ``basis`` is X'q_t, where q_t is the t-th vector of an
    orthonormal basis of the selected columns; ``projections[t]`` is q_t'y.

    Parameters
    ----------
    cross : X'Y, (d, o).
    target_squares : squared length of each target, (o,).
    blocks : the columns of each feature.
    diagonal : diagonal of the Gram matrix (d,) if there are no rows to fall back on. None means that there
        are: ``run`` then ends where the Gram matrix becomes too imprecise.
    step_scores : list to which the scores of all features are appended at every step.
    """

    def __init__(
        self,
        cross: Floats,
        target_squares: Floats,
        blocks: FeatureBlocks,
        diagonal: Floats | None = None,
        step_scores: list[Floats] | None = None,
    ) -> None:
        self.step_scores = step_scores
        self.correlations = cross.copy()
        self.squared_norms = diagonal
        self.blocks = blocks
        self.null_loss = self.loss = float(target_squares.sum())
        self.floor = None if diagonal is None else rounding_floor(diagonal, self.null_loss, blocks)
        self.eligible = np.ones(blocks.count, dtype=bool)
        self.basis = np.empty((64, len(cross)))
        self.projections: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None

    def run(self, k: int, column: PartialGramColumn) -> GramPursuit:
        """Select up to ``k`` features; end early if none helps or the Gram matrix is too imprecise."""
        while len(self.order) < k:
            if self.squared_norms is None and self.loss < MIN_LOSS_SHARE * self.null_loss:
                break
            scores = self.blocks.norms(self.correlations)
            scores *= self.eligible
            best = argmax_lowest(scores)
            if self.floor is not None and scores[best] <= self.floor[best]:
                scores[scores <= self.floor] = 0.0
                best = argmax_lowest(scores)
            if scores[best] == 0:
                self._record_stop()
                break
            if self._add_feature(best, float(scores[best]), column):
                if self.step_scores is not None:
                    self.step_scores.append(scores)
                self.order.append(best)
                self.scores.append(float(scores[best]))
                self.losses.append(self.loss)
            elif self.squared_norms is None:
                break
            self.eligible[best] = False
        return self

    def _add_feature(self, feature: int, score: float, column: PartialGramColumn) -> bool:
        """Add a feature's columns; False if they depend linearly on the selected ones."""
        n_before = len(self.columns)
        for j in [feature] if self.blocks.single else self.blocks.columns(feature).tolist():
            t = len(self.columns)
            if t == len(self.basis):
                self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
            a, (gram, n_removed) = self.basis[t], column(j)
            np.subtract(gram, self.basis[n_removed:t, j] @ self.basis[n_removed:t], out=a)
            removed = self.basis[:n_removed, j]
            new, whole = a.item(j), gram.item(j) + float(removed @ removed)
            if self.squared_norms is None and (
                new <= MIN_NEW_SHARE * whole or score <= NEGLIGIBLE * math.sqrt(self.null_loss * whole)
            ):
                del self.columns[n_before:], self.projections[n_before:]
                return False
            if new <= DEPENDENT * whole:
                continue
            a *= 1 / math.sqrt(new)
            projection = self.correlations[j] / math.sqrt(new)
            if len(projection) == 1:
                self.correlations[:, 0] -= a * projection
            else:
                self.correlations -= np.multiply.outer(a, projection)
            self.loss = max(0.0, self.loss - float(projection @ projection))
            self.projections.append(projection)
            self.columns.append(j)
        return len(self.columns) > n_before

    def _record_stop(self) -> None:
        squared_norms = np.ones(len(self.correlations)) if self.squared_norms is None else self.squared_norms
        left = squared_norms - np.einsum("ij,ij->j", *2 * [self.basis[: len(self.columns)]])
        independent = self.blocks.block_max(np.where(left > DEPENDENT * squared_norms, 1.0, 0.0))
        all_dependent = not independent[self.eligible].any()
        self.stopped = stop_reason(self.loss, self.null_loss, all_dependent, NEGLIGIBLE)

    def path(self, flat: bool) -> LinearPath:
        """The result, with coefficients by back substitution; ``flat`` makes them (d,) for one target."""
        coef = np.zeros(self.correlations.shape)
        if self.columns:
            factor = self.basis[: len(self.columns), self.columns]
            coef[self.columns] = solve_triangular(factor, np.array(self.projections), check_finite=False)
        return LinearPath(
            self.order,
            np.array(self.scores),
            np.array(self.losses),
            self.null_loss,
            coef[:, 0] if flat else coef,
            self.stopped,
        )
