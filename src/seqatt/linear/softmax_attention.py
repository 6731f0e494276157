"""Linear Sequential Attention with a softmax: the left side of Lemma 3.2, minimised as it stands.

    min over w, theta of ||X (softmax(w) o theta) - y||^2 + lambda / 2 (||w||^2 + ||theta||^2)

in columns and targets less what the chosen features explain. For a given w the best theta solves a ridge
regression; L-BFGS goes over w, from the even softmax on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.residual import ResidualProblem
from seqatt.linear.threads import Floats

STRONG = 10.0  # lambda over lambda*: so far above that features hardly see one another
MOST = 512  # features that attention is shared among: those most correlated with the residual


def choose_by_softmax(
    problem: ResidualProblem, blocks: FeatureBlocks, open_: NDArray[np.bool_], cross: Floats
) -> tuple[int, float]:
    """The feature with the largest logit w, and its correlation with the residual."""
    start = blocks.norms(cross)
    start[~open_] = 0.0
    working = np.sort(np.argsort(-start, kind="stable")[: min(MOST, int(open_.sum()))])
    columns = blocks.columns(working)
    feature_of = np.repeat(np.arange(len(working)), [len(blocks.columns(f)) for f in working])
    square = problem.products(columns)[:, columns]
    length = max(float(np.trace(square)) / len(square), np.finfo(float).tiny)
    energy = max(problem.loss(), np.finfo(float).tiny)
    logits = soften(square / length, cross[columns] / np.sqrt(length * energy), feature_of)
    best = int(np.argmax(logits))
    return int(working[best]), float(start[working[best]])


def soften(square: Floats, cross: Floats, feature_of: Any, strength: float | None = None) -> Floats:
    """The logits at the optimum, for columns and target of length one; by default lambda is strong."""
    top = np.sqrt(np.bincount(feature_of, np.sum(cross**2, axis=1))).max()
    penalty = 2 * STRONG * max(1.0, top) if strength is None else strength
    objective = partial(_objective, square, cross, feature_of, penalty)
    even = np.zeros(int(feature_of[-1]) + 1)
    # Near the even softmax the logits are tiny: measured in units of their first gradient.
    unit = float(np.abs(objective(even)[1]).max()) / penalty
    if unit < 1e-100:
        return even  # all features alike

    def scaled(v: Floats) -> tuple[float, Floats]:
        value, slope = objective(unit * v)
        return value / (penalty * unit**2), slope / (penalty * unit)

    found = minimize(scaled, even, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-9})
    return np.asarray(unit * found.x)


def _objective(
    square: Floats, cross: Floats, feature_of: Any, penalty: float, w: Floats
) -> tuple[float, Floats]:
    """The objective at the best theta for ``w``, up to ||y||^2, and its slope in w."""
    soft = np.exp(w - w.max())
    soft /= soft.sum()
    s = soft[feature_of][:, None]
    theta = cho_solve(cho_factor(s * square * s.T + penalty / 2 * np.eye(len(s))), s * cross)
    pull = square @ (s * theta) - cross
    value = -np.sum(s * cross * theta) + penalty / 2 * (w @ w)
    on_soft = np.bincount(feature_of, np.sum(2 * theta * pull, axis=1), len(w))
    return float(value), soft * (on_soft - soft @ on_soft) + penalty * w
