"""Options about columns: their types, those that are no features, logarithms, and columns of target and weights."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from seqatt.data.tables.table_data import read_table_data

ROWS = 120


def click_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "site": rng.integers(0, 3, ROWS),
            "price": np.exp(rng.normal(size=ROWS) * 3) * rng.choice([-1, 1], ROWS),
            "text": rng.choice(["a", "b", "c"], ROWS),
            "flag": rng.random(ROWS) < 0.5,
            "click": rng.choice(["no", "yes"], ROWS),
            "weight": rng.integers(0, 4, ROWS) / 2,
        }
    )


INPUTS = ["site", "price", "text", "flag"]


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_target_and_weights_may_be_named_columns(convert):
    frame = click_frame()
    expected = read_table_data(frame[INPUTS], frame["click"], sample_weight=frame["weight"])
    data = read_table_data(convert(frame), "click", sample_weight="weight")
    assert data.names == expected.names
    assert data.input_names == tuple(INPUTS)
    np.testing.assert_array_equal(data.columns, expected.columns)
    np.testing.assert_array_equal(data.weights, expected.weights)
    np.testing.assert_array_equal(data.target.values, expected.target.values)
    assert data.target.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(data.encode(convert(frame)).columns, expected.encode(frame[INPUTS]).columns)


def test_ignored_columns_are_no_features_and_may_hold_anything():
    frame = click_frame().assign(lists=[[1]] * ROWS)
    data = read_table_data(frame, "click", ignore=["lists", "weight"])
    assert data.input_names == tuple(INPUTS)
    assert read_table_data(frame, "click", ignore="lists").features == 5
    array = read_table_data(frame[["site", "price"]].to_numpy(), frame["click"], ignore=["x0"])
    assert array.names == ("x1",)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("categories", ["one_hot", "codes"])
def test_integers_may_be_categories(convert, categories):
    frame = click_frame()[INPUTS]
    y = np.arange(ROWS) % 2
    as_text = frame.assign(site=frame["site"].astype(str))
    expected = read_table_data(as_text, y, categories=categories)
    data = read_table_data(convert(frame), y, categories=categories, column_types={"site": "categorical"})
    np.testing.assert_array_equal(data.columns, expected.columns)
    np.testing.assert_array_equal(data.codes, expected.codes)
    # The same numbers as floats, as pandas stores integers with missing values.
    floats = frame.assign(site=frame["site"].where(frame["site"] != 1))
    encoded, expected = data.encode(convert(floats)), data.encode(convert(frame))
    same = (frame["site"] != 1).to_numpy()
    np.testing.assert_array_equal(encoded.columns[same], expected.columns[same])
    np.testing.assert_array_equal(encoded.codes[same], expected.codes[same])


def test_columns_of_an_array_may_be_categories():
    X = np.random.default_rng(0).integers(0, 3, (ROWS, 2))
    y = np.arange(ROWS) % 2
    data = read_table_data(X, y, column_types={"x1": "categorical"})
    assert data.feature_of.tolist() == [0, 1, 1, 1]
    with pytest.raises(ValueError, match="column_types: column 'x1' of a sparse matrix"):
        read_table_data(sp.csr_matrix(X), y, column_types={"x1": "categorical"})


def test_log1p_takes_logarithms_before_numbers_are_standardised():
    frame = click_frame()[INPUTS]
    y = np.arange(ROWS) % 2
    price = np.sign(frame["price"]) * np.log1p(np.abs(frame["price"]))
    expected = read_table_data(frame.assign(price=price), y).columns
    data = read_table_data(frame, y, log1p=["price"])
    np.testing.assert_array_equal(data.columns, expected)
    np.testing.assert_array_equal(data.encode(frame).columns, expected)
    both = frame.assign(price=price, site=np.log1p(frame["site"]))  # booleans are no numeric feature
    np.testing.assert_array_equal(
        read_table_data(frame, y, log1p=True).columns, read_table_data(both, y).columns
    )


def test_log1p_of_arrays_and_sparse_matrices():
    X = np.random.default_rng(0).normal(size=(ROWS, 3)) * 100
    X[np.abs(X) < 50] = 0
    y = np.arange(ROWS) % 2
    expected = read_table_data(np.sign(X) * np.log1p(np.abs(X)), y).columns
    np.testing.assert_array_equal(read_table_data(X, y, log1p=True).columns, expected)
    sparse = read_table_data(sp.csr_matrix(X), y, log1p=True)
    np.testing.assert_allclose(sparse.columns, expected, atol=1e-5)
    np.testing.assert_allclose(sparse.encode(sp.csr_matrix(X)).columns, expected, atol=1e-5)


def test_negatives_kept_weights_the_first_class():
    frame = click_frame()
    data = read_table_data(frame[INPUTS], frame["click"], negatives_kept=0.1)
    negative = frame["click"] == "no"
    np.testing.assert_allclose(data.weights[negative][0] / data.weights[~negative][0], 10, rtol=1e-6)
    balanced = read_table_data(frame[INPUTS], frame["click"], negatives_kept=0.1, class_weight="balanced")
    np.testing.assert_allclose(balanced.weights[negative].sum(), balanced.weights[~negative].sum(), rtol=1e-5)


def test_times_of_day_and_decimals_are_numbers():
    seconds = pa.array(np.arange(ROWS), pa.int32())
    table = pa.table(
        {
            "time32": seconds.cast(pa.time32("s")),
            "time64": pa.array([None, *range(1, ROWS)], pa.int64()).cast(pa.time64("us")),
            "decimal": seconds.cast(pa.decimal128(12, 2)),
            "date": seconds.cast(pa.date32()),
            "plain": seconds,
        }
    )
    data = read_table_data(table, np.arange(ROWS) % 2)
    plain = data.columns[:, data.names.index("plain")]
    for name in ("time32", "decimal", "date"):
        np.testing.assert_allclose(data.columns[:, data.names.index(name)], plain, rtol=1e-6)
    assert data.columns[0, data.names.index("time64")] == 0


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ("clicks", {}, "y: no column 'clicks'; did you mean 'click'"),
        ("click", {"sample_weight": "w"}, "sample_weight: no column 'w'; the columns are"),
        ("click", {"sample_weight": "click"}, "sample_weight: 'click' is the target"),
        ("click", {"sample_weight": "text"}, "sample_weight: must hold numbers"),
        ("click", {"ignore": ["id"]}, "ignore: no column 'id'; the columns are"),
        ("click", {"ignore": ["click"]}, "ignore: 'click' is the target"),
        ("click", {"ignore": 3}, "ignore: must be names of columns"),
        ("click", {"ignore": [*INPUTS, "weight"]}, "X: no columns are left"),
        ("click", {"column_types": {"id": "numeric"}}, "column_types: no column 'id'"),
        ("click", {"column_types": {"site": "word"}}, "column_types: 'word' for 'site' is unknown"),
        ("click", {"column_types": {"text": "boolean"}}, "column_types: column 'text' holds text"),
        ("click", {"column_types": ["site"]}, "column_types: must be a dict"),
        ("click", {"log1p": ["text"]}, "log1p: 'text' is not a numeric feature"),
        ("click", {"log1p": 3}, "log1p: must be names of columns"),
        ("price", {"negatives_kept": 0.5}, "negatives_kept: needs a target of classes"),
        ("site", {"negatives_kept": 0.5}, "negatives_kept: needs two classes, the target has 3"),
    ],
)
def test_bad_options_name_the_argument_and_what_is_wrong(y, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_table_data(click_frame(), y, **options)


def test_a_table_to_encode_must_have_the_columns_of_the_training_rows():
    frame = click_frame()
    data = read_table_data(frame, "click")
    with pytest.raises(ValueError, match="X_test: column 'price' is missing"):
        data.encode(frame.drop(columns="price"), "X_test")
    with pytest.raises(ValueError, match="X_test: column 'price' holds 'dear', which is not a number"):
        data.encode(frame.assign(price="dear"), "X_test")


def test_dates_and_decimals_as_python_objects_are_the_numbers_of_their_types():
    days = [date(2020, 1, 1) + timedelta(i) for i in range(ROWS)]
    times = [datetime.combine(day, time()) for day in days]
    objects = {
        "date": days,
        "datetime": times,
        "both": [day if i % 2 else moment for i, (day, moment) in enumerate(zip(days, times, strict=True))],
        "decimal": [Decimal(i) / 4 for i in range(ROWS)],
        "mixed": [Decimal(i) if i % 2 else float(i) for i in range(ROWS)],
        "duration": [timedelta(i) for i in range(ROWS)],
    }
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in objects.items()})
    frame = frame.assign(plain=np.arange(ROWS))
    frame.loc[3] = [None, pd.NaT, pd.NaT, None, None, None, np.nan]
    data = read_table_data(frame, np.arange(ROWS) % 2)
    plain = data.columns[:, data.names.index("plain")]
    for name in objects:
        np.testing.assert_allclose(data.columns[:, data.names.index(name)], plain, rtol=1e-5, atol=1e-6)


def test_a_period_is_refused_with_the_conversion_that_helps():
    frame = click_frame().assign(month=pd.period_range("2020-01", periods=ROWS, freq="M"))
    message = r"X: column 'month' has type period\[M\], .* \.dt\.to_timestamp\(\), .* ignore=\['month'\]"
    with pytest.raises(ValueError, match=message):
        read_table_data(frame, "click")
