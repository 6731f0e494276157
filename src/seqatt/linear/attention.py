"""Regularised linear Sequential Attention, Definition 3.1, minimised as it stands.

    min over w, theta of ||X (s(w) o theta) - y||^2 + lambda / 2 (||w||^2 + ||theta outside S||^2)

with s = 1 on the chosen S and s = w elsewhere. It is not convex, and w = theta = 0 is a saddle: L-BFGS starts
away from it. Its optimum is that of a LASSO (equation 5), whose optimality conditions certify what was found.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from seqatt.linear.inputs import FeatureBlocks, read_k
from seqatt.linear.path import TIE, LinearPath
from seqatt.linear.residual import ResidualProblem, make_problem
from seqatt.linear.softmax_attention import choose_by_softmax
from seqatt.linear.stepwise import Open, select_stepwise
from seqatt.linear.threads import Floats, calm

BELOW = (1e-2, 1e-5, 1e-8)  # how far below lambda*: nearer where several features share the weight
CERTIFIED = 1e-3  # by how much of ``below`` a correlation may pass lambda
SUPPORT = 1e-2  # of the largest |w|; w is the root of a coefficient
ROUNDS = 20  # of starting again from where the optimiser stopped short


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
    """Choose ``k`` features by regularised linear Sequential Attention; everything else as in ``omp``.

    Parameters
    ----------
    parameterisation : "linear" is Definition 3.1. With "softmax" the unchosen enter with softmax weights
        (Lemma 3.2): no longer the LASSO but another penalty, and near ties may fall another way.

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
    problem, blocks, flat = make_problem(X, y, sample_weight, groups, centre=centre, scale=scale)
    with calm():
        return select_stepwise(problem, blocks, read_k(k, blocks.count), rules[parameterisation], flat)


def choose_by_attention(
    problem: ResidualProblem, blocks: FeatureBlocks, open_: Open, cross: Floats
) -> tuple[int, float]:
    """The feature with the largest attention weight |w| just below lambda*, and lambda* / 2."""
    start = blocks.norms(cross)
    start[~open_] = 0.0
    top = float(start.max())  # lambda* = 2 top
    support = np.flatnonzero(open_)
    for below in BELOW:
        weights = attend(problem, blocks, open_, cross / top, below)
        support = np.flatnonzero(weights > SUPPORT * weights.max())
        if (start[support] >= top * (1 - TIE)).all():
            return int(support[0]), top  # one feature, or several in an exact tie
    return int(np.argmax(weights)), top


def attend(
    problem: ResidualProblem, blocks: FeatureBlocks, open_: Open, cross: Floats, below: float
) -> Floats:
    """|w| of every feature at lambda = (1 - below) lambda*, up to one common factor.

    With b = w theta, c = X'Py / (lambda* / 2) and both variables over the root of ``below``, the objective is

        b'Hb - |w|^2 - |theta|^2 + sum over f of (|theta_f - w_f c_f|^2 + w_f^2 (1 - |c_f|^2)) / below

    up to a constant. Written with delta = (theta - w c) / root(below) no digits are lost however near
    lambda* is. Only features near lambda* are worked on; the certificate looks at all of them.
    """
    lengths = blocks.norms(cross)
    reach = 2 * below
    while True:
        working = np.flatnonzero((lengths >= 1 - reach) & open_)
        columns = blocks.columns(working)
        rows = problem.products(columns)
        feature_of = np.repeat(np.arange(len(working)), [len(blocks.columns(f)) for f in working])
        w, b = _minimise(rows[:, columns], cross[columns], feature_of, below)
        left = blocks.norms(cross - below * (rows.T @ b))
        left[~open_] = 0.0
        outside = left.copy()
        outside[working] = 0.0
        if outside.max() <= (1 - below) + CERTIFIED * below:
            break
        reach *= 4
    weights = np.zeros(blocks.count)
    weights[working] = np.abs(w)
    return weights


def _minimise(square: Floats, cross: Floats, feature_of: Any, below: float) -> tuple[Floats, Floats]:
    """L-BFGS over (w, delta), again until the LASSO's conditions hold on the working features."""
    count = int(feature_of[-1]) + 1
    size = np.sqrt(np.bincount(feature_of, np.sum(cross**2, axis=1), count))
    gap = (1 - size) * (1 + size) / below
    unit = float(np.trace(square)) / len(square)
    objective = partial(_objective, square / unit, cross, feature_of, gap, below)
    x = np.concatenate([np.full(count, 0.7), np.zeros(cross.size)])
    for _ in range(ROUNDS):
        found = minimize(objective, x, jac=True, method="L-BFGS-B", options=_PATIENT)
        x = found.x
        w, b = x[:count], _coefficients(x, cross, feature_of, count, below)
        slope = _excess(square / unit, cross, feature_of, b, size, below)
        asleep = (slope > CERTIFIED) & (np.abs(w) < 1e-2)
        if not asleep.any():
            break
        x = x.copy()
        x[:count][asleep] = 0.1  # it sat down on the saddle
    return w, b / unit


_PATIENT = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}


def _coefficients(x: Floats, cross: Floats, feature_of: Any, count: int, below: float) -> Floats:
    w = x[:count][feature_of][:, None]
    return np.asarray(w * (w * cross + np.sqrt(below) * x[count:].reshape(cross.shape)))


def _objective(
    square: Floats, cross: Floats, feature_of: Any, gap: Floats, below: float, x: Floats
) -> tuple[float, Floats]:
    count = len(gap)
    w, delta = x[:count], x[count:].reshape(cross.shape)
    wide = w[feature_of][:, None]
    theta = wide * cross + np.sqrt(below) * delta
    b = wide * theta
    pull = square @ b
    value = np.sum(b * pull) - w @ w - np.sum(theta**2) + np.sum(delta**2) + gap @ (w * w)
    on_theta = 2 * (wide * pull - theta)
    through = np.bincount(feature_of, np.sum(2 * theta * pull + on_theta * cross, axis=1), count)
    on_w = through + 2 * (gap - 1) * w
    on_delta = np.sqrt(below) * on_theta + 2 * delta
    return float(value), np.concatenate([on_w, on_delta.ravel()])


def _excess(square: Floats, cross: Floats, feature_of: Any, b: Floats, size: Floats, below: float) -> Floats:
    """How far each feature's correlation passes lambda, in units of ``below``; at most 0 at the optimum."""
    left = cross - below * (square @ b)
    length = np.sqrt(np.bincount(feature_of, np.sum(left**2, axis=1), len(size)))
    return np.asarray((length - (1 - below)) / below)
