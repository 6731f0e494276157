"""asinh reduces extreme values during selection, and changes nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from torch import nn

import seqatt
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.screening.asinh import asinh_columns


def skewed(rows=120, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(2 * rng.normal(size=(rows, features)))
    return X, (X[:, 0] > 1) ^ (rng.random(rows) < 0.1)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_become_their_standardised_inverse_hyperbolic_sine(weighted):
    X, y = skewed()
    X = np.minimum(X, 30.0)  # values that are clipped are tested with the extreme ones
    weights = np.random.default_rng(1).random(len(X)) if weighted else None
    columns = asinh_columns(read_table_data(X, y, sample_weight=weights)).columns
    standard = (X - np.average(X, axis=0, weights=weights)) / np.sqrt(
        np.cov(X.T, aweights=weights, ddof=0).diagonal()
    )
    expected = np.arcsinh(standard)
    expected -= np.average(expected, axis=0, weights=weights)
    expected /= np.sqrt(np.average(expected**2, axis=0, weights=weights))
    np.testing.assert_allclose(columns, expected, atol=2e-5)


def test_chunks_give_the_same_as_the_whole_table(monkeypatch):
    X, y = skewed(rows=1000)
    data = read_table_data(X, y)
    whole = asinh_columns(data).columns
    monkeypatch.setattr(encoding, "CHUNK_CELLS", 6 * 16)
    np.testing.assert_allclose(asinh_columns(data).columns, whole, atol=1e-5)


def test_categories_missing_indicators_and_constant_columns_do_not_change():
    X, y = skewed()
    with_missing = np.where(np.arange(120) % 3 == 0, np.nan, X[:, 1])
    frame = pd.DataFrame(
        {
            "a": X[:, 0],
            "b": pd.Categorical(np.arange(120) % 3),
            "c": with_missing,
            "d": np.ones(120),
            "e": np.arange(120) % 2,
        }
    )
    data = read_table_data(frame, y, missing_indicator=True)
    columns = asinh_columns(data).columns
    changed = np.abs(columns - data.columns).max(0) > 1e-5
    assert changed.tolist() == [True, False, False, False, True, False, False, False]
    assert data.feature_of.tolist() == [0, 1, 1, 1, 2, 2, 3, 4]


def test_a_missing_number_stays_at_the_mean():
    X, y = skewed(rows=2000)
    X[np.random.default_rng(1).random(2000) < 0.3, 1] = np.nan
    columns = asinh_columns(read_table_data(X, y)).columns
    present = ~np.isnan(X[:, 1])
    assert (columns[~present, 1] == 0).all()
    assert columns[present, 1].mean() == pytest.approx(0, abs=1e-5)
    assert columns[:, 1].std() == pytest.approx(1, abs=1e-5)


def test_a_table_that_stays_sparse_gives_the_same_as_a_dense_one(monkeypatch):
    X = sp.random(60, 500, 0.05, random_state=0, format="csr", data_rvs=lambda n: np.exp(np.arange(n) % 7))
    y = np.arange(60) % 2
    weights = np.random.default_rng(0).random(60)
    dense = asinh_columns(read_table_data(X.toarray(), y, sample_weight=weights))
    monkeypatch.setattr(encoding, "DENSE_CELLS", 0)
    sparse = asinh_columns(read_table_data(X, y, sample_weight=weights))
    np.testing.assert_allclose(sparse.columns.to_dense(np.arange(60)), dense.columns, atol=1e-4)


def test_the_input_table_is_not_modified():
    X, y = skewed()
    data = read_table_data(X, y)
    before = data.columns.copy()
    asinh_columns(data)
    np.testing.assert_array_equal(data.columns, before)


def test_by_default_only_the_built_in_network_on_wide_tables_gets_asinh_inputs():
    X, y = skewed(rows=40, features=41)

    def uses_asinh(**options):
        return seqatt.select(X, y, 2, epochs=2, **options).settings["asinh_inputs"]

    assert uses_asinh()
    assert not uses_asinh(hidden=())
    assert not uses_asinh(one_pass=False)
    assert not uses_asinh(model=lambda columns, outputs: nn.Linear(columns, outputs))
    assert uses_asinh(hidden=(), asinh_inputs=True)
    assert not uses_asinh(asinh_inputs=False)
    X = X[:, :40]
    assert not uses_asinh()


def test_asinh_inputs_must_be_a_boolean():
    with pytest.raises(TypeError, match="asinh_inputs: must be True or False, got 1"):
        seqatt.select(*skewed(), 2, asinh_inputs=1)


@pytest.mark.slow
def test_asinh_inputs_find_skewed_features_among_skewed_noise():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(80, 200))
    y = normal[:, :3].sum(1) + 0.3 * rng.normal(size=80) > 0

    def count_found(**options):
        trials = seqatt.select_trials(
            np.exp(1.2 * normal), y, 3, seeds=range(3), univariate_test=0, **options
        )
        return sum(int((trial.indices < 3).sum()) for trial in trials)

    assert count_found() > count_found(asinh_inputs=False)
