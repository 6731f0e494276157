"""Sequential LASSO, Algorithm 3: unpenalised on S, and the feature that the LASSO lets in first joins S.

    min over b of 1/2 ||X b - y||^2 + lambda ||b outside S||_1,  at lambda just below lambda*(S)

A feature of several columns, or several targets, has one length of all its coefficients in the penalty
(the group LASSO). The LASSO is solved by coordinate descent, and its optimality is checked on every feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lstsq

from seqatt.linear.inputs import FeatureBlocks, read_k
from seqatt.linear.path import TIE, LinearPath
from seqatt.linear.residual import ResidualProblem, make_problem
from seqatt.linear.stepwise import Open, select_stepwise
from seqatt.linear.threads import Floats, calm

BELOW = (1e-3, 1e-6, TIE)  # how far below lambda*: nearer where several features come in at once
EXACT = 1e-10  # relative change of coefficients at which coordinate descent has converged
SWEEPS = 20_000
POLISH = 100  # sweeps after which an exact solve on the support is tried
SUPPORT = 1e-6  # of the largest coefficient block: what counts as not zero


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
    """Choose ``k`` features by Sequential LASSO; everything as in ``omp``.

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
    problem, blocks, flat = make_problem(X, y, sample_weight, groups, centre=centre, scale=scale)
    with calm():
        return select_stepwise(problem, blocks, read_k(k, blocks.count), choose_by_lasso, flat)


def choose_by_lasso(
    problem: ResidualProblem, blocks: FeatureBlocks, open_: Open, cross: Floats
) -> tuple[int, float]:
    """The lowest feature in the LASSO's support just below lambda*, and lambda*."""
    start = blocks.norms(cross)
    start[~open_] = 0.0
    top = float(start.max())  # lambda*: at it zero is optimal outside S, below it no more
    support = np.flatnonzero(open_)
    for below in BELOW:
        size = solve(problem, blocks, open_, cross / top, below)
        support = np.flatnonzero(size > SUPPORT * size.max())
        if len(support) == 1:
            break
    return int(support[0]), top


def solve(
    problem: ResidualProblem, blocks: FeatureBlocks, open_: Open, cross: Floats, below: float
) -> Floats:
    """Lengths of the LASSO's coefficients at lambda = (1 - below) lambda*, over below.

    ``cross`` has been divided by lambda*. Over ``below`` the coefficients stay of one size however near
    lambda* is, and no digits are lost.
    """
    lengths = blocks.norms(cross)
    reach = 2 * below
    while True:
        working = np.flatnonzero((lengths >= 1 - reach) & open_)
        columns = blocks.columns(working)
        rows = problem.products(columns)
        feature_of = blocks.feature_of[columns]
        parts = [np.flatnonzero(feature_of == f) for f in working]
        b = _descend(rows[:, columns], cross[columns], parts, below)
        # Optimality of all that was left out: its correlation stays within lambda.
        left = blocks.norms(cross - below * (rows.T @ b))
        left[working] = 0.0
        left[~open_] = 0.0
        if left.max() <= (1 - below) + 1e-3 * below:
            break
        reach *= 4
    size = np.zeros(blocks.count)
    full = np.zeros(cross.shape)
    full[columns] = b
    size[working] = blocks.norms(full)[working]
    return size


def _descend(square: Floats, cross: Floats, blocks: list[Any], below: float) -> Floats:
    """Block coordinate descent on 1/2 b'Hb - b'c / below + (1 - below) / below sum ||b_f||."""
    b = np.zeros(cross.shape)
    pull = np.zeros(cross.shape)  # H b
    bound = [max(float(np.linalg.norm(square[np.ix_(f, f)], 2)), np.finfo(float).tiny) for f in blocks]
    exact = EXACT + 16 * np.finfo(float).eps / below  # the rounding of ``cross``, as descent sees it
    for sweep in range(SWEEPS):
        if sweep % POLISH == POLISH - 1 and cross.shape[1] == 1 and len(blocks) == len(b):
            b = _polish(square, cross, b, below)
            pull = square @ b
        moved = 0.0
        for f, h in zip(blocks, bound, strict=True):
            old = b[f]
            new = _shrink(h * old - pull[f], cross[f], below) / h
            step = new - old
            if step.any():
                b[f] = new
                pull += square[:, f] @ step
                moved = max(moved, float(np.abs(step).max()))
        if moved <= exact * max(float(np.abs(b).max()), np.finfo(float).tiny):
            break
    return b


def _polish(square: Floats, cross: Floats, b: Floats, below: float) -> Floats:
    """The exact optimum on the support and signs reached so far, if it keeps them; descent can be slow."""
    support = np.flatnonzero(b)
    sign = np.sign(cross[support, 0])
    slack = 1.0 - (1.0 - np.abs(cross[support, 0])) / below
    signed = square[np.ix_(support, support)] * np.outer(sign, sign)
    size = lstsq(signed, slack)[0]
    if not len(support) or (size < 0).any():
        return b
    polished = np.zeros_like(b)
    polished[support, 0] = sign * size
    return polished


def _shrink(rest: Floats, cross: Floats, below: float) -> Floats:
    """``g (1 - t / ||g||)+`` for g = rest + cross / below and t = (1 - below) / below, digit for digit.

    Both are huge near lambda*; their difference is of the size of ``rest``.
    """
    g = cross + below * rest
    length = float(np.sqrt(np.sum(g * g)))
    plain = float(np.sqrt(np.sum(cross * cross)))
    if length == 0:
        return np.zeros_like(g)
    growth = (2 * np.sum(cross * rest) + below * np.sum(rest * rest)) / (length + plain)
    over = growth + 1.0 - (1.0 - plain) / below  # (length - (1 - below)) / below
    return np.asarray(g / length * max(0.0, float(over)))
