"""What speaks against a feature counts more where it has nothing to do with those chosen either."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from experiments.planted import planted
from scipy.stats import norm, pearsonr

import seqatt
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.score_penalty import UNRELATED_FACTOR, ScorePenalty, chance_correlation_p_value
from seqatt.training.screening.univariate_test import benjamini_hochberg


def table(rows=200, noise=30, seed=0):
    """Feature 0 decides, 1 and 2 have to do with 0 alone, the others with nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3 + noise))
    X[:, 1] += 2 * X[:, 0]
    X[:, 2] -= X[:, 0]
    return X, X[:, 0] > 0


def doubt_of(X, y, **options):
    source = read_table_data(X, y, **options)
    return ScorePenalty(draw_sample(source), np.where(np.arange(source.features) > 0, -1.0, 0.0))


def test_strangers_to_the_chosen_are_doubted_more():
    doubt = doubt_of(*table())
    before, after = doubt.given([]), doubt.given([0])
    assert before.tolist() == [0] + [-1] * 32
    np.testing.assert_allclose(after[:3], [0, -1, -1])
    assert after[3:].mean() < -1 - 0.9 * UNRELATED_FACTOR
    assert after[3:].min() >= -1 - UNRELATED_FACTOR


def test_a_correlation_is_tested_as_textbooks_do():
    X, y = table(rows=30, noise=10)
    doubt = doubt_of(X, y)
    closest = np.array([min(pearsonr(X[:, c], X[:, f]).pvalue for c in (0, 5)) for f in range(1, 13)])
    closest[4] = pearsonr(X[:, 0], X[:, 5]).pvalue  # a chosen one is held against the other alone
    tests = np.where(np.arange(1, 13) == 5, 1, 2)
    expected = 1 + UNRELATED_FACTOR * (
        1 - np.minimum(-np.log10(benjamini_hochberg(1 - (1 - closest) ** tests)), 2) / 2
    )
    np.testing.assert_allclose(-doubt.given([0, 5])[1:], expected, rtol=0.05)


@pytest.mark.parametrize("kind", ["normal", "rare", "skewed"])
def test_chance_is_what_shuffling_gives(kind):
    rng = np.random.default_rng(0)
    drawn = rng.random((2, 200))
    x, y = {"normal": norm.ppf(drawn), "rare": drawn < 0.03, "skewed": -np.log(drawn)}[kind].astype(float)
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    shuffled = np.array([x @ rng.permutation(y) / 200 for _ in range(20_000)])
    skew = np.array((x**3).mean() * (y**3).mean())
    for large in np.quantile(shuffled, [0.98, 0.999]):
        share = np.mean(np.abs(shuffled) >= large - 1e-9)
        assert share / 4 < chance_correlation_p_value(np.array(large), skew, 200) < 4 * share


def test_categories_of_many_levels_are_not_related_because_two_rare_ones_meet():
    rng = np.random.default_rng(0)
    drawn = {f"c{i}": rng.integers(0, 40, 1000).astype(str) for i in range(8)}
    source = read_table_data(pd.DataFrame(drawn), np.arange(1000) % 2)
    against = ScorePenalty(draw_sample(source), np.full(8, -1.0)).given([0, 1, 2])
    assert against.mean() < -1 - 0.8 * UNRELATED_FACTOR


def test_a_chosen_feature_is_no_relation_of_itself():
    X, y = table()
    doubt = doubt_of(X, y)
    assert doubt.given([5])[5] == -1 - UNRELATED_FACTOR
    assert doubt.given([3, 5])[5] < -2.5
    assert doubt.given([0, 1])[1] == -1


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_and_dense_tables_are_doubted_alike(monkeypatch, weighted):
    X = sp.random(80, 40, 0.3, random_state=0, format="csr").toarray()
    X[:, 1] = 2 * X[:, 0]
    options = {"sample_weight": np.random.default_rng(0).random(80)} if weighted else {}
    dense = doubt_of(X, X[:, 0] > 0, **options).given([0, 3])
    monkeypatch.setattr(encoding, "DENSE_CELLS", 0)
    closed = doubt_of(sp.csr_array(X), X[:, 0] > 0, **options).given([0, 3])
    np.testing.assert_allclose(closed, dense, atol=1e-5)
    assert dense[1] == -1


def test_groups_and_categories_are_related_by_any_of_their_columns():
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"x{i:02}" for i in range(33)])
    frame["z"] = pd.cut(frame["x00"], 4, labels=list("abcd"))
    frame["constant"] = 1.0
    source = read_table_data(frame, y, groups={"g": ["x05", "x02"], "h": ["x06", "x07"]})
    doubt = ScorePenalty(draw_sample(source), np.full(source.features, -1.0))
    found = dict(zip(source.names, doubt.given([source.names.index("x00")]), strict=True))
    assert found["g"] == found["z"] == -1
    assert found["h"] < -1.5
    assert found["constant"] == -1
    doubt.given([source.names.index("constant")])


def test_what_repeats_a_chosen_feature_comes_before_noise():
    """Of a planted problem's twenty useful features six say nothing alone: combinations of those that do."""
    data = planted(50)
    useful = np.array([not str(name).startswith("noise") for name in data.feature_names])
    rows = np.random.default_rng(0).permutation(2000)[:1600]
    chosen = seqatt.select(data.X[rows], data.y[rows], 20, seed=0).indices
    assert useful[chosen].sum() >= 17
