"""Numbers far from all others do not hide what the others say; other columns are encoded as without them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import seqatt
from seqatt.data.files.encoding.numbers import fit_number, write_numbers
from seqatt.data.tables.numbers import extremes
from seqatt.data.tables.table_data import read_table_data, take_features

ROWS = 1000


def table(columns: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, columns))


def encode(X, **options) -> np.ndarray:
    return read_table_data(X, np.arange(X.shape[0]) % 2, **options).columns


@pytest.mark.parametrize(("value", "rows"), [(-999.0, 10), (99_999.0, 5), (1e9, 1), (-999.0, 50)])
def test_a_feature_with_a_few_extreme_values_is_found(value, rows):
    X = pd.DataFrame(table(6), columns=list("abcdef"))
    y = (X.a + X.b + 0.7 * X.c + 0.4 * np.random.default_rng(1).normal(size=ROWS) > 0).astype(int)
    X.loc[: rows - 1, "a"] = value
    for options in ({"epochs": 5}, {"method": "f_test"}):
        assert set(seqatt.select(X, y, k=3, **options).features) == {"a", "b", "c"}


@pytest.mark.parametrize("framed", [False, True])
def test_extreme_values_become_the_nearest_other_value_and_other_columns_stay_bit_for_bit(framed):
    clean, X = table(), table()
    X[:10, 1], X[10:12, 1] = -999.0, 1e6
    make = (lambda a: pd.DataFrame(a, columns=["p", "q", "r"])) if framed else np.asarray
    data, expected = read_table_data(make(X), np.arange(ROWS) % 2), encode(make(clean))
    np.testing.assert_array_equal(data.columns[:, [0, 2]], expected[:, [0, 2]])
    low, high = X[12:, 1].min(), X[12:, 1].max()
    clipped = np.clip(X[:, 1], low, high)
    standard = (clipped - clipped.mean()) / clipped.std()
    np.testing.assert_allclose(data.columns[:, 1], standard, rtol=1e-5, atol=1e-6)
    found = data.encoder.extremes
    assert (found.columns.tolist(), found.rows.tolist(), found.farthest.tolist()) == ([1], [12], [1e6])
    new = data.encode(make(np.full((2, 3), [[0.0, -1e12, 0.0], [0.0, np.nan, 0.0]]))).columns
    assert new[0, 1] == data.columns[:, 1].min()
    assert new[1, 1] == 0
    with pytest.raises(ValueError, match="infinity"):
        data.encode(make(np.full((2, 3), np.inf)))


def test_long_tails_two_values_zeros_and_sparse_tables_are_not_clipped():
    rng = np.random.default_rng(0)
    tails = np.stack(
        [
            rng.lognormal(size=ROWS),
            rng.exponential(size=ROWS),
            rng.standard_t(4, size=ROWS),
            rng.random(ROWS) < 0.01,
            1e6 * (rng.random(ROWS) < 0.04),
        ],
        axis=1,
    )
    data = read_table_data(tails, np.arange(ROWS) % 2)
    assert not len(data.encoder.extremes.columns)
    np.testing.assert_allclose(data.columns, (tails - tails.mean(0)) / tails.std(0), rtol=1e-4, atol=1e-5)
    X = table()
    X[0, 0] = 1e9
    assert encode(sp.csr_matrix(X))[0, 0] > 30
    many = table()
    many[:60, 0] = -999.0  # more than 5 %: no exception
    assert not len(read_table_data(many, np.arange(ROWS) % 2).encoder.extremes.columns)


def test_missing_values_logarithms_and_taken_features_go_with_extreme_values():
    X = table(4)
    X[:100, 2], X[100:105, 2] = np.nan, -1e30
    X[0, 3] = 1e5
    data = read_table_data(X, np.arange(ROWS) % 2, log1p=["x2"], missing_indicator=True)
    assert data.encoder.extremes.columns.tolist() == [2, 3]
    assert np.abs(data.columns).max() < 6
    some = take_features(data, np.array([1, 3]))
    assert some.encoder.extremes.columns.tolist() == [1]
    np.testing.assert_array_equal(some.encode(X).columns, data.columns[:, some_columns(data, [1, 3])])


def some_columns(data, features) -> np.ndarray:
    return np.flatnonzero(np.isin(data.feature_of, features))


def test_quartiles_are_those_of_a_sample_of_the_rows(monkeypatch):
    X = table()
    X[7, 1] = 1e9  # not in the sample
    monkeypatch.setattr(extremes, "FENCE_ROWS", 100)
    monkeypatch.setattr(extremes, "FENCE_CELLS", 150)  # one column at a time
    data = read_table_data(X, np.arange(ROWS) % 2)
    assert data.encoder.extremes.columns.tolist() == [1]
    assert data.encoder.extremes.rows.tolist() == [1]


@pytest.mark.parametrize("scaling", [None, "none", "min-max"])
def test_columns_of_files_are_clipped_as_those_of_tables(scaling):
    X = table(1)
    X[:10] = -999.0
    number = fit_number("x", pa.array(X[:, 0]), log1p=False, indicator=False)
    number = number if scaling is None else number.scaled(scaling)
    out = np.empty((1, ROWS), dtype=np.float32)
    write_numbers([number], pa.RecordBatch.from_pydict({"x": X[:, 0]}), out)
    if scaling is None:
        np.testing.assert_allclose(out[0], encode(X)[:, 0], rtol=1e-5, atol=1e-6)
    assert out[0, :10].tolist() == [out.min()] * 10
    assert out.min() == pytest.approx(
        {None: out.min(), "none": X[10:].min(), "min-max": 0.0}[scaling], rel=1e-6
    )
