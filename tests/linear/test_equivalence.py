"""Theorems 1.1 and 1.2: OMP, Sequential LASSO and linear attention choose the same features, one by one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import orthogonal_mp

from seqatt.linear import Gram, linear_attention, omp, sequential_lasso

DESIGNS = 300  # of each kind: 2,100 in all
SAME = 1e-7  # scores closer than this, relatively, are a tie as far as this test can tell


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
    """|X'(y - P y)|, by a least squares solver that none of the algorithms use."""
    if not chosen:
        return np.abs(X.T @ y)
    fit = scipy.linalg.lstsq(X[:, chosen], y, lapack_driver="gelsy")[0]
    scores = np.abs(X.T @ (y - X[:, chosen] @ fit))
    scores[chosen] = 0.0
    return scores


def maximal(scores):
    return set(np.flatnonzero(scores >= scores.max() * (1 - SAME)).tolist())


def stopped_early_by_scikit_learn(X, y, k):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coef = orthogonal_mp(X, y, n_nonzero_coefs=k)
    return set(np.flatnonzero(coef).tolist()), bool(caught)


@pytest.mark.parametrize("make", CONTINUOUS)
def test_three_algorithms_choose_one_sequence_and_scikit_learn_agrees(make):
    compared = 0
    for X, y, k in problems(make):
        found = {name: choose(X, y, k).order for name, choose in ALGORITHMS.items()}
        assert found["omp"] == found["sequential_lasso"] == found["linear_attention"]
        for step, chosen in enumerate(found["omp"]):
            assert maximal(correlations(X, y, found["omp"][:step])) == {chosen}
        theirs, early = stopped_early_by_scikit_learn(X, y, k)
        if not early:
            compared += 1
            assert set(found["omp"]) == theirs
    assert compared >= 0.9 * DESIGNS


@pytest.mark.parametrize("make", TIED)
def test_with_ties_every_choice_lies_in_omps_maximal_set(make):
    """Theorem 3.3: where several features are maximal any may come, but never another.

    OMP takes the lowest. The others may pass it over (the LASSO's support can be smaller than the tie), after
    which they stand before another residual; each is judged on its own way.
    """
    tied = same = 0
    for X, y, k in problems(make):
        found = {name: choose(X, y, k) for name, choose in ALGORITHMS.items()}
        ways = [path.order for path in found.values()]
        same += ways[0] == ways[1] == ways[2]
        for name, path in found.items():
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


@pytest.mark.parametrize("make", [gaussian, correlated, duplicated, binary])
def test_a_gram_gives_what_the_rows_give(make):
    for number, (X, y, k) in enumerate(problems(make)):
        if number % 5 == 0:
            gram = Gram.of(X, y)
            for choose in ALGORITHMS.values():
                assert choose(gram, k=k).order == choose(X, y, k).order


def test_several_targets_and_groups_agree_as_well():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(20, 10)), rng.normal(size=(20, 3))
        groups = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5])
        found = [choose(X, Y, 3, groups=groups).order for choose in ALGORITHMS.values()]
        assert found[0] == found[1] == found[2]
        chosen = found[0][:1]
        fit = np.linalg.lstsq(X[:, groups == chosen[0]], Y, rcond=None)[0]
        left = X.T @ (Y - X[:, groups == chosen[0]] @ fit)
        lengths = np.sqrt(np.bincount(groups, np.sum(left**2, axis=1)))
        lengths[chosen] = 0
        assert found[0][1] == int(np.argmax(lengths))


def test_softmax_attention_chooses_the_same_where_the_best_is_clear():
    """Lemma 3.2's penalty is not the LASSO's: only clear cases are promised."""
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
