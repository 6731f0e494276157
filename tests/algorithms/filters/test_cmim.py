"""CMIM is what its definition says, worked out by hand from the table's rows."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.filters.binning import bin_values


def conditional(y, x, z, weights) -> float:
    """I(y; x | z) in nats, a sum over the triples that occur."""
    triples, pairs_y, pairs_x, singles = Counter(), Counter(), Counter(), Counter()
    there = weights > 0
    for a, b, c, w in zip(*(v[there].tolist() for v in (y, x, z, weights)), strict=True):
        triples[a, b, c] += w
        pairs_y[a, c] += w
        pairs_x[b, c] += w
        singles[c] += w
    total = sum(singles.values())
    return sum(
        w / total * log(w * singles[c] / (pairs_y[a, c] * pairs_x[b, c])) for (a, b, c), w in triples.items()
    )


def by_definition(X, targets, k, weights=None) -> tuple[list[int], list[float]]:
    """Every score anew at every choice; equal to twelve digits is equal, and the first of equals wins."""
    weights = np.ones(len(X)) if weights is None else weights
    nothing = np.zeros(len(X))
    chosen, scores = [], []
    for _ in range(k):
        worth = {}
        for n in set(range(X.shape[1])) - set(chosen):
            own = []
            for y in targets:
                known = [nothing, *(X[:, v] for v in chosen)]
                own.append(min(conditional(y, X[:, n], z, weights) for z in known))
            worth[n] = round(float(np.mean(own)), 12)
        best = min(worth, key=lambda n: (-worth[n], n))
        chosen.append(best)
        scores.append(worth[best])
    return chosen, scores


def random_table(seed: int, rows: int = 60, columns: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, a copy, and classes that some columns decide together."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, rng.integers(2, 5, size=columns), size=(rows, columns)).astype(float)
    X[:2] = [[0], [1]]  # no column is constant
    X[:, 3] = X[:, 1]
    y = (X[:, 0] + X[:, 1] * X[:, 2] + (rng.random(rows) < 0.2)).astype(int) % 3
    return X, y


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_definition_on_discrete_tables(seed):
    X, y = random_table(seed)
    order, scores = by_definition(X, [y], 7)
    found = seqatt.select(X, y, 7, method="cmim", bins=4, task="multiclass")
    assert found.indices.tolist() == order
    np.testing.assert_allclose(found.scores, scores, atol=1e-11)


@pytest.mark.parametrize("seed", range(10))
def test_weights_count_as_so_many_rows(seed):
    X, y = random_table(seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(X))
    weights[:2] = 1
    weighed = seqatt.select(X, y, 5, method="cmim", bins=4, task="multiclass", sample_weight=weights)
    repeated = seqatt.select(
        np.repeat(X, weights, 0), np.repeat(y, weights), 5, method="cmim", bins=4, task="multiclass"
    )
    assert weighed.indices.tolist() == repeated.indices.tolist() == by_definition(X, [y], 5, weights)[0]
    np.testing.assert_allclose(weighed.scores, repeated.scores, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_each_label_has_its_own_score_and_the_mean_decides(seed):
    X, y = random_table(seed)
    labels = np.stack([y == 1, y == 2, X[:, 4] > 0], 1).astype(int)
    order, scores = by_definition(X, list(labels.T), 5)
    found = seqatt.select(X, labels, 5, method="cmim", bins=4)
    assert found.indices.tolist() == order
    np.testing.assert_allclose(found.scores, scores, atol=1e-11)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
@pytest.mark.parametrize("seed", range(4))
def test_lazy_and_plain_choose_the_same(task, seed):
    X, y = linear_problem(task, features=20, seed=seed)
    lazy, plain = (seqatt.select(X, y, 12, method="cmim", lazy=lazy) for lazy in (True, False))
    assert lazy.indices.tolist() == plain.indices.tolist()
    assert lazy.scores.tolist() == plain.scores.tolist()


def test_lazy_counts_less(monkeypatch):
    from seqatt.algorithms.filters.joint_counts import JointCounts

    counted = []
    whole = JointCounts.information
    monkeypatch.setattr(JointCounts, "information", lambda self, *v: counted.append(v) or whole(self, *v))
    X, y = linear_problem("multiclass", features=40)
    tables = []
    for lazy in (True, False):
        counted.clear()
        seqatt.select(X, y, 10, method="cmim", lazy=lazy)
        tables.append(len(counted))
    assert tables[1] == 40 + sum(40 - chosen for chosen in range(1, 10))
    assert tables[0] < tables[1] / 2


def test_a_copy_says_nothing_new():
    X, y = random_table(0, rows=300)
    found = seqatt.select(X, y, 7, method="cmim", bins=4, task="multiclass")
    assert {1, 3} & set(found.indices[:3])
    assert not {1, 3} <= set(found.indices[:3])
    later = max(found.indices.tolist().index(1), found.indices.tolist().index(3))
    assert found.scores[later] == 0


def test_two_features_that_tell_only_together_are_found_once_one_is_known():
    rng = np.random.default_rng(0)
    a, b, noise = rng.integers(0, 2, size=(3, 4000))
    hint = np.where(rng.random(4000) < 0.6, a, 1 - a)
    y = 2 * (a ^ b) + hint
    X = np.stack([noise, b, a], 1)
    assert seqatt.select(X, y, 2, method="cmim").indices.tolist() == [2, 1]


def test_a_category_is_one_variable():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5, size=400)
    frame = pd.DataFrame({"colour": np.array(list("rgbyk"))[codes], "size": rng.integers(0, 3, 400)})
    y = (codes % 2).astype(int)
    found = seqatt.select(frame, y, 1, method="cmim")
    assert found.features == ["colour"]
    share = np.bincount(y) / 400  # the category decides: its information is the whole entropy
    np.testing.assert_allclose(found.scores, -(share @ np.log(share)), atol=1e-11)


def test_a_group_is_worth_its_best_variable_and_makes_all_of_them_known():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, size=(500, 5)).astype(float)
    y = (X[:, 0] + X[:, 3] + (rng.random(500) < 0.05) > 0).astype(int)
    X[:, 2] = X[:, 3]
    groups = {"pair": [0, 3], "noise": [1, 4]}
    found = seqatt.select(X, y, 3, method="cmim", groups=groups, lazy=False)
    nothing, even = np.zeros(500), np.ones(500)
    best = max(conditional(y, X[:, v], nothing, even) for v in (0, 3))
    assert found.features == ["pair", "noise", "x2"]  # x2 is a copy of what the pair holds
    np.testing.assert_allclose(found.scores[0], best, atol=1e-11)
    assert found.scores[2] == 0


def test_a_marked_gap_is_a_value():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    gone = rng.random(600) < 0.3
    X[gone, 2] = np.nan
    found = seqatt.select(X, gone.astype(int), 1, method="cmim", missing_indicator=True)
    share = np.bincount(gone) / 600
    assert found.indices.tolist() == [2]
    np.testing.assert_allclose(found.scores, -(share @ np.log(share)), atol=1e-11)


def test_sparse_tables_too_large_to_open_give_the_same(monkeypatch):
    rng = np.random.default_rng(4)
    X = sp.random(300, 100, density=0.2, random_state=rng, format="csr")
    y = (np.asarray(X[:, 70].todense()).ravel() > 0).astype(int)
    opened = seqatt.select(X, y, 5, method="cmim")
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 10)
    closed = seqatt.select(X, y, 5, method="cmim")
    assert opened.indices[0] == 70
    assert opened.indices.tolist() == closed.indices.tolist()


def test_bins_hold_equal_shares():
    values = np.random.default_rng(0).normal(size=1000)
    assert np.bincount(bin_values(values, 8)).tolist() == [125] * 8
    order = np.argsort(values)
    assert (np.diff(bin_values(values, 8)[order]) >= 0).all()


@pytest.mark.parametrize("frequent", [0.0, 0.5, 1.0])
def test_a_frequent_value_has_a_bin_of_its_own(frequent):
    rest = np.random.default_rng(0).random(100)
    codes = bin_values(np.r_[rest, np.full(900, frequent)], 4)
    assert len(set(codes[100:])) == 1
    assert codes[100] not in codes[:100]


def test_weighted_bins_are_those_of_repeated_rows():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=200).round(1), rng.integers(1, 5, size=200)
    repeated = bin_values(np.repeat(values, weights), 5)
    assert np.repeat(bin_values(values, 5, weights), weights).tolist() == repeated.tolist()


@pytest.mark.parametrize(
    ("rows", "classes", "bins"),
    [(60, 2, 2), (300, 2, 5), (6000, 10, 10), (100_000, None, 10), (300, None, 3)],
)
def test_bins_follow_the_rows(rows, classes, bins):
    rng = np.random.default_rng(0)
    y = rng.normal(size=rows) if classes is None else np.arange(rows) % classes
    found = seqatt.select(rng.normal(size=(rows, 2)), y, 1, method="cmim")
    assert found.settings["bins"] == bins


@pytest.mark.parametrize("bins", [1, 2.5, True, "many"])
def test_wrong_bins_are_told(bins, problem):
    with pytest.raises(ValueError, match="bins: must be a whole number of at least 2"):
        seqatt.select(*problem, 2, method="cmim", bins=bins)


def test_lazy_is_yes_or_no(problem):
    with pytest.raises(TypeError, match="lazy"):
        seqatt.select(*problem, 2, method="cmim", lazy=1)
