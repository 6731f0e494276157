"""Q*: the penalty on the coefficients that softmax attention amounts to, Lemma 3.2.

    Q*(x) = inf over q in ran(D) of sum x_i q_i + Q(q),  D(w)_i = 1 / softmax_i(w)^2,  x = beta o beta

ran(D) is the set of q whose 1 / sqrt(q_i) sum to 1. Q(q) is the squared length of the shortest logits with
those softmax weights, which are the logarithms of the weights minus their mean.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from seqatt.linear.threads import Floats


def q_star(beta: Any) -> Any:
    """``Q*(beta o beta)``, the infimum over softmax weights p of ``sum (beta_i / p_i)^2 + Q(1 / p^2)``.

    Parameters
    ----------
    beta : (m,) coefficients of the unselected features, or (..., m) for several vectors at once.

    Returns
    -------
    float for ``beta`` of shape (m,), else an array of shape (...).

    Examples
    --------
    >>> from seqatt.linear import q_star
    >>> q_star([0.0, 0.0])
    0.0
    >>> bool(q_star([4.0, 0.0]) < q_star([2.0, 2.0]))
    True
    """
    values = np.asarray(beta, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] == 0 or not np.isfinite(values).all():
        raise ValueError("beta: must hold finite coefficients, at least one, in its last axis")
    vectors = np.abs(values).reshape(-1, values.shape[-1])
    infima = np.array([_infimum(vector) for vector in vectors])
    return float(infima[0]) if values.ndim == 1 else infima.reshape(values.shape[:-1])


def _infimum(beta: Floats) -> float:
    """Minimise over the logarithms of p. The objective is not convex, hence several starting points."""
    if len(beta) == 1:
        return float(beta[0] ** 2)
    m = len(beta)
    share = beta / beta.sum() if beta.any() else np.full(m, 1 / m)
    roots = np.cbrt(beta**2)
    optimum = roots / roots.sum() if beta.any() else share  # minimises sum (beta_i / p_i)^2 without Q
    starts = [np.zeros(m), np.log(optimum + 1e-3), np.log(share + 1e-3)]
    largest = np.argsort(-beta, kind="stable")[: min(m, 4)]
    starts += [np.where(np.arange(m) == i, 2.0, 0.0) for i in largest]
    options = {"maxiter": 2000, "gtol": 1e-10, "ftol": 1e-15}
    objective = partial(_objective, beta)
    minima = [
        minimize(objective, start - start.mean(), jac=True, method="L-BFGS-B", options=options).fun
        for start in starts
    ]
    return max(0.0, float(min(minima)))


def _objective(beta: Floats, w: Floats) -> tuple[float, Floats]:
    """sum (beta_i / softmax_i(w))^2 + ||w - mean(w)||^2 and its gradient."""
    largest = w.max()
    log_sum = np.log(np.sum(np.exp(w - largest))) + largest
    logs = np.clip(w - log_sum, -300, 0)
    soft = np.exp(logs)
    terms = (beta / soft) ** 2
    centred = w - w.mean()
    return float(terms.sum() + centred @ centred), -2 * terms + 2 * terms.sum() * soft + 2 * centred
