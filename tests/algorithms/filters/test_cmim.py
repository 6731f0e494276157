"""CMIM against its definition, computed row by row."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.filters.joint_counts import JointCounts
from seqatt.algorithms.filters.variables import bin_values


def conditional(y, x, z, weights) -> float:
    """I(y; x | z) in nats: a sum over the triples that occur."""
    triples, pairs_y, pairs_x, singles = Counter(), Counter(), Counter(), Counter()
    positive = weights > 0
    for a, b, c, w in zip(*(v[positive].tolist() for v in (y, x, z, weights)), strict=True):
        triples[a, b, c] += w
        pairs_y[a, c] += w
        pairs_x[b, c] += w
        singles[c] += w
    total = sum(singles.values())
    return sum(
        w / total * log(w * singles[c] / (pairs_y[a, c] * pairs_x[b, c])) for (a, b, c), w in triples.items()
    )


def by_definition(X, targets, k, weights=None) -> tuple[list[int], list[float]]:
    """Every score computed for every selection; scores equal to twelve digits are a tie, won by the lowest index."""
    weights = np.ones(len(X)) if weights is None else weights
    no_condition = np.zeros(len(X))
    selected, selected_scores = [], []
    for _ in range(k):
        scores = {}
        for n in set(range(X.shape[1])) - set(selected):
            per_target = []
            for y in targets:
                conditions = [no_condition, *(X[:, v] for v in selected)]
                per_target.append(min(conditional(y, X[:, n], z, weights) for z in conditions))
            scores[n] = round(float(np.mean(per_target)), 12)
        best = min(scores, key=lambda n: (-scores[n], n))
        selected.append(best)
        selected_scores.append(scores[best])
    return selected, selected_scores


def random_table(seed: int, rows: int = 60, columns: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Small integers, column 3 a copy of column 1, and classes that depend on columns 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, rng.integers(2, 5, size=columns), size=(rows, columns)).astype(float)
    X[:2] = [[0], [1]]  # no column is constant
    X[:, 3] = X[:, 1]
    y = (X[:, 0] + X[:, 1] * X[:, 2] + (rng.random(rows) < 0.2)).astype(int) % 3
    return X, y


@pytest.mark.parametrize("seed", range(40))
def test_it_follows_its_definition_on_discrete_tables(seed):
    X, y = random_table(seed)
    order, scores = by_definition(X, [y], 7)
    selection = seqatt.select(X, y, 7, method="cmim", bins=4, task="multiclass")
    assert selection.indices.tolist() == order
    np.testing.assert_allclose(selection.scores, scores, atol=1e-11)


@pytest.mark.parametrize("seed", range(10))
def test_a_row_of_weight_w_counts_as_w_rows(seed):
    X, y = random_table(seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(X))
    weights[:2] = 1
    weighted = seqatt.select(X, y, 5, method="cmim", bins=4, task="multiclass", sample_weight=weights)
    repeated = seqatt.select(
        np.repeat(X, weights, 0), np.repeat(y, weights), 5, method="cmim", bins=4, task="multiclass"
    )
    assert weighted.indices.tolist() == repeated.indices.tolist() == by_definition(X, [y], 5, weights)[0]
    np.testing.assert_allclose(weighted.scores, repeated.scores, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_score_is_the_mean_of_the_scores_per_label(seed):
    X, y = random_table(seed)
    labels = np.stack([y == 1, y == 2, X[:, 4] > 0], 1).astype(int)
    order, scores = by_definition(X, list(labels.T), 5)
    selection = seqatt.select(X, labels, 5, method="cmim", bins=4)
    assert selection.indices.tolist() == order
    np.testing.assert_allclose(selection.scores, scores, atol=1e-11)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
@pytest.mark.parametrize("seed", range(4))
def test_lazy_and_exhaustive_search_select_the_same(task, seed):
    X, y = linear_problem(task, features=20, seed=seed)
    lazy, exhaustive = (seqatt.select(X, y, 12, method="cmim", lazy=lazy) for lazy in (True, False))
    assert lazy.indices.tolist() == exhaustive.indices.tolist()
    assert lazy.scores.tolist() == exhaustive.scores.tolist()


def test_lazy_search_counts_fewer_tables(monkeypatch):
    calls = []
    information = JointCounts.information
    monkeypatch.setattr(JointCounts, "information", lambda self, *v: calls.append(v) or information(self, *v))
    X, y = linear_problem("multiclass", features=40)
    tables = {}
    for lazy in (True, False):
        calls.clear()
        seqatt.select(X, y, 10, method="cmim", lazy=lazy)
        tables[lazy] = len(calls)
    assert tables[False] == 40 + sum(40 - selected for selected in range(1, 10))
    assert tables[True] < tables[False] / 2


def test_a_copy_of_a_selected_feature_has_a_score_of_zero():
    X, y = random_table(0, rows=300)
    selection = seqatt.select(X, y, 7, method="cmim", bins=4, task="multiclass")
    assert {1, 3} & set(selection.indices[:3])
    assert not {1, 3} <= set(selection.indices[:3])
    later = max(selection.indices.tolist().index(1), selection.indices.tolist().index(3))
    assert selection.scores[later] == 0


def test_a_feature_that_is_informative_only_beside_a_selected_one_is_found():
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
    selection = seqatt.select(frame, y, 1, method="cmim")
    assert selection.features == ["colour"]
    share = np.bincount(y) / 400  # the category determines the class: its information is the entropy
    np.testing.assert_allclose(selection.scores, -(share @ np.log(share)), atol=1e-11)


def test_a_group_has_the_score_of_its_best_variable_and_conditions_on_all_of_them():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, size=(500, 5)).astype(float)
    y = (X[:, 0] + X[:, 3] + (rng.random(500) < 0.05) > 0).astype(int)
    X[:, 2] = X[:, 3]
    groups = {"pair": [0, 3], "noise": [1, 4]}
    selection = seqatt.select(X, y, 3, method="cmim", groups=groups, lazy=False)
    best = max(conditional(y, X[:, v], np.zeros(500), np.ones(500)) for v in (0, 3))
    assert selection.features == ["pair", "noise", "x2"]  # x2 is a copy of a column of the pair
    np.testing.assert_allclose(selection.scores[0], best, atol=1e-11)
    assert selection.scores[2] == 0


def test_a_missing_value_with_an_indicator_is_a_value_of_its_own():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    missing = rng.random(600) < 0.3
    X[missing, 2] = np.nan
    selection = seqatt.select(X, missing.astype(int), 1, method="cmim", missing_indicator=True)
    share = np.bincount(missing) / 600
    assert selection.indices.tolist() == [2]
    np.testing.assert_allclose(selection.scores, -(share @ np.log(share)), atol=1e-11)


def test_a_sparse_table_that_is_never_made_dense_gives_the_same_selection(monkeypatch):
    rng = np.random.default_rng(4)
    X = sp.random(300, 100, density=0.2, random_state=rng, format="csr")
    y = (np.asarray(X[:, 70].todense()).ravel() > 0).astype(int)
    made_dense = seqatt.select(X, y, 5, method="cmim")
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 10)
    kept_sparse = seqatt.select(X, y, 5, method="cmim")
    assert made_dense.indices[0] == 70
    assert made_dense.indices.tolist() == kept_sparse.indices.tolist()


def test_bins_have_equal_numbers_of_values():
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


def test_weighted_bins_are_those_of_repeated_values():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=200).round(1), rng.integers(1, 5, size=200)
    repeated = bin_values(np.repeat(values, weights), 5)
    assert np.repeat(bin_values(values, 5, weights), weights).tolist() == repeated.tolist()


@pytest.mark.parametrize(
    ("rows", "classes", "bins"),
    [(60, 2, 2), (300, 2, 5), (6000, 10, 10), (100_000, None, 10), (300, None, 3)],
)
def test_the_default_number_of_bins_depends_on_the_rows(rows, classes, bins):
    rng = np.random.default_rng(0)
    y = rng.normal(size=rows) if classes is None else np.arange(rows) % classes
    selection = seqatt.select(rng.normal(size=(rows, 2)), y, 1, method="cmim")
    assert selection.settings["bins"] == bins


@pytest.mark.parametrize("bins", [1, 2.5, True, "many"])
def test_an_invalid_number_of_bins_is_an_error(bins, problem):
    with pytest.raises(ValueError, match="bins: must be a whole number of at least 2"):
        seqatt.select(*problem, 2, method="cmim", bins=bins)


def test_lazy_must_be_a_boolean(problem):
    with pytest.raises(TypeError, match="lazy"):
        seqatt.select(*problem, 2, method="cmim", lazy=1)
