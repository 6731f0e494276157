"""A data frame of more columns than rows, all numbers, is read without a look at each column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from seqatt.data.tables import arrow_columns, containers
from seqatt.data.tables.containers import read_input_table
from seqatt.data.tables.table_data import read_table_data

COLUMNS = 600


@pytest.fixture
def frame():
    values = np.random.default_rng(0).normal(size=(40, COLUMNS))
    values[3, 5] = np.nan
    return pd.DataFrame(values, columns=[f"g{i}" for i in range(COLUMNS)])


def as_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, as_arrow, lambda f: f.astype(np.float32)])
def test_the_table_is_that_of_the_frame_read_column_by_column(frame, convert, monkeypatch):
    y, X = np.arange(40) % 2, convert(frame)
    wide = read_table_data(X, y, ignore=["g7"])
    monkeypatch.setattr(containers, "WIDE_COLUMNS", 10**9)
    narrow = read_table_data(X, y, ignore=["g7"])
    assert np.array_equal(wide.columns, narrow.columns)
    assert (wide.names, wide.input_names) == (narrow.names, narrow.input_names)
    assert np.array_equal(wide.encode(X).columns, narrow.columns)


def test_python_does_not_look_at_each_column_of_a_pandas_frame(frame, monkeypatch):
    monkeypatch.setattr(arrow_columns, "read_column", None)
    monkeypatch.setattr(arrow_columns, "NumberColumn", None)
    table = read_input_table(frame)
    assert np.shares_memory(table.data, frame["g3"].to_numpy())


def test_numbers_that_name_columns_stay_numbers(frame):
    frame.columns = range(COLUMNS)
    data = read_table_data(frame, np.arange(40) % 2)
    assert set(data.given_names) == set(range(COLUMNS))


def test_a_column_of_text_among_many_numbers_is_a_category(frame):
    frame["site"] = ["a", "b"] * 20
    table = read_input_table(frame)
    assert table.kinds.count("categorical") == 1


def test_missing_whole_numbers_are_missing():
    columns = {f"g{i}": pa.array([1, None, 3]) for i in range(COLUMNS)}
    numbers = read_input_table(pa.table(columns)).numbers(range(COLUMNS))
    assert np.isnan(numbers[1]).all()
    assert (numbers[[0, 2]] == [[1], [3]]).all()


@pytest.mark.parametrize("rows", [40, 2 * COLUMNS])
def test_large_whole_numbers_are_exact_in_wide_and_narrow_frames(rows):
    """As categories and as the target, beside numbers that are not whole."""
    rng = np.random.default_rng(0)
    columns = {f"g{i}": rng.normal(size=rows) for i in range(COLUMNS)}
    large = 2**60 + np.arange(rows) % 4
    X = pl.DataFrame({**columns, "id": large, "y": large % 2 + 2**60})
    data = read_table_data(X, "y", column_types={"id": "categorical"})
    assert data.target.classes.tolist() == [2**60, 2**60 + 1]
    assert (data.feature_of == COLUMNS).sum() == 4


def test_a_wide_frame_of_whole_numbers_alone_keeps_their_last_digits():
    large = 2**60 + np.arange(40)
    X = pl.DataFrame({f"g{i}": np.roll(large, i) for i in range(COLUMNS)})
    table = read_input_table(X)
    assert table.data.dtype == np.int64
    assert table.data[:, 1].tolist() == np.roll(large, 1).tolist()
