"""What the chosen features leave to be explained: least squares on them, solved afresh.

Sequential LASSO and linear attention leave the chosen coordinates unpenalised. Minimising over those first
turns each objective into one over the others, in columns and targets less their projections on the chosen.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.gram import Gram, NormalEquations
from seqatt.linear.inputs import FeatureBlocks, insist_on_finite, make_design, read_blocks
from seqatt.linear.path import DEPENDENT, DEPENDENT_ROWS
from seqatt.linear.threads import Floats

ROWS_CELLS = 1 << 22  # tables larger than this are reduced to a Gram where that is smaller
Columns = NDArray[np.intp]


class ResidualProblem(Protocol):
    """A least squares problem with some columns ``chosen``; P takes away what they explain."""

    norms: Floats
    null_loss: float

    @property
    def rank(self) -> int:
        """Of the chosen columns."""

    def choose(self, columns: Columns) -> None:
        """Fit these columns, and only these."""

    def correlations(self) -> Floats:
        """``X' P y``, (d, o)."""

    def products(self, columns: Columns) -> Floats:
        """``X_columns' P X``, (columns, d)."""

    def loss(self) -> float:
        """``||P y||^2``."""

    def coefficients(self) -> Floats:
        """Of the chosen columns, (d, o)."""


class ResidualFromRows:
    """P by an orthonormal basis of the chosen columns, from a QR with pivots: no digits lost to squares."""

    def __init__(self, design: DesignMatrix, targets: Floats) -> None:
        self.design, self.targets = design, targets
        self.norms = design.norms()
        insist_on_finite(self.norms)
        self.null_loss = float(np.sum(targets**2))
        self.chosen = np.empty(0, dtype=np.intp)
        self.basis = np.empty((design.n, 0))
        self.residual = targets

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    def choose(self, columns: Columns) -> None:
        self.chosen = columns
        if not len(columns):
            self.basis, self.residual = np.empty((self.design.n, 0)), self.targets
            return
        # Columns of one length: then small pivots mean dependence and not small units.
        unit = np.sqrt(np.maximum(self.norms[columns], np.finfo(float).tiny))
        basis, factor, _ = qr(self.design.columns(columns) / unit, mode="economic", pivoting=True)
        size = np.abs(np.diag(factor))
        self.basis = basis[:, size > np.sqrt(DEPENDENT_ROWS) * size[0]]
        self.residual = self._left(self.targets)

    def correlations(self) -> Floats:
        return self.design.products(np.empty(0, dtype=np.intp), self.residual).T

    def products(self, columns: Columns) -> Floats:
        return self.design.products(np.empty(0, dtype=np.intp), self._left(self.design.columns(columns)))

    def loss(self) -> float:
        return float(np.sum(self.residual**2))

    def coefficients(self) -> Floats:
        coef = np.zeros((self.design.d, self.targets.shape[1]))
        if len(self.chosen):
            coef[self.chosen] = lstsq(self.design.columns(self.chosen), self.targets)[0]
        return coef

    def _left(self, columns: Floats) -> Floats:
        once = columns - self.basis @ (self.basis.T @ columns)
        return np.asarray(once - self.basis @ (self.basis.T @ once))


class ResidualFromGram:
    """P from the normal equations: any number of rows, half the digits."""

    def __init__(self, normal: NormalEquations) -> None:
        self.normal = normal
        self.norms = np.diag(normal.square).copy()
        self.null_loss = float(normal.energy.sum())
        self.choose(np.empty(0, dtype=np.intp))

    @property
    def rank(self) -> int:
        return int(self.root.shape[1])

    def choose(self, columns: Columns) -> None:
        self.chosen = columns
        square = self.normal.square
        unit = np.sqrt(np.maximum(self.norms[columns], np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(square[np.ix_(columns, columns)] / np.outer(unit, unit))
        kept = values > DEPENDENT * values.max(initial=0.0)
        # ``root`` takes the chosen columns to an orthonormal basis of theirs.
        self.root = (vectors[:, kept] / np.sqrt(values[kept])) / unit[:, None]
        self.shadow = self.root.T @ square[columns]
        self.share = self.root.T @ self.normal.cross[columns]

    def correlations(self) -> Floats:
        return np.asarray(self.normal.cross - self.shadow.T @ self.share)

    def products(self, columns: Columns) -> Floats:
        return np.asarray(self.normal.square[columns] - self.shadow[:, columns].T @ self.shadow)

    def loss(self) -> float:
        return max(0.0, self.null_loss - float(np.sum(self.share**2)))

    def coefficients(self) -> Floats:
        coef = np.zeros(self.normal.cross.shape)
        coef[self.chosen] = self.root @ self.share
        return coef


def make_problem(
    X: Any, y: Any, weights: Any, groups: Any, *, centre: bool, scale: bool
) -> tuple[ResidualProblem, FeatureBlocks, bool]:
    """From a Gram, or from rows where they are few or wide."""
    if isinstance(X, Gram):
        problem: ResidualProblem = ResidualFromGram(X.normal(centre=centre, scale=scale))
        return problem, read_blocks(groups, X.features), X.flat
    design, targets, flat = make_design(X, y, weights, centre=centre, scale=scale)
    return problem_of(design, targets), read_blocks(groups, design.d), flat


def problem_of(design: DesignMatrix, targets: Floats) -> ResidualProblem:
    if design.n * design.d <= ROWS_CELLS or design.d > design.n:
        return ResidualFromRows(design, targets)
    cross = design.products(np.empty(0, dtype=np.intp), targets).T
    insist_on_finite(cross)
    return ResidualFromGram(NormalEquations(design.square(), cross, np.einsum("ij,ij->j", targets, targets)))
