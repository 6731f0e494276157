"""Stepwise selection: the least squares problem that the selected features leave, and the loop over steps.

Sequential LASSO and linear attention do not penalise the coefficients of the selected features. Minimising
over those first turns each objective into one over the other features, in columns and targets minus their
projections on the selected columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.gram import Gram, NormalEquations
from seqatt.linear.inputs import FeatureBlocks, check_finite, make_design, read_blocks
from seqatt.linear.path import (
    DEPENDENT,
    DEPENDENT_ROWS,
    NEGLIGIBLE,
    LinearPath,
    rounding_floor,
    stop_reason,
)
from seqatt.linear.threads import Floats

MAX_ROW_ENTRIES = 1 << 22  # entries of X; larger tables are reduced to a Gram matrix if that is smaller
ColumnIndices = NDArray[np.intp]
FeatureMask = NDArray[np.bool_]  # which features may be selected


class ResidualProblem(Protocol):
    """Least squares with some columns fitted; P projects onto the orthogonal complement of those columns."""

    squared_norms: Floats  # squared length of every column, (d,)
    null_loss: float  # squared length of the targets

    @property
    def rank(self) -> int:
        """Rank of the fitted columns."""

    def fit(self, columns: ColumnIndices) -> None:
        """Fit exactly these columns."""

    def correlations(self) -> Floats:
        """``X' P y``, (d, o)."""

    def products(self, columns: ColumnIndices) -> Floats:
        """``X_columns' P X``, (columns, d)."""

    def loss(self) -> float:
        """``||P y||^2``."""

    def coefficients(self) -> Floats:
        """Least squares coefficients, (d, o); zero for columns that are not fitted."""


class ResidualFromRows:
    """P from an orthonormal basis of the fitted columns (pivoted QR); no digits are lost to squaring."""

    def __init__(self, design: DesignMatrix, targets: Floats) -> None:
        self.design, self.targets = design, targets
        self.squared_norms = design.squared_norms()
        check_finite(self.squared_norms)
        self.null_loss = float(np.sum(targets**2))
        self.fitted = NO_COLUMNS
        self.basis = np.empty((design.n, 0))
        self.residual = targets

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    def fit(self, columns: ColumnIndices) -> None:
        self.fitted = columns
        if not len(columns):
            self.basis, self.residual = np.empty((self.design.n, 0)), self.targets
            return
        # Scaled to equal length, so that a small pivot means dependence and not a small unit of measurement.
        unit = np.sqrt(np.maximum(self.squared_norms[columns], np.finfo(float).tiny))
        basis, factor, _ = qr(self.design.columns(columns) / unit, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(factor))
        self.basis = basis[:, pivots > np.sqrt(DEPENDENT_ROWS) * pivots[0]]
        self.residual = self._project(self.targets)

    def correlations(self) -> Floats:
        return self.design.products(NO_COLUMNS, self.residual).T

    def products(self, columns: ColumnIndices) -> Floats:
        return self.design.products(NO_COLUMNS, self._project(self.design.columns(columns)))

    def loss(self) -> float:
        return float(np.sum(self.residual**2))

    def coefficients(self) -> Floats:
        coef = np.zeros((self.design.d, self.targets.shape[1]))
        if len(self.fitted):
            coef[self.fitted] = lstsq(self.design.columns(self.fitted), self.targets)[0]
        return coef

    def _project(self, columns: Floats) -> Floats:
        """P applied twice, which removes the rounding errors of the first application."""
        once = columns - self.basis @ (self.basis.T @ columns)
        return np.asarray(once - self.basis @ (self.basis.T @ once))


class ResidualFromGram:
    """P from the normal equations: for any number of rows, with half the digits."""

    def __init__(self, normal: NormalEquations) -> None:
        self.normal = normal
        self.squared_norms = np.diag(normal.square).copy()
        self.null_loss = float(normal.target_squares.sum())
        self.fit(NO_COLUMNS)

    @property
    def rank(self) -> int:
        return int(self.to_basis.shape[1])

    def fit(self, columns: ColumnIndices) -> None:
        self.fitted = columns
        square = self.normal.square
        unit = np.sqrt(np.maximum(self.squared_norms[columns], np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(square[np.ix_(columns, columns)] / np.outer(unit, unit))
        nonzero = values > DEPENDENT * values.max(initial=0.0)
        # Q = X_columns to_basis is an orthonormal basis of the fitted columns.
        self.to_basis = (vectors[:, nonzero] / np.sqrt(values[nonzero])) / unit[:, None]
        self.basis_columns = self.to_basis.T @ square[columns]  # Q'X
        self.basis_targets = self.to_basis.T @ self.normal.cross[columns]  # Q'y

    def correlations(self) -> Floats:
        return np.asarray(self.normal.cross - self.basis_columns.T @ self.basis_targets)

    def products(self, columns: ColumnIndices) -> Floats:
        projected = self.basis_columns[:, columns].T @ self.basis_columns
        return np.asarray(self.normal.square[columns] - projected)

    def loss(self) -> float:
        return max(0.0, self.null_loss - float(np.sum(self.basis_targets**2)))

    def coefficients(self) -> Floats:
        coef = np.zeros(self.normal.cross.shape)
        coef[self.fitted] = self.to_basis @ self.basis_targets
        return coef


def read_problem(
    X: Any, y: Any, weights: Any, groups: Any, *, centre: bool, scale: bool
) -> tuple[ResidualProblem, FeatureBlocks, bool]:
    """The problem for the arguments of ``omp``, the columns of each feature, and whether y is flat."""
    if isinstance(X, Gram):
        problem: ResidualProblem = ResidualFromGram(X.normal(centre=centre, scale=scale))
        return problem, read_blocks(groups, X.features), X.flat
    design, targets, flat = make_design(X, y, weights, centre=centre, scale=scale)
    return make_problem(design, targets), read_blocks(groups, design.d), flat


def make_problem(design: DesignMatrix, targets: Floats) -> ResidualProblem:
    """On the rows if X is small or wide, else on its Gram matrix."""
    if design.n * design.d <= MAX_ROW_ENTRIES or design.d > design.n:
        return ResidualFromRows(design, targets)
    cross = design.products(NO_COLUMNS, targets).T
    check_finite(cross)
    return ResidualFromGram(NormalEquations(design.square(), cross, np.einsum("ij,ij->j", targets, targets)))


# Maps (problem, blocks, eligible, X'Py) to the next feature and its score.
Rule = Callable[[ResidualProblem, FeatureBlocks, FeatureMask, Floats], tuple[int, float]]


def select_stepwise(
    problem: ResidualProblem,
    blocks: FeatureBlocks,
    k: int,
    rule: Rule,
    flat: bool,
    step_scores: list[Floats] | None = None,
) -> LinearPath:
    """Select up to ``k`` features, in every step the one that ``rule`` returns.

    ``step_scores`` collects the features' correlations with the residual at every step; ``flat`` makes the
    coefficients (d,) for one target.
    """
    order: list[int] = []
    scores: list[float] = []
    losses: list[float] = []
    stopped = None
    tried = np.zeros(blocks.count, dtype=bool)
    while len(order) < k:
        cross = problem.correlations()
        eligible = blocks.norms(cross) > rounding_floor(problem.squared_norms, problem.null_loss, blocks)
        eligible &= ~tried
        if not eligible.any():
            stopped = _stop_reason(problem, blocks, order)
            break
        feature, score = rule(problem, blocks, eligible, cross)
        tried[feature] = True
        loss_before, rank_before = problem.loss(), problem.rank
        problem.fit(blocks.columns([*order, feature]))
        if problem.rank == rank_before:  # it depends linearly on the selected features
            problem.fit(blocks.columns(order) if order else NO_COLUMNS)
            continue
        if step_scores is not None:
            step_scores.append(np.where(eligible, blocks.norms(cross), 0.0))
        order.append(feature)
        scores.append(score)
        losses.append(min(loss_before, problem.loss()))
    coef = problem.coefficients()
    return LinearPath(
        order,
        np.array(scores),
        np.array(losses),
        problem.null_loss,
        coef[:, 0] if flat else coef,
        stopped,
    )


def _stop_reason(problem: ResidualProblem, blocks: FeatureBlocks, order: list[int]) -> str:
    others = np.setdiff1d(np.arange(blocks.count), order)
    dependent = True
    if len(others):
        columns = blocks.columns(others)
        left = np.array([problem.products(c[None])[0, c] for c in columns])
        dependent = bool((left <= 1e-12 * problem.squared_norms[columns]).all())
    # NEGLIGIBLE suits a Gram, whose sums of squares have rounding errors of that size; from rows they are
    # smaller.
    return stop_reason(problem.loss(), problem.null_loss, dependent, NEGLIGIBLE)
