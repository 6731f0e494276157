"""Sequential LASSO, Algorithm 3: without a penalty on S, add the feature that enters the LASSO first to S.

    min over b of 1/2 ||X b - y||^2 + lambda ||b outside S||_1,  at lambda just below lambda*(S)

lambda*(S) is the smallest lambda at which b is zero outside S. For features of several columns, or several
targets, the penalty is the Euclidean length of each feature's coefficients (the group LASSO). Coordinate
descent solves the LASSO, and the optimality conditions are checked for every feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lstsq

from seqatt.linear.inputs import FeatureBlocks, read_k
from seqatt.linear.path import TIE, LinearPath
from seqatt.linear.residual_problem import ResidualProblem
from seqatt.linear.stepwise import FeatureMask, read_problem, select_stepwise
from seqatt.linear.threads import Floats, single_blas_thread

# lambda = (1 - epsilon) lambda*; the next epsilon is used if several features enter at once.
EPSILONS = (1e-3, 1e-6, TIE)
TOLERANCE = 1e-10  # relative change of the coefficients per sweep at which coordinate descent has converged
MAX_SWEEPS = 20_000
POLISH_EVERY = 100  # sweeps between attempts to solve exactly on the support
SUPPORT = 1e-6  # coefficient blocks longer than this share of the longest count as nonzero


def sequential_lasso(
    X: Any,
    y: Any = None,
    k: int | None = None,
    *,
    centre: bool = False,
    scale: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
) -> LinearPath:
    """Select ``k`` features by Sequential LASSO; parameters and result as in ``omp``.

    Examples
    --------
    >>> import numpy as np
    >>> from seqatt.linear import sequential_lasso
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> sequential_lasso(X, 3 * X[:, 4] - X[:, 2], k=2).order
    [4, 2]

    References
    ----------
    Luo, Chen: Sequential LASSO Cum EBIC for Feature Selection, JASA 2014.
    """
    problem, blocks, flat = read_problem(X, y, sample_weight, groups, centre=centre, scale=scale)
    with single_blas_thread():
        return select_stepwise(problem, blocks, read_k(k, blocks.count), choose_by_lasso, flat)


def choose_by_lasso(
    problem: ResidualProblem, blocks: FeatureBlocks, eligible: FeatureMask, cross: Floats
) -> tuple[int, float]:
    """The lowest feature in the support of the LASSO just below lambda*, and lambda*."""
    scores = blocks.norms(cross)
    scores[~eligible] = 0.0
    lambda_star = float(scores.max())
    support = np.flatnonzero(eligible)
    for epsilon in EPSILONS:
        lengths = solve_lasso(problem, blocks, eligible, cross / lambda_star, epsilon)
        support = np.flatnonzero(lengths > SUPPORT * lengths.max())
        if len(support) == 1:
            break
    return int(support[0]), lambda_star


def solve_lasso(
    problem: ResidualProblem, blocks: FeatureBlocks, eligible: FeatureMask, cross: Floats, epsilon: float
) -> Floats:
    """Length of each feature's LASSO coefficients at lambda = (1 - epsilon) lambda*, divided by epsilon.

    ``cross`` is X'Py / lambda*. The division by epsilon makes the size of the coefficients independent of the
    distance to lambda*, so that no digits are lost.
    """
    scores = blocks.norms(cross)
    reach = 2 * epsilon
    while True:
        working = np.flatnonzero((scores >= 1 - reach) & eligible)
        columns = blocks.columns(working)
        rows = problem.products(columns)
        feature_of = blocks.feature_of[columns]
        columns_of = [np.flatnonzero(feature_of == f) for f in working]
        b = _coordinate_descent(rows[:, columns], cross[columns], columns_of, epsilon)
        # Optimality of the features outside the working set: their correlations must not exceed lambda.
        outside = blocks.norms(cross - epsilon * (rows.T @ b))
        outside[working] = 0.0
        outside[~eligible] = 0.0
        if outside.max() <= (1 - epsilon) + 1e-3 * epsilon:
            break
        reach *= 4
    lengths = np.zeros(blocks.count)
    full = np.zeros(cross.shape)
    full[columns] = b
    lengths[working] = blocks.norms(full)[working]
    return lengths


def _coordinate_descent(square: Floats, cross: Floats, columns_of: list[Any], epsilon: float) -> Floats:
    """Minimise 1/2 b'Hb - b'c / epsilon + (1 - epsilon) / epsilon sum ||b_f|| by blocks; H is ``square``."""
    b = np.zeros(cross.shape)
    h_b = np.zeros(cross.shape)  # H b
    tiny = np.finfo(float).tiny
    bounds = [max(float(np.linalg.norm(square[np.ix_(f, f)], 2)), tiny) for f in columns_of]
    tolerance = TOLERANCE + 16 * np.finfo(float).eps / epsilon  # plus the rounding of cross / epsilon
    for sweep in range(MAX_SWEEPS):
        if sweep % POLISH_EVERY == POLISH_EVERY - 1 and cross.shape[1] == 1 and len(columns_of) == len(b):
            b = _polish(square, cross, b, epsilon)
            h_b = square @ b
        largest_step = 0.0
        for f, h in zip(columns_of, bounds, strict=True):
            old = b[f]
            new = _soft_threshold(h * old - h_b[f], cross[f], epsilon) / h
            step = new - old
            if step.any():
                b[f] = new
                h_b += square[:, f] @ step
                largest_step = max(largest_step, float(np.abs(step).max()))
        if largest_step <= tolerance * max(float(np.abs(b).max()), tiny):
            break
    return b


def _polish(square: Floats, cross: Floats, b: Floats, epsilon: float) -> Floats:
    """The exact optimum for the support and signs of ``b``; ``b`` itself if that changes a sign."""
    support = np.flatnonzero(b)
    sign = np.sign(cross[support, 0])
    slack = 1.0 - (1.0 - np.abs(cross[support, 0])) / epsilon
    signed = square[np.ix_(support, support)] * np.outer(sign, sign)
    lengths = lstsq(signed, slack)[0]
    if not len(support) or (lengths < 0).any():
        return b
    polished = np.zeros_like(b)
    polished[support, 0] = sign * lengths
    return polished


def _soft_threshold(rest: Floats, cross: Floats, epsilon: float) -> Floats:
    """``g (1 - t / ||g||)+`` for g = rest + cross / epsilon and t = (1 - epsilon) / epsilon.

    Both are huge near lambda*, while their difference has the size of ``rest``; it is computed without
    cancellation.
    """
    g = cross + epsilon * rest
    length = float(np.sqrt(np.sum(g * g)))
    cross_length = float(np.sqrt(np.sum(cross * cross)))
    if length == 0:
        return np.zeros_like(g)
    growth = (2 * np.sum(cross * rest) + epsilon * np.sum(rest * rest)) / (length + cross_length)
    excess = growth + 1.0 - (1.0 - cross_length) / epsilon  # (length - (1 - epsilon)) / epsilon
    return np.asarray(g / length * max(0.0, float(excess)))
