"""OMP's state on columns of a Gram matrix: a growing Cholesky factor and correlations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.path import DEPENDENT, NEGLIGIBLE, LinearPath, negligible, pick, why_stopped
from seqatt.linear.threads import Floats

TRUST_COLUMN = 1e-6  # share of a column's squared length that must be new: below it the rows decide
TRUST_LOSS = 1e-8  # share of the target's energy that must be left, likewise
# Column j of the Gram matrix, less what the first vectors of the basis explain, and how many of them.
Column = Callable[[int], tuple[Floats, int]]


class GramPursuit:
    """The state of OMP on columns of a Gram matrix: ``c`` are X'r, ``basis`` the vectors a, row by row.

    ``exact``, the diagonal, says that the Gram matrix is all there is; else, where digits run out, the rows
    decide. ``seen`` gathers the scores of every choice.
    """

    def __init__(
        self,
        cross: Floats,
        energy: Floats,
        blocks: FeatureBlocks,
        exact: Floats | None = None,
        seen: list[Floats] | None = None,
    ) -> None:
        self.seen = seen
        self.c = cross.copy()
        self.norms = exact
        self.blocks = blocks
        self.null_loss = self.loss = float(energy.sum())
        self.floor = None if exact is None else negligible(exact, self.null_loss, blocks)
        self.open = np.ones(blocks.count, dtype=bool)
        self.basis = np.empty((64, len(cross)))
        self.shares: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None

    def run(self, k: int, column: Column) -> GramPursuit:
        """Choose until there are ``k``, nothing is left, or digits run out that the rows still have."""
        while len(self.order) < k:
            if self.norms is None and self.loss < TRUST_LOSS * self.null_loss:
                break
            scores = self.blocks.norms(self.c)
            scores *= self.open
            best = pick(scores)
            if self.floor is not None and scores[best] <= self.floor[best]:
                scores[scores <= self.floor] = 0.0
                best = pick(scores)
            if scores[best] == 0:
                self._stop()
                break
            if self._enter(best, float(scores[best]), column):
                if self.seen is not None:
                    self.seen.append(scores)
                self.order.append(best)
                self.scores.append(float(scores[best]))
                self.losses.append(self.loss)
            elif self.norms is None:
                break
            self.open[best] = False
        return self

    def _enter(self, feature: int, score: float, column: Column) -> bool:
        """Whether the feature's columns could be told from the chosen ones, and so went in."""
        began = len(self.columns)
        for j in [feature] if self.blocks.single else self.blocks.columns(feature).tolist():
            t = len(self.columns)
            if t == len(self.basis):
                self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
            a, (gram, since) = self.basis[t], column(j)
            np.subtract(gram, self.basis[since:t, j] @ self.basis[since:t], out=a)
            known = self.basis[:since, j]
            new, whole = a.item(j), gram.item(j) + float(known @ known)
            if self.norms is None and (
                new <= TRUST_COLUMN * whole or score <= NEGLIGIBLE * math.sqrt(self.null_loss * whole)
            ):
                del self.columns[began:], self.shares[began:]
                return False
            if new <= DEPENDENT * whole:
                continue
            a *= 1 / math.sqrt(new)
            share = self.c[j] / math.sqrt(new)
            if len(share) == 1:
                self.c[:, 0] -= a * share
            else:
                self.c -= np.multiply.outer(a, share)
            self.loss = max(0.0, self.loss - float(share @ share))
            self.shares.append(share)
            self.columns.append(j)
        return len(self.columns) > began

    def _stop(self) -> None:
        norms = np.ones(len(self.c)) if self.norms is None else self.norms
        left = norms - np.einsum("ij,ij->j", *2 * [self.basis[: len(self.columns)]])
        new = self.blocks.most(np.where(left > DEPENDENT * norms, 1.0, 0.0))
        self.stopped = why_stopped(self.loss, self.null_loss, not new[self.open].any(), NEGLIGIBLE)

    def path(self, flat: bool) -> LinearPath:
        """The answer, with coefficients by back substitution."""
        coef = np.zeros(self.c.shape)
        if self.columns:
            factor = self.basis[: len(self.columns), self.columns]
            coef[self.columns] = solve_triangular(factor, np.array(self.shares), check_finite=False)
        return LinearPath(
            self.order,
            np.array(self.scores),
            np.array(self.losses),
            self.null_loss,
            coef[:, 0] if flat else coef,
            self.stopped,
        )
