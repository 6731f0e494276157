"""Tables of every kind are encoded as documented: standardised, one-hot, grouped and weighted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data, resolve_k

QUICK = {"epochs": 3, "hidden": (8,)}


def mixed_table(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima"], rows)
    flag = rng.random(rows) < 0.5
    size = rng.normal(size=rows)
    y = (city == "Oslo") * 2.0 + flag * 1.5 + 0.05 * rng.normal(size=rows)
    frame = pd.DataFrame({"size": size, "city": city, "flag": flag, "noise": rng.normal(size=rows)})
    return frame, y


def test_categories_and_booleans_are_one_feature_each():
    frame, y = mixed_table()
    data = read_table_data(frame, y)
    assert data.features == 4
    assert np.bincount(data.feature_of).tolist() == [3, 1, 1, 1]  # by name: city, flag, noise, size
    selection = seqatt.select(frame, y, 2)
    assert set(selection.features) == {"city", "flag"}


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_every_frame_gives_the_same_selection(convert):
    frame, y = mixed_table()
    expected = seqatt.select(frame, y, 3, **QUICK)
    assert seqatt.select(convert(frame), y, 3, **QUICK).features == expected.features


def test_pandas_categoricals_and_strings_are_the_same():
    frame, y = mixed_table()
    as_category = frame.assign(city=frame["city"].astype("category"))
    a, b = (read_table_data(f, y).columns for f in (frame, as_category))
    np.testing.assert_array_equal(a, b)


def test_columns_are_standardised_from_training_rows():
    X, y = linear_problem("binary")
    X = X * 1e3 + 1e9  # far from zero: float32 alone would lose all digits
    columns = read_table_data(X, y).columns
    np.testing.assert_allclose(columns.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(columns.std(0), 1, atol=1e-4)


def test_the_columns_of_a_feature_have_variance_one_in_sum():
    frame, y = mixed_table()
    data = read_table_data(frame, y)
    variance = np.bincount(data.feature_of, weights=data.columns.var(0))
    np.testing.assert_allclose(variance, 1, atol=1e-4)


def test_missing_numbers_become_the_training_mean():
    X, y = linear_problem("binary")
    X[::3, 2] = np.nan
    data = read_table_data(X, y)
    assert (data.columns[::3, 2] == 0).all()
    assert data.features == len(data.feature_of) == 8


def test_a_missing_indicator_belongs_to_its_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (rng.random(400) < 0.5).astype(int)
    X[y == 1, 2] = np.nan  # only the missing values distinguish the classes
    data = read_table_data(X, y, missing_indicator=True)
    assert data.feature_of.tolist() == [0, 1, 2, 2, 3]
    assert seqatt.select(X, y, 1, missing_indicator=True).indices.tolist() == [2]


def test_missing_categories_are_a_category():
    frame = pd.DataFrame({"c": ["a", None, "b", "a", None, "b"] * 10, "n": range(60)})
    y = frame["c"].isna().astype(int)
    assert seqatt.select(frame, y, 1).features == ["c"]


def test_rare_categories_have_no_column():
    frame = pd.DataFrame({"c": [f"v{i % 45}" for i in range(90)] + ["v0"] * 10, "n": range(100)})
    data = read_table_data(frame, frame["n"] % 2, max_categories=5)
    assert np.bincount(data.feature_of).tolist() == [5, 1]


def test_a_group_is_chosen_as_one_feature():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, 1, groups={"pair": [4, 1], "other": [0, 2]})
    assert selection.features == ["pair"]
    assert selection.columns.tolist() == [1, 4]
    assert selection.names == ["other", "pair", "x3", "x5", "x6", "x7"]
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    assert seqatt.select(frame, y, 1, groups=[["b", "e"]]).features == ["b+e"]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_sparse_tables_are_read_as_dense_ones(kind):
    X, y = linear_problem("binary")
    X[np.abs(X) < 0.7] = 0
    dense, sparse = read_table_data(X, y), read_table_data(kind(X), y)
    np.testing.assert_allclose(sparse.columns, dense.columns, atol=1e-5)


@pytest.mark.slow
def test_large_sparse_tables_stay_sparse(monkeypatch):
    X, y = linear_problem("binary")
    X[np.abs(X) < 0.7] = 0
    expected = seqatt.select(sp.csr_matrix(X), y, 2)
    monkeypatch.setattr(encoding, "DENSE_CELLS", 10)
    actual = seqatt.select(sp.csr_matrix(X), y, 2)
    assert actual.indices.tolist() == expected.indices.tolist()
    halves = X[:200], y[:200], X[200:], y[200:]
    sparse = seqatt.evaluate(
        sp.csr_matrix(halves[0]), halves[1], sp.csr_matrix(halves[2]), halves[3], [1, 4], seeds=[0]
    )
    assert sparse["accuracy"][0] > 0.8


def test_string_labels():
    X, y = linear_problem("multiclass")
    words = np.array(["low", "mid", "high"])[y]
    assert set(seqatt.select(X, words, 2).indices) == {1, 4}
    assert set(seqatt.select(X, pd.Series(words, dtype="category"), 2).indices) == {1, 4}


def test_regression_targets_are_standardised():
    X, y = linear_problem("multi-output")
    target = read_table_data(X, y * 1e6 + 5).target
    np.testing.assert_allclose(target.values.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(target.values.std(0), 1, atol=1e-5)


def test_rows_of_weight_zero_are_left_out(problem):
    X, y = problem
    weights = np.ones(300)
    weights[200:] = 0
    a = seqatt.select(X, y, 4, sample_weight=weights, **QUICK)
    b = seqatt.select(X[:200], y[:200], 4, **QUICK)
    assert a.indices.tolist() == b.indices.tolist()


def test_weights_change_the_selection():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    half = np.arange(400) < 200
    y = np.where(half, X[:, 0] > 0, X[:, 3] > 0).astype(int)
    heavy = np.where(half, 10.0, 0.1)
    assert seqatt.select(X, y, 1, sample_weight=heavy).indices[0] == 0
    assert seqatt.select(X, y, 1, sample_weight=1 / heavy).indices[0] == 3


def test_balanced_classes_have_the_same_total_weight(problem):
    X, y = problem
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:15]])
    data = read_table_data(X[rare], y[rare], class_weight="balanced")
    label = data.target.values[:, 0] == 1
    np.testing.assert_allclose(data.weights[label].sum(), data.weights[~label].sum(), rtol=1e-5)
    named = read_table_data(X[rare], y[rare], class_weight={1: 3.0})
    np.testing.assert_allclose(named.weights[label][0] / named.weights[~label][0], 3, rtol=1e-5)


def test_dates_are_numbers():
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    frame = pd.DataFrame({"when": days, "noise": np.random.default_rng(0).normal(size=200)})
    assert seqatt.select(frame, np.arange(200) > 100, 1).features == ["when"]


def test_dates_with_time_zones_and_durations_are_numbers():
    when = pd.date_range("2020", periods=60, tz="UTC")
    frame = pd.DataFrame({"when": when, "since": when - when[0], "noise": np.arange(60) % 7})
    data = read_table_data(frame, np.arange(60) > 30)
    assert data.columns.std(0).round(3).tolist() == [1, 1, 1]


def test_pandas_na_is_missing_everywhere():
    frame = pd.DataFrame(
        {
            "s": pd.array(["x", pd.NA, "y"] * 20, dtype="string"),
            "i": pd.array([1, pd.NA, 3] * 20, dtype="Int64"),
            "b": pd.array([True, pd.NA, False] * 20, dtype="boolean"),
        }
    )
    y = [0, 1, 0] * 20
    assert seqatt.select(frame, y, 2, epochs=1).support.sum() == 2
    with pytest.raises(ValueError, match=r"y: .*NaN"):
        seqatt.select(frame, pd.Series(["a", pd.NA, "b"] * 20, dtype="string"), 1)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_an_empty_column_is_a_constant_one(make):
    columns = {
        "void": [None] * 40,
        "a": [float(i % 2) for i in range(40)],
        "b": [float(i) for i in range(40)],
    }
    data = read_table_data(make(columns), [i % 2 for i in range(40)])
    assert dict(zip(data.names, data.constant.tolist(), strict=True)) == {
        "void": True,
        "a": False,
        "b": False,
    }


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_very_large_and_very_small_numbers_are_standardised(scale):
    X, y = linear_problem("regression")
    plain = read_table_data(X, y)
    scaled = read_table_data(X * scale, y * scale, task="regression")
    np.testing.assert_allclose(scaled.columns, plain.columns, atol=1e-5)
    np.testing.assert_allclose(scaled.target.values, plain.target.values, atol=1e-5)
    sparse = read_table_data(sp.csr_matrix(X * scale), y)
    np.testing.assert_allclose(sparse.columns, plain.columns, atol=1e-5)


def test_a_categorical_target_is_a_classification_for_levels_of_any_type():
    X, y = linear_problem("binary")
    target = read_table_data(X, pd.Series(y * 1.5, dtype="category")).target
    assert target.task == "binary"
    assert target.classes.tolist() == ["0.0", "1.5"]


def test_repeated_sparse_cells_are_summed():
    data = sp.csr_matrix((np.ones(4), [0, 0, 1, 1], [0, 3, 4, 4, 4]), shape=(4, 2))
    assert not read_table_data(data, [0, 1, 0, 1]).constant.any()


def test_groups_refer_to_names_if_columns_have_names():
    X, y = linear_problem("regression")
    frame = pd.DataFrame(X, columns=[7, 6, 5, 4, 3, 2, 1, 0])
    assert seqatt.select(frame, y, 1, groups={"pair": [6, 3]}).columns.tolist() == [1, 4]


@pytest.mark.parametrize(("k", "expected"), [(3, 3), (0.5, 5), (1.0, 10), (0.01, 1)])
def test_k_may_be_a_fraction(k, expected):
    assert resolve_k(k, 10) == expected


def test_missing_values_in_rows_of_weight_zero_do_not_change_the_scale():
    rng = np.random.default_rng(0)
    X = 1000 * rng.normal(size=(90, 3))
    y = np.repeat([0, 1, 2], 30)
    X[y == 2, 1] = np.nan
    data = read_table_data(X, y, class_weight={0: 1, 1: 1, 2: 0})
    np.testing.assert_allclose(data.columns.std(0), 1, rtol=0.05)


def test_rows_of_a_class_of_weight_zero_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.arange(90) % 3
    X[y < 2, 3] = 0.1  # it varies only in rows of weight zero
    data = read_table_data(X, y, class_weight={0: 1, 1: 1, 2: 0})
    assert data.rows == len(data.target.values) == 60
    assert data.constant.tolist() == [False, False, False, True]
    with pytest.raises(ValueError, match="class_weight: only one row"):
        read_table_data(X[:3], y[:3], class_weight={0: 1, 1: 0, 2: 0}, task="multiclass")


@pytest.mark.parametrize(
    ("weights", "effective_rows"),
    [
        ({}, 100),
        ({"sample_weight": np.full(100, 3)}, 300),
        ({"sample_weight": np.full(100, 1e-300)}, 100),
        ({"sample_weight": np.r_[np.full(50, 1.5), np.full(50, 0.5)]}, 80),
        ({"class_weight": {0: 1, 1: 3}}, 80),
        ({"sample_weight": np.full(100, 2), "class_weight": {0: 1, 1: 3}}, 160),
        ({"class_weight": {0: 1, 1: 0}}, 50),
    ],
)
def test_the_effective_sample_size_is_smaller_for_uneven_weights(weights, effective_rows):
    X = np.random.default_rng(0).normal(size=(100, 3))
    data = read_table_data(X, np.arange(100) % 2, **weights)
    assert data.effective_rows == pytest.approx(effective_rows)


def test_huge_values_in_test_rows_are_an_error():
    X = np.random.default_rng(0).normal(size=(50, 2))
    data = read_table_data(X, X[:, 0] > 0)
    for value, message in ((1e305, "too large"), (np.inf, "infinity")):
        other = X.copy()
        other[3, 1] = value
        with pytest.raises(ValueError, match=message):
            data.encode(other)


def test_a_wide_table_needs_the_memory_of_a_few_copies():
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(64, 60_000)).astype(np.float32)
    y = np.arange(64) % 2
    tracemalloc.start()
    read_table_data(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * X.nbytes


def test_integers_of_128_bits_are_numbers():
    frame = pl.DataFrame({"a": [10**30, 2 * 10**30, 3 * 10**30, 4 * 10**30], "b": [1, 0, 1, 0]})
    assert frame.schema["a"] == pl.Int128
    assert seqatt.select(frame, [1, 2, 3, 4], 1, method="linear_omp", task="regression").features == ["a"]


def test_values_too_large_to_add_up_are_refused_without_a_warning_of_numpy():
    X = np.array([[1.7e308, 1.0], [1.7e308, 2.0], [-1.7e308, 3.0], [1.7e308, 5.0]])
    with pytest.raises(ValueError, match="X: column 'x0' holds values too large to work with; rescale it"):
        seqatt.select(X, [0, 1, 0, 1], 1, method="f_test")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1e300, "column 'x0' holds values too large to work with; rescale it"),
        (np.inf, "must not hold NaN or infinity"),
    ],
)
def test_sparse_test_rows_that_cannot_be_standardised_are_refused_without_a_warning_of_numpy(value, problem):
    train = sp.csr_matrix([[1e-300, 1.0], [0.0, 2.0], [1e-300, 3.0], [0.0, 5.0]])
    test = sp.csr_matrix([[value, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match=f"X_test: .*{problem}"):
        seqatt.evaluate(train, [0, 1, 0, 1], test, [0, 1], [0], epochs=1)


def test_a_nul_in_a_name_of_a_polars_column_is_a_name_like_any_other():
    frame = pl.DataFrame({"\x00a": ["u", "v", "u", "v"], "b": [1.0, 2.0, 3.0, 4.0]})
    assert set(seqatt.select(frame, [0, 1, 0, 1], 2, method="random").features) == {"\x00a", "b"}


def test_masked_cells_of_an_array_are_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    masked = np.ma.array(X, mask=rng.random(X.shape) < 0.2)
    of_masked, of_nan = (read_table_data(table, X[:, 0]) for table in (masked, masked.filled(np.nan)))
    np.testing.assert_array_equal(of_masked.columns, of_nan.columns)
    assert (of_masked.columns != read_table_data(X, X[:, 0]).columns).any()
