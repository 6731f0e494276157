"""The univariate test: exact where a textbook test is, not significant for noise."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from scipy.special import fdtrc
from scipy.stats import kstest
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import f_classif, f_regression

import seqatt
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import read_table_data, take_rows
from seqatt.training.defaults import default_univariate_test
from seqatt.training.screening import row_sample
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.univariate_test import (
    _permuted_moments,
    _quantiles,
    _target_basis,
    _test_codes,
    _test_numbers,
    benjamini_hochberg,
    univariate_test,
)


def table(rows=80, features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=rows), rng


def log_q_values(data):
    return univariate_test(draw_sample(data)).log_q


def p_values(data):
    sample = draw_sample(data)
    return _test_numbers(sample, _target_basis(sample))[0]


def test_p_values_of_one_column_agree_with_analysis_of_variance_and_correlation():
    X, y, _ = table()
    np.testing.assert_allclose(p_values(read_table_data(X, y)), f_regression(X, y)[1], atol=1e-6)
    three = np.digitize(y, [-1, 1])
    np.testing.assert_allclose(p_values(read_table_data(X, three)), f_classif(X, three)[1], atol=1e-6)


def test_the_explained_share_is_the_adjusted_r_squared_or_that_of_bins():
    X, y, _ = table(rows=2000)
    y = y + 2 * X[:, 2] ** 2
    explained = univariate_test(draw_sample(read_table_data(X, y))).explained
    r2 = np.corrcoef(np.column_stack([X[:, 0], y]), rowvar=False)[0, 1] ** 2
    assert explained[0] == pytest.approx(
        1 - (1 - r2) * 1999 / 1998, abs=0.02
    )  # bins may explain a little more
    assert 0.3 < explained[2] < 8 / (8 + 1.25 + 1)  # a square, which no line shows, in a few bins
    assert np.abs(explained[3:]).max() < 0.02
    assert np.all(univariate_test(draw_sample(read_table_data(X[:, :3] * [1, 0, 1], y))).explained[1] == 0)


def test_sparse_and_dense_tables_give_the_same():
    rng = np.random.default_rng(0)
    X = sp.random(100, 40_000, 0.02, random_state=0, format="csr")
    y = np.asarray(X[:, 3].toarray().ravel() > 0) | (rng.random(100) < 0.4)
    dense, sparse = read_table_data(X.toarray(), y), read_table_data(sp.csr_array(X), y)
    np.testing.assert_allclose(log_q_values(sparse), log_q_values(dense), atol=1e-4)


def test_a_group_is_tested_as_one_feature():
    X, y, _ = table()
    grouped = log_q_values(read_table_data(X, y, groups={"pair": [0, 1], "noise": [2, 3, 4]}))
    assert grouped[0] > 4
    assert grouped[1] < 1
    copies = np.column_stack([X[:, 0], 2 * X[:, 0], X[:, 5:]])
    twice = p_values(read_table_data(copies, y, groups={"same": [0, 1]}))
    assert twice[0] == pytest.approx(f_regression(X[:, :1], y)[1][0], abs=1e-6)


def test_integer_weights_repeat_rows_and_uneven_weights_lower_significance():
    X, y, rng = table(rows=200)
    one = log_q_values(read_table_data(X, y))[0]
    repeats = rng.integers(1, 4, 200)
    repeated = log_q_values(read_table_data(X.repeat(repeats, 0), y.repeat(repeats)))
    np.testing.assert_allclose(
        log_q_values(read_table_data(X, y, sample_weight=repeats)), repeated, atol=1e-4
    )
    assert log_q_values(read_table_data(X, y, sample_weight=np.full(200, 0.7)))[0] == pytest.approx(one)
    uneven = rng.exponential(size=200) ** 2
    assert log_q_values(read_table_data(X, y, sample_weight=uneven))[0] < one


def test_noise_is_not_significant_where_a_few_rows_have_nearly_all_weight():
    rng = np.random.default_rng(0)
    y = np.zeros(3000, dtype=int)
    y[:12] = 1
    assert log_q_values(read_table_data(rng.normal(size=(3000, 50)), y, class_weight="balanced")).max() < 1


@pytest.mark.slow
def test_the_number_of_blas_threads_changes_no_bit():
    outputs = []
    for threads in ("1", "4"):
        script = (
            "import numpy as np; from seqatt.data.tables.table_data import read_table_data;"
            "from seqatt.training.screening.row_sample import draw_sample;"
            "from seqatt.training.screening.univariate_test import univariate_test;"
            "from seqatt.training.screening.score_penalty import ScorePenalty, TrialPenalties;"
            "X = np.random.default_rng(0).normal(size=(3000, 300)); y = np.arange(3000) % 5;"
            "s = draw_sample(read_table_data(X, y, groups={'g': [1, 2, 3]})); q = univariate_test(s).log_q;"
            "scores = np.zeros((1, len(q)));"
            "TrialPenalties([ScorePenalty(s, -np.ones(len(q)))]).add_to_scores(scores, [[3, 5]]);"
            "print((q.tobytes() + scores.tobytes()).hex())"
        )
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 1000


def test_noise_alone_is_not_significant():
    rng = np.random.default_rng(1)
    largest = [
        log_q_values(read_table_data(rng.normal(size=(40, 3000)), rng.integers(0, 3, 40))).max()
        for _ in range(5)
    ]
    assert np.mean(largest) < 1


@pytest.mark.parametrize("function", [np.square, np.abs, lambda x: np.cos(2 * x)])
def test_an_even_function_of_a_feature_is_significant(function):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    log_q = log_q_values(read_table_data(X, function(X[:, 3]) + 0.3 * rng.normal(size=400)))
    assert log_q[3] > 6
    assert np.delete(log_q, 3).max() < 1.5


def test_the_binned_test_is_an_analysis_of_variance():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 1))
    y = X[:, 0] ** 2 + rng.normal(size=120)
    groups = np.array_split(y[np.argsort(X[:, 0])], 6)
    between = sum(len(group) * (group.mean() - y.mean()) ** 2 for group in groups)
    within = sum(((group - group.mean()) ** 2).sum() for group in groups)
    p = fdtrc(5, 114, (between / 5) / (within / 114))
    assert log_q_values(read_table_data(X, y))[0] == pytest.approx(-np.log10(2 * p), rel=1e-4)


def test_noise_is_no_more_significant_in_bins():
    """The false discovery rate is kept: of 40 tables of noise, about one in a hundred may have a feature beyond 2."""
    rng = np.random.default_rng(2)
    tables = [
        log_q_values(read_table_data(rng.normal(size=(90, 40)), rng.normal(size=90))) for _ in range(40)
    ]
    assert sum(log_q.max() > 2 for log_q in tables) <= 3


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_the_unit_of_unscaled_numbers_changes_nothing(unit):
    X, y, _ = table()
    X[:, 5] = 1.0
    scaled, unscaled = read_table_data(X, y), scale_table(read_table_data(unit * X, y), "none")
    np.testing.assert_allclose(log_q_values(unscaled), log_q_values(scaled), rtol=1e-3, atol=1e-3)


def test_benjamini_hochberg_by_hand():
    p = np.array([0.04, 0.001, 0.5, 0.02])
    expected = [0.04 * 4 / 3, 0.004, 0.5, 0.04]
    np.testing.assert_allclose(benjamini_hochberg(p), expected)
    families = benjamini_hochberg(np.array([[*p, np.inf], [0.3, np.inf, np.inf, 0.2, np.inf]]))
    np.testing.assert_allclose(families, [[*expected, 1], [0.3, 1, 1, 0.3, 1]])


@pytest.mark.parametrize(
    ("rows", "columns", "expected"), [(60_000, 784, 2), (31, 500, 4), (62, 2_000, 4), (150, 400, 2.8265)]
)
def test_the_default_threshold_is_what_noise_reaches_in_such_a_table(rows, columns, expected):
    assert default_univariate_test(rows, columns) == pytest.approx(expected, abs=1e-4)


def test_a_sample_of_a_large_tables_rows_gives_nearly_the_same(monkeypatch):
    X, y, _ = table(rows=6000)
    whole = log_q_values(read_table_data(X, y))
    monkeypatch.setattr(row_sample, "MAX_CELLS", 1)
    some = log_q_values(read_table_data(X, y))
    assert min(whole[0], some[0], whole[1], some[1]) > 10
    assert some[0] < whole[0]
    assert some[2:].max() < 2
    grouped = log_q_values(read_table_data(X, y, groups={"pair": [0, 1]}, sample_weight=np.full(6000, 0.5)))
    assert grouped[0] > 10
    half = np.zeros(6000)
    half[:3000] = 1
    expected = log_q_values(read_table_data(X[:3000], y[:3000]))
    np.testing.assert_allclose(log_q_values(read_table_data(X, y, sample_weight=half)), expected, atol=1e-4)


def test_where_every_feature_is_significant_the_test_changes_nothing():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(500, 3))
    X = hidden @ (1 + rng.random((3, 8))) + 0.3 * rng.normal(size=(500, 8))
    y = hidden.sum(1) + 0.1 * rng.normal(size=500)
    assert log_q_values(read_table_data(X, y)).min() > 2
    tested, untested = (
        seqatt.select(X, y, 3, epochs=50, **options) for options in ({}, {"univariate_test": 0})
    )
    assert tested.indices.tolist() == untested.indices.tolist()
    np.testing.assert_array_equal(tested.scores, untested.scores)


@pytest.mark.slow
def test_real_features_are_found_among_permuted_ones_from_few_rows():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:80]
    permuted = np.column_stack([rng.permutation(X[rows, c]) for c in rng.integers(0, 30, 300)])
    wide = np.column_stack([X[rows], permuted])
    tested, untested = (
        seqatt.select(wide, y[rows], 20, **options) for options in ({}, {"univariate_test": 0})
    )
    assert np.sum(tested.indices < 30) >= 18
    assert np.sum(untested.indices < 30) < np.sum(tested.indices < 30)


def test_a_pair_of_features_useful_only_together_is_still_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 60))
    y = X[:, 4] * X[:, 5] > 0
    assert set(seqatt.select(X, y, 2).indices) == {4, 5}


def test_the_threshold_is_checked_and_reported():
    X, y, _ = table()
    with pytest.raises(ValueError, match="univariate_test"):
        seqatt.select(X, y, 2, univariate_test=-1)
    selection = seqatt.select(X, y, 2, epochs=20)
    assert selection.settings["univariate_test"] == pytest.approx(10 * np.sqrt(2 * np.log(30) / 80))


def test_equal_weights_give_the_same_bins_as_any_others():
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(301, 20)).round(1))  # with ties
    equal = np.full(301, 0.7)
    nearly = equal.copy()
    nearly[0] = np.nextafter(0.7, 1)
    assert torch.equal(_quantiles(values, equal, 6), _quantiles(values, nearly, 6))


@pytest.mark.parametrize("task", ["regression", "survival", "quantile", "poisson"])
def test_the_test_of_a_subset_is_that_of_a_table_of_these_rows(task):
    X, y, rng = table(rows=400)
    target = {
        "survival": np.column_stack([np.exp(3 * y), rng.random(400) < 0.8]),
        "poisson": rng.poisson(np.exp(y)),
    }.get(task, y)
    data = read_table_data(X, target, task=task, **({"quantile": 0.8} if task == "quantile" else {}))
    half = np.arange(0, 400, 2)
    of_table = univariate_test(draw_sample(take_rows(data, half))).log_q
    np.testing.assert_allclose(univariate_test(draw_sample(data, half)).log_q, of_table, atol=1e-9)
    assert of_table.max() > 1


def coded_table(rows=3_000, values=300, rate=0.5, seed=0, effect=0.0):
    """Ten categories of many values, of which the last one has this effect per value."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.choice(values, rows, p=rng.dirichlet(np.full(values, 0.5))) for _ in range(10)], 1)
    odds = np.log(rate / (1 - rate)) + effect * rng.normal(size=values)[codes[:, -1]]
    y = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)
    return pd.DataFrame({f"c{j}": codes[:, j].astype(str) for j in range(10)}).map("v{}".format), y


def coded_p_values(data, **options):
    sample = draw_sample(data, **options)
    p, explained = np.ones((2, data.features))
    _test_codes(sample.coded, p, explained)
    return p, explained


@pytest.mark.parametrize(
    ("rows", "values", "rate"), [(3_000, 300, 0.5), (3_000, 300, 0.01), (3_000, 2_000, 0.02)]
)
def test_categories_of_noise_have_uniform_p_values(rows, values, rate):
    tables = [coded_table(rows, values, rate, seed) for seed in range(12)]
    p = np.concatenate([coded_p_values(read_table_data(*each, categories="mixed"))[0] for each in tables])
    p = p[p < 1]
    assert len(p) > 80
    assert kstest(p, "uniform").pvalue > 0.001
    assert (p < 0.001).mean() < 0.03


def test_the_moments_of_a_permuted_trace_are_those_of_many_permutations():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 12, 60), rng.exponential(size=(60, 2)) ** 2
    basis = np.linalg.qr(y - y.mean(0))[0]
    sizes = np.bincount(codes)
    traces = [
        sum(
            (np.bincount(codes, weights=column) ** 2 / sizes).sum() for column in basis[rng.permutation(60)].T
        )
        for _ in range(20_000)
    ]
    squares = float(((basis**2).sum(1) ** 2).sum()), float((sizes * (1 / sizes - 1 / 60) ** 2).sum())
    mean, variance = _permuted_moments(60, (2, squares[0]), (11, squares[1]))
    assert mean == pytest.approx(np.mean(traces), rel=0.01)
    assert variance == pytest.approx(np.var(traces), rel=0.05)


def test_an_effect_of_many_rare_values_is_found_and_weights_of_one_size_change_nothing():
    X, y = coded_table(rows=6_000, values=1_000, effect=1.5)
    p, explained = coded_p_values(read_table_data(X, y, categories="mixed"))
    assert p[-1] < 1e-12 < p[:-1].min()
    assert explained[-1] > 0.1 > np.abs(explained[:-1]).max()
    equal = coded_p_values(read_table_data(X, y, sample_weight=np.full(len(y), 3.0), categories="mixed"))[0]
    np.testing.assert_allclose(equal, p)
    weights = np.random.default_rng(1).random(len(y)) + 0.5
    weighted = coded_p_values(read_table_data(X, y, sample_weight=weights, categories="mixed"))[0]
    assert weighted[-1] < 1e-6 < weighted[:-1].min()


def test_codes_are_tested_on_all_rows_of_a_subset(monkeypatch):
    """Although the sample has fewer rows."""
    monkeypatch.setattr(row_sample, "MAX_CELLS", 1)
    monkeypatch.setattr(row_sample, "MIN_ROWS", 500)
    X, y = coded_table()
    data = read_table_data(X, y, categories="mixed")
    half = np.arange(0, data.rows, 2)
    np.testing.assert_allclose(
        coded_p_values(data, subset=half)[0], coded_p_values(take_rows(data, half))[0], rtol=1e-9
    )
