"""Numerical checks of equations 4 and 5, lambda*, Lemma 3.2 and the projection of Lemma A."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from seqatt.linear import q_star
from seqatt.linear.attention import attention_weights
from seqatt.linear.inputs import make_design, read_blocks
from seqatt.linear.residual_problem import ResidualFromRows
from seqatt.linear.sequential_lasso import solve_lasso


def reduced(seed, n=15, d=6):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    design, targets, _ = make_design(X, y, None, centre=False, scale=False)
    return X, y, ResidualFromRows(design, targets), read_blocks(None, d)


def lasso_objective(X, y, chosen, b, penalty):
    """Equation 5 of the paper, minimised over the chosen coordinates."""
    left = y - X @ b
    if chosen:
        left = left - X[:, chosen] @ np.linalg.lstsq(X[:, chosen], left, rcond=None)[0]
    free = np.setdiff1d(np.arange(X.shape[1]), chosen)
    return left @ left + penalty * np.abs(b[free]).sum()


def attention_objective(X, y, chosen, w, theta, penalty):
    """Equation 4 (Definition 3.1) as printed in the paper."""
    s = w.copy()
    s[chosen] = 1.0
    free = np.setdiff1d(np.arange(X.shape[1]), chosen)
    left = X @ (s * theta) - y
    return left @ left + penalty / 2 * (w @ w + theta[free] @ theta[free])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("chosen", [[], [1, 4]])
def test_equation_5_has_the_optimum_of_equation_4(seed, chosen):
    X, y, problem, _ = reduced(seed)
    problem.add(np.array(chosen, dtype=np.intp))
    penalty = 2 * np.abs(problem.correlations()).max() * 0.5
    d = X.shape[1]
    rng = np.random.default_rng(seed)
    minima = [
        minimize(
            lambda v: attention_objective(X, y, chosen, v[:d], v[d:], penalty),
            rng.normal(size=2 * d),
            options={"gtol": 1e-9},
        ).fun
        for _ in range(3)
    ]
    project = np.eye(len(X))
    if chosen:
        project -= X[:, chosen] @ np.linalg.pinv(X[:, chosen])
    free = np.setdiff1d(np.arange(d), chosen)
    lasso = Lasso(alpha=penalty / 2 / len(X), fit_intercept=False, tol=1e-12, max_iter=10**6)
    b = np.zeros(d)
    b[free] = lasso.fit(project @ X[:, free], project @ y).coef_
    assert min(minima) == pytest.approx(lasso_objective(X, y, chosen, b, penalty), rel=1e-7)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.3, 0.05, 1e-3])
def test_lasso_and_attention_agree_with_scikit_learns_lasso(seed, epsilon):
    X, y, problem, blocks = reduced(seed)
    problem.add(np.array([2]))
    cross = problem.correlations()
    cross[2] = 0
    lambda_star = np.abs(cross).max()
    free = np.arange(6) != 2
    project = np.eye(len(X)) - np.outer(X[:, 2], X[:, 2]) / (X[:, 2] @ X[:, 2])
    model = Lasso(alpha=(1 - epsilon) * lambda_star / len(X), fit_intercept=False, tol=1e-14, max_iter=10**6)
    expected = np.zeros(6)
    expected[free] = np.abs(model.fit(project @ X[:, free], project @ y).coef_)
    coef = solve_lasso(problem, blocks, free, cross / lambda_star, epsilon)
    np.testing.assert_allclose(coef * epsilon * lambda_star, expected, atol=1e-6 * expected.max())
    weights = attention_weights(problem, blocks, free, cross / lambda_star, epsilon)
    # At the optimum |w| is the square root of the absolute coefficient.
    np.testing.assert_allclose(weights**2 / (weights**2).max(), expected / expected.max(), atol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_lasso_coefficients_are_zero_above_lambda_star_and_not_below(seed):
    X, y, problem, _ = reduced(seed)
    problem.add(np.array([0, 3]))
    lambda_star = np.abs(problem.correlations()).max()
    project = np.eye(len(X)) - X[:, [0, 3]] @ np.linalg.pinv(X[:, [0, 3]])
    for factor, nonzero in ((1 + 1e-6, False), (1 - 1e-4, True)):
        model = Lasso(alpha=factor * lambda_star / len(X), fit_intercept=False, tol=1e-14, max_iter=10**6)
        assert model.fit(project @ X[:, [1, 2, 4, 5]], project @ y).coef_.any() == nonzero


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_sides_of_lemma_3_2_have_the_same_infimum(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(10, 2)), 3 * rng.normal(size=10)
    penalty = rng.choice([0.3, 1.0, 5.0])

    def left(v):
        soft = np.exp(v[:2] - v[:2].max())
        soft /= soft.sum()
        error = X @ (soft * v[2:]) - y
        return error @ error + penalty / 2 * (v[:2] @ v[:2] + v[2:] @ v[2:])

    def right(b):
        error = X @ b - y
        return error @ error + penalty / 2 * q_star(b)

    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    starts = [rng.normal(size=4) * 2 for _ in range(12)]
    left_minimum = min(minimize(left, start, options={"gtol": 1e-9}).fun for start in starts)
    corners = [fit * [1, 0.05], fit * [0.05, 1], fit * 0.3]
    precise = {"xatol": 1e-5, "fatol": 1e-9}
    right_minimum = min(
        minimize(right, start, method="Nelder-Mead", options=precise).fun for start in corners
    )
    assert left_minimum == pytest.approx(right_minimum, rel=1e-6)


def norm_of_logits(q) -> float:
    """``Q(q)``: the squared length of the shortest w with ``D(w) = q``."""
    logs = -0.5 * np.log(q)
    return np.sum((logs - logs.mean()) ** 2)


def test_q_star_equals_the_minimum_on_a_fine_grid():
    p = np.linspace(1e-5, 1 - 1e-5, 200_001)
    q = np.array([1 / p**2, 1 / (1 - p) ** 2])
    logits = 0.5 * (np.log(p) - np.log1p(-p)) ** 2
    assert norm_of_logits(q[:, 70_000]) == pytest.approx(logits[70_000], rel=1e-9)
    for beta in ([0.1, 0.1], [1.0, 0.3], [2.0, 2.0], [9.0, 0.5], [30.0, 0.0], [0.01, 5.0]):
        grid = (np.square(beta) @ q + logits).min()
        assert q_star(beta) == pytest.approx(grid, rel=1e-6)


def test_q_star_is_smaller_for_one_feature_than_for_two():
    """Beyond |b1| + |b2| = 2, Q* is concave, as in the paper's figure: a mixture never costs less."""
    assert q_star([0.0, 0.0]) == 0.0
    assert q_star([4.0, 0.0]) == pytest.approx(q_star([0.0, -4.0]))
    edge = q_star(np.stack([np.linspace(0, 4, 41), 4 - np.linspace(0, 4, 41)], axis=1))
    assert edge.argmax() == 20
    assert (np.diff(edge[:21]) > 0).all()


def test_invalid_coefficients_raise():
    with pytest.raises(ValueError, match="beta: must hold finite"):
        q_star([np.nan, 1.0])
