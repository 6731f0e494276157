"""Equations 4 and 5, lambda*, Lemma 3.2 and Lemma A's projection, by numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from seqatt.linear import q_star
from seqatt.linear.attention import attend
from seqatt.linear.inputs import make_design, read_blocks
from seqatt.linear.penalty import norm_of_logits
from seqatt.linear.residual import ResidualFromRows
from seqatt.linear.sequential_lasso import solve


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
    """Equation 4, Definition 3.1, as printed."""
    s = w.copy()
    s[chosen] = 1.0
    free = np.setdiff1d(np.arange(X.shape[1]), chosen)
    left = X @ (s * theta) - y
    return left @ left + penalty / 2 * (w @ w + theta[free] @ theta[free])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("chosen", [[], [1, 4]])
def test_equation_5_has_the_optimum_of_equation_4(seed, chosen):
    X, y, problem, _ = reduced(seed)
    problem.choose(np.array(chosen, dtype=np.intp))
    penalty = 2 * np.abs(problem.correlations()).max() * 0.5
    d = X.shape[1]
    rng = np.random.default_rng(seed)
    tried = [
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
    assert min(tried) == pytest.approx(lasso_objective(X, y, chosen, b, penalty), rel=1e-7)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("below", [0.3, 0.05, 1e-3])
def test_our_lasso_and_our_attention_find_scikit_learns_lasso(seed, below):
    X, y, problem, blocks = reduced(seed)
    problem.choose(np.array([2]))
    cross = problem.correlations()
    cross[2] = 0
    top = np.abs(cross).max()
    free = np.arange(6) != 2
    project = np.eye(len(X)) - np.outer(X[:, 2], X[:, 2]) / (X[:, 2] @ X[:, 2])
    model = Lasso(alpha=(1 - below) * top / len(X), fit_intercept=False, tol=1e-14, max_iter=10**6)
    size = np.zeros(6)
    size[free] = np.abs(model.fit(project @ X[:, free], project @ y).coef_)
    ours = solve(problem, blocks, free, cross / top, below)
    np.testing.assert_allclose(ours * below * top, size, atol=1e-6 * size.max())
    weights = attend(problem, blocks, free, cross / top, below)
    # At the optimum |w| is the root of the coefficient.
    np.testing.assert_allclose(weights**2 / (weights**2).max(), size / size.max(), atol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_lambda_star_is_where_the_lasso_wakes_up(seed):
    X, y, problem, _ = reduced(seed)
    problem.choose(np.array([0, 3]))
    top = np.abs(problem.correlations()).max()
    project = np.eye(len(X)) - X[:, [0, 3]] @ np.linalg.pinv(X[:, [0, 3]])
    for factor, awake in ((1 + 1e-6, False), (1 - 1e-4, True)):
        model = Lasso(alpha=factor * top / len(X), fit_intercept=False, tol=1e-14, max_iter=10**6)
        assert model.fit(project @ X[:, [1, 2, 4, 5]], project @ y).coef_.any() == awake


@pytest.mark.parametrize("seed", range(4))
def test_both_sides_of_lemma_3_2_have_one_infimum(seed):
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
    one = min(minimize(left, start, options={"gtol": 1e-9}).fun for start in starts)
    corners = [fit * [1, 0.05], fit * [0.05, 1], fit * 0.3]
    precise = {"xatol": 1e-5, "fatol": 1e-9}
    other = min(minimize(right, start, method="Nelder-Mead", options=precise).fun for start in corners)
    assert one == pytest.approx(other, rel=1e-6)


def test_q_star_is_the_infimum_a_fine_grid_finds():
    p = np.linspace(1e-5, 1 - 1e-5, 200_001)
    q = np.array([1 / p**2, 1 / (1 - p) ** 2])
    logits = 0.5 * (np.log(p) - np.log1p(-p)) ** 2
    assert norm_of_logits(q[:, 70_000]) == pytest.approx(logits[70_000], rel=1e-9)
    for beta in ([0.1, 0.1], [1.0, 0.3], [2.0, 2.0], [9.0, 0.5], [30.0, 0.0], [0.01, 5.0]):
        grid = (np.square(beta) @ q + logits).min()
        assert q_star(beta) == pytest.approx(grid, rel=1e-6)


def test_q_star_prefers_one_feature_to_two():
    """Concave beyond |b1| + |b2| = 2, as the paper's figure suggests: mixing two ends never costs less."""
    assert q_star([0.0, 0.0]) == 0.0
    assert q_star([4.0, 0.0]) == pytest.approx(q_star([0.0, -4.0]))
    edge = q_star(np.stack([np.linspace(0, 4, 41), 4 - np.linspace(0, 4, 41)], axis=1))
    assert edge.argmax() == 20
    assert (np.diff(edge[:21]) > 0).all()


def test_bad_coefficients_are_refused():
    with pytest.raises(ValueError, match="beta: must hold finite"):
        q_star([np.nan, 1.0])
