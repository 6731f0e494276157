"""The least squares problem that the selected features leave, computed from rows or from a Gram matrix.

OMP, Sequential LASSO and linear attention do not penalise the coefficients of the selected features. Minimising
over those first turns each objective into one over the other features, in columns and targets minus their
projections on the selected columns. P projects onto the orthogonal complement of the selected columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.inputs import check_finite
from seqatt.linear.path import DEPENDENT, DEPENDENT_ROWS, NEGLIGIBLE
from seqatt.linear.threads import Floats

ColumnIndices = NDArray[np.intp]
PartialColumn = Callable[[int], tuple[Floats, int]]  # see ResidualFromGram
# If the rows are available, a Gram matrix is used while these shares are exceeded, then the rows.
MIN_NEW_SHARE = 1e-6  # of a column's squared length that is orthogonal to the selected columns
MIN_LOSS_SHARE = 1e-8  # of the squared length of the target that is not explained yet


class ResidualProblem(Protocol):
    """Least squares with some columns fitted."""

    squared_norms: Floats  # squared length of every column, (d,)
    null_loss: float  # squared length of the targets
    resolution: float  # losses below this share of ``null_loss`` are rounding errors
    imprecise: bool  # whether the next step would lose too many digits

    def add(self, columns: ColumnIndices) -> bool:
        """Fit these columns too; False if they depend linearly on the fitted ones."""

    def correlations(self) -> Floats:
        """``X' P y``, (d, o)."""

    def products(self, columns: ColumnIndices) -> Floats:
        """``X_columns' P X``, (columns, d)."""

    def explained(self) -> Floats:
        """``||x - P x||^2`` of every column x, (d,)."""

    def loss(self) -> float:
        """``||P y||^2``."""

    def coefficients(self) -> Floats:
        """Least squares coefficients, (d, o); zero for columns that are not fitted."""


class ResidualFromRows:
    """P from an orthonormal basis of the fitted columns: a pass over the rows per step, but no squaring."""

    resolution = NEGLIGIBLE**2
    imprecise = False

    def __init__(self, design: DesignMatrix, targets: Floats) -> None:
        self.design, self.targets = design, targets
        self.squared_norms = design.squared_norms()
        check_finite(self.squared_norms)
        self.null_loss = float(np.sum(targets**2))
        self.residual = targets
        self.columns: list[int] = []
        self._basis = np.empty((16, design.n))

    @property
    def basis(self) -> Floats:
        """An orthonormal basis of the fitted columns, (rank, n)."""
        return self._basis[: len(self.columns)]

    def add(self, columns: ColumnIndices) -> bool:
        rank = len(self.columns)
        for j in columns.tolist():
            q = self._project(self.design.columns(np.array([j]))[:, 0])
            squared_length = float(q @ q)
            if squared_length <= DEPENDENT_ROWS * self.squared_norms[j]:
                continue
            self._basis = _with_space(self._basis, len(self.columns))
            self._basis[len(self.columns)] = q / math.sqrt(squared_length)
            self.columns.append(j)
        self.residual = self._project(self.targets)
        return len(self.columns) > rank

    def correlations(self) -> Floats:
        return self.design.products(NO_COLUMNS, self.residual).T

    def products(self, columns: ColumnIndices) -> Floats:
        return self.design.products(NO_COLUMNS, self._project(self.design.columns(columns)))

    def explained(self) -> Floats:
        return np.asarray(np.sum(self.design.products(NO_COLUMNS, self.basis.T) ** 2, axis=0))

    def loss(self) -> float:
        return float(np.sum(self.residual**2))

    def coefficients(self) -> Floats:
        coef = np.zeros((self.design.d, self.targets.shape[1]))
        factor = np.triu(self.basis @ self.design.columns(np.array(self.columns, dtype=np.intp)))
        if self.columns:
            coef[self.columns] = solve_triangular(factor, self.basis @ self.targets, check_finite=False)
        return coef

    def _project(self, columns: Floats) -> Floats:
        """P applied twice, which removes the rounding errors of the first application."""
        once = columns - self.basis.T @ (self.basis @ columns)
        return np.asarray(once - self.basis.T @ (self.basis @ once))


class ResidualFromGram:
    """P from an incremental Cholesky factor of the Gram matrix: for any number of rows, with half the digits.

    With q_t the t-th vector of an orthonormal basis of the fitted columns, row t of ``basis`` is X'q_t: column j
    of the Gram matrix minus the part that the earlier rows explain.

    Parameters
    ----------
    cross : X'Y, (d, o).
    target_squares : squared length of each target, (o,).
    column : maps j to (column j of the Gram matrix minus the part that the first m rows of ``basis`` explain, m).
    squared_norms : diagonal of the Gram matrix (d,) if there are no rows to continue on. None means that there
        are: ``imprecise`` is then set where the Gram matrix loses too many digits.
    """

    resolution = NEGLIGIBLE

    def __init__(
        self,
        cross: Floats,
        target_squares: Floats,
        column: PartialColumn,
        squared_norms: Floats | None = None,
    ) -> None:
        self.column = column
        self.has_rows = squared_norms is None
        self.squared_norms = np.zeros(len(cross)) if squared_norms is None else squared_norms
        self.null_loss = float(target_squares.sum())
        self.imprecise = False
        self.columns: list[int] = []
        self._loss = self.null_loss
        self._correlations = cross.copy()
        self._basis = np.empty((64, len(cross)))
        self._projections: list[Floats] = []  # q_t'y

    @property
    def basis(self) -> Floats:
        """Q'X for an orthonormal basis Q of the fitted columns, (rank, d)."""
        return self._basis[: len(self.columns)]

    def add(self, columns: ColumnIndices) -> bool:
        rank = len(self.columns)
        score = float(np.linalg.norm(self._correlations[columns])) if self.has_rows else 0.0
        for j in columns.tolist():
            t = len(self.columns)
            self._basis = _with_space(self._basis, t)
            a, explained = self._column(j, out=self._basis[t]), self._basis[:t, j]
            new = a.item(j)
            whole = new + float(explained @ explained)
            if self.has_rows and (
                new <= MIN_NEW_SHARE * whole or score <= NEGLIGIBLE * math.sqrt(self.null_loss * whole)
            ):
                self.imprecise = True
                return False
            if new <= DEPENDENT * whole:
                continue
            a *= 1 / math.sqrt(new)
            projection = self._correlations[j] / math.sqrt(new)
            if len(projection) == 1:
                self._correlations[:, 0] -= a * projection
            else:
                self._correlations -= np.multiply.outer(a, projection)
            self._loss = max(0.0, self._loss - float(projection @ projection))
            self._projections.append(projection)
            self.columns.append(j)
        self.imprecise = self.has_rows and self._loss < MIN_LOSS_SHARE * self.null_loss
        return len(self.columns) > rank

    def correlations(self) -> Floats:
        return self._correlations

    def products(self, columns: ColumnIndices) -> Floats:
        return np.array([self._column(j) for j in columns.tolist()])

    def explained(self) -> Floats:
        return np.asarray(np.einsum("ij,ij->j", self.basis, self.basis))

    def loss(self) -> float:
        return self._loss

    def coefficients(self) -> Floats:
        coef = np.zeros(self._correlations.shape)
        if self.columns:
            factor = self.basis[:, self.columns]
            coef[self.columns] = solve_triangular(factor, np.array(self._projections), check_finite=False)
        return coef

    def _column(self, j: int, out: Floats | None = None) -> Floats:
        """``X' P x_j``, (d,)."""
        column, m = self.column(j)
        basis = self._basis[m : len(self.columns)]
        return np.subtract(column, basis[:, j] @ basis, out=out)


def _with_space(basis: Floats, used: int) -> Floats:
    """``basis`` with at least one row after the first ``used`` ones."""
    return np.concatenate([basis, np.empty_like(basis)]) if used == len(basis) else basis
