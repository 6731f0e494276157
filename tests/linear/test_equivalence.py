"""Theorems 1.1 and 1.2: OMP, Sequential LASSO and linear attention select the same sequence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import orthogonal_mp

from seqatt.linear import Gram, linear_attention, omp, sequential_lasso

DESIGNS = 300  # random problems per kind of design; 2,100 in total
SAME = 1e-7  # relative difference below which this test regards two scores as tied


def gaussian(rng, n, d):
    return rng.normal(size=(n, d)), rng.normal(size=n)


def correlated(rng, n, d):
    mixed = rng.normal(size=(n, d)) + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) * 2
    return mixed / np.linalg.norm(mixed, axis=0), mixed @ rng.normal(size=d) + rng.normal(size=n)


def ill_conditioned(rng, n, d):
    u, s, v = np.linalg.svd(rng.normal(size=(n, d)), full_matrices=False)
    return (u * np.geomspace(1, 1e-8, len(s))) @ v, rng.normal(size=n)


def wide(rng, n, d):
    X = rng.normal(size=(max(4, n // 3), d + n // 2))
    return X, X[:, :3] @ rng.normal(size=3) + 0.1 * rng.normal(size=len(X))


def duplicated(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, rng.integers(d // 2, d)] = X[:, rng.integers(0, d // 2)]
    X[:, -1] = -X[:, 0]
    return X, rng.normal(size=n)


def integers(rng, n, d):
    return rng.integers(-2, 3, size=(n, d)).astype(float), rng.integers(-3, 4, size=n).astype(float)


def binary(rng, n, d):
    return rng.integers(0, 2, size=(n, d)).astype(float), rng.integers(0, 2, size=n).astype(float)


CONTINUOUS = [gaussian, correlated, ill_conditioned, wide]
TIED = [duplicated, integers, binary]
ALGORITHMS = {"omp": omp, "sequential_lasso": sequential_lasso, "linear_attention": linear_attention}


def problems(make):
    for seed in range(DESIGNS):
        rng = np.random.default_rng([seed, len(make.__name__)])
        X, y = make(rng, int(rng.integers(6, 26)), int(rng.integers(4, 13)))
        yield X, y, min(4, *X.shape)


def correlations(X, y, chosen):
    """|X'(y - P y)|, with a least squares solver that none of the algorithms uses."""
    if not chosen:
        return np.abs(X.T @ y)
    fit = scipy.linalg.lstsq(X[:, chosen], y, lapack_driver="gelsy")[0]
    scores = np.abs(X.T @ (y - X[:, chosen] @ fit))
    scores[chosen] = 0.0
    return scores


def maximal(scores):
    return set(np.flatnonzero(scores >= scores.max() * (1 - SAME)).tolist())


def scikit_learn_omp(X, y, k):
    """The features that scikit-learn selects, and whether it warned that it stopped early."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coef = orthogonal_mp(X, y, n_nonzero_coefs=k)
    return set(np.flatnonzero(coef).tolist()), bool(caught)


@pytest.mark.slow
@pytest.mark.parametrize("make", CONTINUOUS)
def test_three_algorithms_select_the_same_sequence_and_scikit_learn_agrees(make):
    compared = 0
    for X, y, k in problems(make):
        paths = {name: choose(X, y, k).order for name, choose in ALGORITHMS.items()}
        assert paths["omp"] == paths["sequential_lasso"] == paths["linear_attention"]
        for step, chosen in enumerate(paths["omp"]):
            assert maximal(correlations(X, y, paths["omp"][:step])) == {chosen}
        expected, stopped_early = scikit_learn_omp(X, y, k)
        if not stopped_early:
            compared += 1
            assert set(paths["omp"]) == expected
    assert compared >= 0.9 * DESIGNS


@pytest.mark.slow
@pytest.mark.parametrize("make", TIED)
def test_with_ties_every_selected_feature_is_in_omps_maximal_set(make):
    """Theorem 3.3: if several features are maximal, any of them may be selected, but no other.

    OMP selects the lowest. The other two may skip it, because the support of the LASSO can be smaller than
    the tie. Their residuals then differ from OMP's, so each path is checked against its own residuals.
    """
    tied = same = 0
    for X, y, k in problems(make):
        paths = {name: choose(X, y, k) for name, choose in ALGORITHMS.items()}
        orders = [path.order for path in paths.values()]
        same += orders[0] == orders[1] == orders[2]
        for name, path in paths.items():
            for step, chosen in enumerate(path.order):
                best = maximal(correlations(X, y, path.order[:step]))
                tied += len(best) > 1
                assert chosen in best, name
                assert chosen == min(best) or name != "omp"
            if path.stopped:
                rest = correlations(X, y, path.order)
                assert rest.max() <= 1e-9 * np.linalg.norm(y) * np.linalg.norm(X, axis=0).max()
    assert tied > DESIGNS / 10
    assert same > DESIGNS / 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [gaussian, correlated, duplicated, binary])
def test_a_gram_and_the_rows_give_the_same_selection(make):
    for number, (X, y, k) in enumerate(problems(make)):
        if number % 5 == 0:
            gram = Gram.of(X, y)
            for choose in ALGORITHMS.values():
                assert choose(gram, k=k).order == choose(X, y, k).order


def test_the_algorithms_agree_for_several_targets_and_groups():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(20, 10)), rng.normal(size=(20, 3))
        groups = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5])
        orders = [choose(X, Y, 3, groups=groups).order for choose in ALGORITHMS.values()]
        assert orders[0] == orders[1] == orders[2]
        chosen = orders[0][:1]
        fit = np.linalg.lstsq(X[:, groups == chosen[0]], Y, rcond=None)[0]
        left = X.T @ (Y - X[:, groups == chosen[0]] @ fit)
        lengths = np.sqrt(np.bincount(groups, np.sum(left**2, axis=1)))
        lengths[chosen] = 0
        assert orders[0][1] == int(np.argmax(lengths))


def test_softmax_attention_selects_the_same_feature_if_the_best_is_clear():
    """The penalty of Lemma 3.2 is not that of the LASSO, so the two agree only without near ties."""
    clear = agreed = 0
    for X, y, k in problems(gaussian):
        X = X / np.linalg.norm(X, axis=0)
        order = linear_attention(X, y, k, parameterisation="softmax").order
        for step, chosen in enumerate(order):
            scores = correlations(X, y, order[:step])
            second, first = np.sort(scores)[-2:]
            if first > 1.05 * second:
                clear += 1
                agreed += chosen == int(np.argmax(scores))
    assert clear > 500
    assert agreed >= 0.99 * clear
