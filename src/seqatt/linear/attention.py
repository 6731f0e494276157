"""Regularised linear Sequential Attention: direct minimisation of the objective of Definition 3.1.

    min over w, theta of ||X (s(w) o theta) - y||^2 + lambda / 2 (||w||^2 + ||theta outside S||^2)

with s = 1 on the selected set S and s = w elsewhere. The objective is not convex, and w = theta = 0 is a
saddle point, so L-BFGS starts away from it. Its optimum is that of a LASSO (equation 5), whose optimality
conditions verify the result.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from seqatt.linear.inputs import FeatureBlocks, read_k
from seqatt.linear.path import TIE, LinearPath
from seqatt.linear.residual_problem import ResidualProblem
from seqatt.linear.softmax_attention import choose_by_softmax
from seqatt.linear.stepwise import FeatureMask, read_problem, select_stepwise
from seqatt.linear.threads import Floats, single_blas_thread

# lambda = (1 - epsilon) lambda*; the next epsilon is used if several features share the weight.
EPSILONS = (1e-2, 1e-5, 1e-8)
TOLERANCE = 1e-3  # a correlation may exceed lambda by this share of epsilon
SUPPORT = 1e-2  # |w| above this share of the largest counts as nonzero; w is the root of a coefficient
MAX_RESTARTS = 20  # runs of L-BFGS, each from the result of the last
LBFGS_OPTIONS = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}


def linear_attention(
    X: Any,
    y: Any = None,
    k: int | None = None,
    *,
    parameterisation: str = "linear",
    centre: bool = False,
    scale: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
) -> LinearPath:
    """Select ``k`` features by regularised linear Sequential Attention.

    Parameters
    ----------
    parameterisation : {"linear", "softmax"}, default "linear", which is Definition 3.1. With "softmax" the
        unselected features have softmax weights (Lemma 3.2): the penalty is then not that of the LASSO, and
        near ties may be resolved differently.
    X, y, k, centre, scale, sample_weight, groups : as in ``omp``.

    Returns
    -------
    LinearPath

    Examples
    --------
    >>> import numpy as np
    >>> from seqatt.linear import linear_attention
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> linear_attention(X, 3 * X[:, 4] - X[:, 2], k=2).order
    [4, 2]

    References
    ----------
    Yasuda et al.: Sequential Attention for Feature Selection, ICLR 2023, section 3.
    """
    rules = {"linear": choose_by_attention, "softmax": choose_by_softmax}
    if parameterisation not in rules:
        raise ValueError(f"parameterisation: unknown {parameterisation!r}; use one of {', '.join(rules)}")
    problem, blocks, flat = read_problem(X, y, sample_weight, groups, centre=centre, scale=scale)
    with single_blas_thread():
        return select_stepwise(problem, blocks, read_k(k, blocks.count), rules[parameterisation], flat)


def choose_by_attention(
    problem: ResidualProblem, blocks: FeatureBlocks, eligible: FeatureMask, cross: Floats
) -> tuple[int, float]:
    """The feature with the largest attention weight |w| just below lambda*, and lambda* / 2."""
    scores = blocks.norms(cross)
    scores[~eligible] = 0.0
    largest = float(scores.max())  # lambda* / 2
    support = np.flatnonzero(eligible)
    for epsilon in EPSILONS:
        weights = attention_weights(problem, blocks, eligible, cross / largest, epsilon)
        support = np.flatnonzero(weights > SUPPORT * weights.max())
        if (scores[support] >= largest * (1 - TIE)).all():
            return int(support[0]), largest  # one feature, or several in an exact tie
    return int(np.argmax(weights)), largest


def attention_weights(
    problem: ResidualProblem, blocks: FeatureBlocks, eligible: FeatureMask, cross: Floats, epsilon: float
) -> Floats:
    """|w| of every feature at lambda = (1 - epsilon) lambda*, up to one common factor.

    With b = w theta, c = X'Py / (lambda* / 2) and both variables divided by sqrt(epsilon), the objective is

        b'Hb - |w|^2 - |theta|^2 + sum over f of (|theta_f - w_f c_f|^2 + w_f^2 (1 - |c_f|^2)) / epsilon

    up to a constant. In the variable delta = (theta - w c) / sqrt(epsilon) it loses no digits, however close
    lambda is to lambda*. Only features with correlations close to lambda* are optimised (the working set);
    the optimality conditions are checked for all features. ``cross`` is c.
    """
    scores = blocks.norms(cross)
    reach = 2 * epsilon
    while True:
        working = np.flatnonzero((scores >= 1 - reach) & eligible)
        columns = blocks.columns(working)
        rows = problem.products(columns)
        feature_of = np.repeat(np.arange(len(working)), [len(blocks.columns(f)) for f in working])
        w, b = _minimise(rows[:, columns], cross[columns], feature_of, epsilon)
        outside = blocks.norms(cross - epsilon * (rows.T @ b))
        outside[~eligible] = 0.0
        outside[working] = 0.0
        if outside.max() <= (1 - epsilon) + TOLERANCE * epsilon:
            break
        reach *= 4
    weights = np.zeros(blocks.count)
    weights[working] = np.abs(w)
    return weights


def _minimise(square: Floats, cross: Floats, feature_of: Any, epsilon: float) -> tuple[Floats, Floats]:
    """w and b by L-BFGS, restarted until the working set satisfies the optimality conditions of the LASSO."""
    count = int(feature_of[-1]) + 1
    lengths = np.sqrt(np.bincount(feature_of, np.sum(cross**2, axis=1), count))
    gap = (1 - lengths) * (1 + lengths) / epsilon  # (1 - |c_f|^2) / epsilon
    unit = float(np.trace(square)) / len(square)
    objective = partial(_objective, square / unit, cross, feature_of, gap, epsilon)
    x = np.concatenate([np.full(count, 0.7), np.zeros(cross.size)])
    for _ in range(MAX_RESTARTS):
        x = minimize(objective, x, jac=True, method="L-BFGS-B", options=LBFGS_OPTIONS).x
        w, b = x[:count], _coefficients(x, cross, feature_of, count, epsilon)
        excess = _excess(square / unit, cross, feature_of, b, count, epsilon)
        at_saddle = (excess > TOLERANCE) & (np.abs(w) < 1e-2)
        if not at_saddle.any():
            break
        x = x.copy()
        x[:count][at_saddle] = 0.1
    return w, b / unit


def _coefficients(x: Floats, cross: Floats, feature_of: Any, count: int, epsilon: float) -> Floats:
    """b = w theta per column, from x = (w, delta)."""
    w = x[:count][feature_of][:, None]
    return np.asarray(w * (w * cross + np.sqrt(epsilon) * x[count:].reshape(cross.shape)))


def _objective(
    square: Floats, cross: Floats, feature_of: Any, gap: Floats, epsilon: float, x: Floats
) -> tuple[float, Floats]:
    """The objective of ``attention_weights`` and its gradient, in x = (w, delta)."""
    count = len(gap)
    w, delta = x[:count], x[count:].reshape(cross.shape)
    column_w = w[feature_of][:, None]
    theta = column_w * cross + np.sqrt(epsilon) * delta
    b = column_w * theta
    h_b = square @ b
    value = np.sum(b * h_b) - w @ w - np.sum(theta**2) + np.sum(delta**2) + gap @ (w * w)
    grad_theta = 2 * (column_w * h_b - theta)
    through_b = np.bincount(feature_of, np.sum(2 * theta * h_b + grad_theta * cross, axis=1), count)
    grad_w = through_b + 2 * (gap - 1) * w
    grad_delta = np.sqrt(epsilon) * grad_theta + 2 * delta
    return float(value), np.concatenate([grad_w, grad_delta.ravel()])


def _excess(square: Floats, cross: Floats, feature_of: Any, b: Floats, count: int, epsilon: float) -> Floats:
    """Each feature's correlation minus lambda, in units of epsilon; at most 0 at the optimum."""
    left = cross - epsilon * (square @ b)
    lengths = np.sqrt(np.bincount(feature_of, np.sum(left**2, axis=1), count))
    return np.asarray((lengths - (1 - epsilon)) / epsilon)
