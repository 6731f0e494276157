"""Stepwise selection: the loop over the steps of OMP, Sequential LASSO and linear attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.gram import Gram
from seqatt.linear.inputs import FeatureBlocks, check_finite, make_design, read_blocks
from seqatt.linear.path import DEPENDENT, LinearPath, argmax_lowest, rounding_floor, stop_reason
from seqatt.linear.residual_problem import ResidualFromGram, ResidualFromRows, ResidualProblem
from seqatt.linear.threads import Floats

MAX_ROW_ENTRIES = 1 << 22  # entries of X; larger tables are reduced to a Gram matrix if that is smaller
FeatureMask = NDArray[np.bool_]  # which features may be selected
# Maps (problem, blocks, eligible, X'Py) to the next feature and its score.
Rule = Callable[[ResidualProblem, FeatureBlocks, FeatureMask, Floats], tuple[int, float]]


def read_problem(
    X: Any, y: Any, weights: Any, groups: Any, *, centre: bool, scale: bool
) -> tuple[ResidualProblem, FeatureBlocks, bool]:
    """The problem for the arguments of ``omp``, the columns of each feature, and whether y is flat."""
    if isinstance(X, Gram):
        normal, column = X.columns(centre=centre, scale=scale)
        problem = ResidualFromGram(
            normal.cross, normal.target_squares, lambda j: (column(j), 0), normal.square
        )
        return problem, read_blocks(groups, X.features), X.flat
    design, targets, flat = make_design(X, y, weights, centre=centre, scale=scale)
    return make_problem(design, targets), read_blocks(groups, design.d), flat


def make_problem(design: DesignMatrix, targets: Floats) -> ResidualProblem:
    """On the rows if X is small or wide, else on its Gram matrix."""
    if design.n * design.d <= MAX_ROW_ENTRIES or design.d > design.n:
        return ResidualFromRows(design, targets)
    cross = design.products(NO_COLUMNS, targets).T
    check_finite(cross)
    square = design.square()
    return ResidualFromGram(cross, np.sum(targets**2, axis=0), lambda j: (square[j], 0), np.diag(square))


def select_stepwise(
    problem: ResidualProblem,
    blocks: FeatureBlocks,
    k: int,
    rule: Rule | None,
    flat: bool,
    step_scores: list[Floats] | None = None,
    start: LinearPath | None = None,
) -> LinearPath:
    """Select up to ``k`` features, in every step the one that ``rule`` returns.

    Without a ``rule`` it is the one most correlated with the residual (OMP). ``step_scores`` collects the
    features' correlations with the residual at every step; ``flat`` makes the coefficients (d,) for one target.
    ``start`` has the features that were selected before; their losses are computed again.
    """
    order: list[int] = []
    scores: list[float] = []
    losses: list[float] = []
    stopped = None
    floor = rounding_floor(problem.squared_norms, problem.null_loss, blocks)

    def add(feature: int, score: float) -> bool:
        floor[feature] = np.inf  # no feature is tried twice
        loss = problem.loss()
        if not problem.add(blocks.columns(feature)):
            return False
        order.append(feature)
        scores.append(score)
        losses.append(min(loss, problem.loss()))
        return True

    if start is not None:
        for feature, score in zip(start.order, start.scores.tolist(), strict=True):
            add(feature, score)
    while len(order) < k and not problem.imprecise:
        cross = problem.correlations()
        norms = blocks.norms(cross)
        eligible = norms > floor
        norms *= eligible
        best = argmax_lowest(norms)
        if norms[best] == 0:
            stopped = _stop_reason(problem, blocks, order)
            break
        feature, score = (best, norms.item(best)) if rule is None else rule(problem, blocks, eligible, cross)
        if add(feature, score) and step_scores is not None:
            step_scores.append(norms)
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
    left = problem.squared_norms - problem.explained()
    independent = blocks.block_max(np.where(left > DEPENDENT * problem.squared_norms, 1.0, 0.0))
    dependent = not np.delete(independent, order).any()
    return stop_reason(problem.loss(), problem.null_loss, dependent, problem.resolution)
