"""What a feature says by itself: exact where a textbook test is, silent where chance would say as much."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import f_classif, f_regression

import seqatt
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.defaults import default_evidence
from seqatt.training.screening import row_sample as module
from seqatt.training.screening import univariate_test as testing
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.univariate_test import _by_chance, _rest, benjamini_hochberg


def table(rows=80, features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=rows), rng


def univariate_test(source):
    return testing.univariate_test(draw_sample(source))


def chance(source):
    sample = draw_sample(source)
    return _by_chance(sample, _rest(sample))


def test_one_column_is_tested_as_analysis_of_variance_or_correlation_does():
    X, y, _ = table()
    np.testing.assert_allclose(chance(read_table_data(X, y)), f_regression(X, y)[1], atol=1e-6)
    three = np.digitize(y, [-1, 1])
    np.testing.assert_allclose(chance(read_table_data(X, three)), f_classif(X, three)[1], atol=1e-6)


def test_sparse_and_dense_tables_say_the_same():
    rng = np.random.default_rng(0)
    X = sp.random(100, 40_000, 0.02, random_state=0, format="csr")
    y = np.asarray(X[:, 3].toarray().ravel() > 0) | (rng.random(100) < 0.4)
    opened, closed = read_table_data(X.toarray(), y), read_table_data(sp.csr_array(X), y)
    np.testing.assert_allclose(univariate_test(closed), univariate_test(opened), atol=1e-4)


def test_a_group_is_tested_as_one():
    X, y, _ = table()
    grouped = univariate_test(read_table_data(X, y, groups={"pair": [0, 1], "noise": [2, 3, 4]}))
    assert grouped[0] > 4
    assert grouped[1] < 1
    copies = np.column_stack([X[:, 0], 2 * X[:, 0], X[:, 5:]])
    twice = chance(read_table_data(copies, y, groups={"same": [0, 1]}))
    assert twice[0] == pytest.approx(f_regression(X[:, :1], y)[1][0], abs=1e-6)


def test_whole_weights_repeat_rows_and_others_make_them_less_certain():
    X, y, rng = table(rows=200)
    one = univariate_test(read_table_data(X, y))[0]
    again = rng.integers(1, 4, 200)
    repeated = univariate_test(read_table_data(X.repeat(again, 0), y.repeat(again)))
    np.testing.assert_allclose(
        univariate_test(read_table_data(X, y, sample_weight=again)), repeated, atol=1e-4
    )
    assert univariate_test(read_table_data(X, y, sample_weight=np.full(200, 0.7)))[0] == pytest.approx(one)
    uneven = rng.exponential(size=200) ** 2
    assert univariate_test(read_table_data(X, y, sample_weight=uneven))[0] < one


def test_noise_says_nothing_where_a_few_rows_weigh_nearly_all():
    rng = np.random.default_rng(0)
    y = np.zeros(3000, dtype=int)
    y[:12] = 1
    assert univariate_test(read_table_data(rng.normal(size=(3000, 50)), y, class_weight="balanced")).max() < 1


def test_threads_of_the_library_for_matrices_change_no_bit():
    told = []
    for threads in ("1", "4"):
        script = (
            "import numpy as np; from seqatt.data.tables.table_data import read_source;"
            "from seqatt.training.screening.row_sample import draw;"
            "from seqatt.training.screening.univariate_test import evidence; from seqatt.training.screening.score_penalty import Doubt;"
            "X = np.random.default_rng(0).normal(size=(3000, 300)); y = np.arange(3000) % 5;"
            "s = draw(read_source(X, y, groups={'g': [1, 2, 3]})); e = evidence(s);"
            "print((e.tobytes() + Doubt(s, -np.ones(len(e))).given([3, 5]).tobytes()).hex())"
        )
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        told.append(done.stdout)
    assert told[0] == told[1]
    assert len(told[0]) > 1000


def test_noise_alone_says_next_to_nothing():
    rng = np.random.default_rng(1)
    said = [
        univariate_test(read_table_data(rng.normal(size=(40, 3000)), rng.integers(0, 3, 40))).max()
        for _ in range(5)
    ]
    assert np.mean(said) < 1


def test_false_findings_by_hand():
    p = np.array([0.04, 0.001, 0.5, 0.02])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.04 * 4 / 3, 0.004, 0.5, 0.04])


@pytest.mark.parametrize(
    ("rows", "columns", "most"), [(60_000, 784, 2), (31, 500, 0), (62, 2_000, 4), (150, 400, 2.8265)]
)
def test_it_counts_as_far_as_chance_gets_in_such_a_table(rows, columns, most):
    assert default_evidence(rows, columns) == pytest.approx(most, abs=1e-4)


def test_of_a_large_table_some_rows_say_nearly_as_much(monkeypatch):
    X, y, _ = table(rows=6000)
    whole = univariate_test(read_table_data(X, y))
    monkeypatch.setattr(module, "CELLS", 1)
    some = univariate_test(read_table_data(X, y))
    assert min(whole[0], some[0], whole[1], some[1]) > 10
    assert some[0] < whole[0]
    assert some[2:].max() < 2
    grouped = univariate_test(
        read_table_data(X, y, groups={"pair": [0, 1]}, sample_weight=np.full(6000, 0.5))
    )
    assert grouped[0] > 10
    few = np.zeros(6000)
    few[:3000] = 1
    kept = univariate_test(read_table_data(X[:3000], y[:3000]))
    np.testing.assert_allclose(univariate_test(read_table_data(X, y, sample_weight=few)), kept, atol=1e-4)


def test_where_every_feature_is_beyond_doubt_nothing_changes():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(500, 3))
    X = hidden @ (1 + rng.random((3, 8))) + 0.3 * rng.normal(size=(500, 8))
    y = hidden.sum(1) + 0.1 * rng.normal(size=500)
    assert univariate_test(read_table_data(X, y)).min() > 2
    heard, unheard = (seqatt.select(X, y, 3, epochs=50, **options) for options in ({}, {"univariate_test": 0}))
    assert heard.indices.tolist() == unheard.indices.tolist()
    np.testing.assert_array_equal(heard.scores, unheard.scores)


def test_real_features_among_shuffled_ones_are_found_from_few_rows():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:80]
    shuffled = np.column_stack([rng.permutation(X[rows, c]) for c in rng.integers(0, 30, 300)])
    wide = np.column_stack([X[rows], shuffled])
    heard, unheard = (seqatt.select(wide, y[rows], 20, **options) for options in ({}, {"univariate_test": 0}))
    assert np.sum(heard.indices < 30) >= 18
    assert np.sum(unheard.indices < 30) < np.sum(heard.indices < 30)


def test_a_pair_that_acts_only_together_is_still_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 60))
    y = X[:, 4] * X[:, 5] > 0
    assert set(seqatt.select(X, y, 2).indices) == {4, 5}


def test_how_far_it_counts_is_checked_and_reported():
    X, y, _ = table()
    with pytest.raises(ValueError, match="univariate_test"):
        seqatt.select(X, y, 2, univariate_test=-1)
    selection = seqatt.select(X, y, 2, epochs=20)
    assert selection.settings["univariate_test"] == pytest.approx(10 * np.sqrt(2 * np.log(30) / 80))
