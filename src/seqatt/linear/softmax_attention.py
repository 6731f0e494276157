"""Linear Sequential Attention with a softmax: direct minimisation of the left side of Lemma 3.2.

    min over w, theta of ||X (softmax(w) o theta) - y||^2 + lambda / 2 (||w||^2 + ||theta||^2)

in columns and targets minus their projections on the selected columns. For a given w the best theta solves a
ridge regression; L-BFGS minimises over w and starts at the uniform softmax.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.residual_problem import ResidualProblem
from seqatt.linear.stepwise import FeatureMask
from seqatt.linear.threads import Floats

LAMBDA_RATIO = 10.0  # lambda over lambda*: so large that features hardly affect one another
MAX_FEATURES = 512  # features in the softmax: those most correlated with the residual


def choose_by_softmax(
    problem: ResidualProblem, blocks: FeatureBlocks, eligible: FeatureMask, cross: Floats
) -> tuple[int, float]:
    """The feature with the largest logit w, and its correlation with the residual."""
    scores = blocks.norms(cross)
    scores[~eligible] = 0.0
    working = np.sort(np.argsort(-scores, kind="stable")[: min(MAX_FEATURES, int(eligible.sum()))])
    columns = blocks.columns(working)
    feature_of = np.repeat(np.arange(len(working)), [len(blocks.columns(f)) for f in working])
    square = problem.products(columns)[:, columns]
    mean_square = max(float(np.trace(square)) / len(square), np.finfo(float).tiny)
    loss = max(problem.loss(), np.finfo(float).tiny)
    logits = softmax_logits(square / mean_square, cross[columns] / np.sqrt(mean_square * loss), feature_of)
    best = int(np.argmax(logits))
    return int(working[best]), float(scores[working[best]])


def softmax_logits(square: Floats, cross: Floats, feature_of: Any) -> Floats:
    """The optimal logits w, one per feature, for lambda = 10 lambda* and columns and target of length one."""
    largest = np.sqrt(np.bincount(feature_of, np.sum(cross**2, axis=1))).max()
    penalty = 2 * LAMBDA_RATIO * max(1.0, largest)
    objective = partial(_objective, square, cross, feature_of, penalty)
    uniform = np.zeros(int(feature_of[-1]) + 1)
    # Near the uniform softmax the logits are tiny; they are scaled by the size of the first gradient.
    unit = float(np.abs(objective(uniform)[1]).max()) / penalty
    if unit < 1e-100:
        return uniform  # all features are equally good

    def scaled_objective(v: Floats) -> tuple[float, Floats]:
        value, gradient = objective(unit * v)
        return value / (penalty * unit**2), gradient / (penalty * unit)

    options = {"maxiter": 500, "gtol": 1e-9}
    result = minimize(scaled_objective, uniform, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(unit * result.x)


def _objective(
    square: Floats, cross: Floats, feature_of: Any, penalty: float, w: Floats
) -> tuple[float, Floats]:
    """The objective at the best theta for ``w``, minus ||y||^2, and its gradient in w."""
    soft = np.exp(w - w.max())
    soft /= soft.sum()
    s = soft[feature_of][:, None]
    theta = cho_solve(cho_factor(s * square * s.T + penalty / 2 * np.eye(len(s))), s * cross)
    residual = square @ (s * theta) - cross  # X'(X (s o theta) - y)
    value = -np.sum(s * cross * theta) + penalty / 2 * (w @ w)
    grad_soft = np.bincount(feature_of, np.sum(2 * theta * residual, axis=1), len(w))
    return float(value), soft * (grad_soft - soft @ grad_soft) + penalty * w
