"""Categories are one-hot columns or codes, the same for every container, without Python loops over rows."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import seqatt
from seqatt.data.tables.categories import min_level_rows
from seqatt.data.tables.table_data import read_table_data


def text_frame(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Columns of 2, 3, 16, 17 and 200 values; missing values in "three" and "many"."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"number": rng.normal(size=rows)})
    for name, values in (("two", 2), ("three", 3), ("sixteen", 16), ("seventeen", 17), ("many", 200)):
        drawn = np.minimum(rng.integers(0, values, rows), rng.integers(0, values, rows))
        drawn[:values] = np.arange(values)  # every value occurs
        texts = np.array([f"v{value}" for value in drawn], dtype=object)
        if name in ("three", "many"):
            texts[rng.random(rows) < 0.1] = None
        frame[name] = pd.Series(texts, dtype=object)
    return frame


def polars_categorical(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(frame).with_columns(pl.col(pl.String).cast(pl.Categorical))


CONTAINERS = {
    "object": lambda frame: frame,
    "string": lambda frame: frame.astype(dict.fromkeys(frame.columns[1:], "string")),
    "str": lambda frame: frame.astype(dict.fromkeys(frame.columns[1:], "str")),
    "category": lambda frame: frame.astype(dict.fromkeys(frame.columns[1:], "category")),
    "polars": pl.from_pandas,
    "polars categorical": polars_categorical,
    "arrow": pa.Table.from_pandas,
    "arrow in chunks": lambda frame: pa.concat_tables(
        [pa.Table.from_pandas(frame[:250]), pa.Table.from_pandas(frame[250:])]
    ),
    "arrow dictionaries in chunks": lambda frame: pa.concat_tables(
        [polars_categorical(part).to_arrow() for part in (frame[:250], frame[250:])]
    ),
}  # fmt: skip


def one_hot_by_rows(labels: list, weights: np.ndarray | None, max_categories: int) -> np.ndarray:
    """The definition: one column per frequent value, shifted by its mean; the variances sum to 1."""
    counts: dict = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    ranked = sorted(counts, key=lambda value: (-counts[value], value is None, str(value)))
    enough = [value for value in ranked if counts[value] >= min_level_rows(len(labels))]
    levels = ranked[1:] if len(ranked) == 2 else enough[:max_categories]
    hot = np.array([[float(label == level) for level in levels] for label in labels])
    mean = np.average(hot, axis=0, weights=weights)
    return ((hot - mean) / np.sqrt(np.sum(mean * (1 - mean)))).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_categories", [4, 64])
@pytest.mark.parametrize("name", CONTAINERS)
def test_one_hot_columns_are_those_of_the_definition_bit_for_bit(name, max_categories, weighted):
    frame = text_frame()
    weights = np.random.default_rng(1).random(600) + 0.1 if weighted else None
    used = None if weights is None else weights / weights.mean()
    data = read_table_data(
        CONTAINERS[name](frame), np.arange(600) % 2, sample_weight=weights, max_categories=max_categories
    )
    for feature, column in enumerate(data.names):
        if column != "number":
            labels = [None if value is None else str(value) for value in frame[column].tolist()]
            expected = one_hot_by_rows(labels, used, max_categories)
            np.testing.assert_array_equal(data.columns[:, data.feature_of == feature], expected)


@pytest.mark.parametrize("categories", ["mixed", "codes"])
def test_every_container_has_the_same_codes(categories):
    frame, y = text_frame(), np.arange(600) % 2
    expected = read_table_data(frame, y, categories=categories)
    for convert in CONTAINERS.values():
        data = read_table_data(convert(frame), y, categories=categories)
        np.testing.assert_array_equal(data.columns, expected.columns)
        np.testing.assert_array_equal(data.codes, expected.codes)
        assert data.code_counts == expected.code_counts


def test_mixed_categories_are_codes_beyond_sixteen_frequent_values():
    frame, y = text_frame(6000), np.arange(6000) % 2
    hot, mixed = read_table_data(frame, y), read_table_data(frame, y, categories="mixed")
    assert [mixed.names[f] for f in mixed.coded_features] == ["many", "seventeen"]
    kept = ~np.isin(hot.feature_of, mixed.coded_features)
    np.testing.assert_array_equal(mixed.columns, hot.columns[:, kept])
    np.testing.assert_array_equal(mixed.feature_of, hot.feature_of[kept])
    assert mixed.codes.dtype == np.int32
    assert mixed.codes.shape == (6000, 2)
    assert hot.codes.shape == (6000, 0)
    assert hot.code_counts == ()


def test_a_missing_value_counts_as_one_of_the_sixteen():
    values = [f"v{i % 16}" for i in range(400)]
    y = np.arange(400) % 2
    assert len(read_table_data(pd.DataFrame({"c": values}), y, categories="mixed").coded_features) == 0
    values[:10] = [None] * 10
    assert len(read_table_data(pd.DataFrame({"c": values}), y, categories="mixed").coded_features) == 1


def test_a_category_of_rare_values_stays_one_hot_however_many_there_are():
    values = [f"v{i % 30}" for i in range(240)]  # eight rows each
    y = np.arange(240) % 2
    mixed = read_table_data(pd.DataFrame({"c": values}), y, categories="mixed")
    assert mixed.codes.shape == (240, 0)
    np.testing.assert_array_equal(mixed.columns, read_table_data(pd.DataFrame({"c": values}), y).columns)


def test_a_value_has_a_one_hot_column_from_two_to_ten_rows_on_by_the_rows_of_the_table():
    assert [min_level_rows(rows) for rows in (2, 30, 599, 600, 1000, 2000, 10**6)] == [2, 2, 2, 3, 5, 10, 10]


@pytest.mark.parametrize("categories", ["one_hot", "mixed", "codes"])
@pytest.mark.parametrize("rows", [30, 1000])
def test_text_that_never_repeats_is_constant(rows, categories):
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(rows)], "n": range(rows)})
    data = read_table_data(frame, np.arange(rows) % 2, categories=categories)
    assert data.constant.tolist() == [True, False]
    assert (data.columns[:, 0] == 0).all()
    assert (data.encode(frame.assign(id="u0")).columns[:, 0] == 0).all()


def test_a_small_table_keeps_the_values_of_its_categories():
    values = ["a"] * 12 + ["b"] * 8 + ["c"] * 5 + ["d"] * 3 + ["e"] * 2
    data = read_table_data(pd.DataFrame({"c": values}), np.arange(30) % 2, categories="mixed")
    assert data.columns.shape == (30, 5)
    assert len(np.unique(data.columns, axis=0)) == 5


def test_rare_values_share_one_row_of_zeros_and_two_values_are_told_apart_however_rare_one_is():
    values = ["often"] * 500 + [f"once {i}" for i in range(500)]
    columns = read_table_data(pd.DataFrame({"c": values}), np.arange(1000) % 2).columns
    assert columns.shape == (1000, 1)
    assert np.unique(columns[500:]).size == 1
    two = read_table_data(pd.DataFrame({"c": ["yes"] * 999 + ["no"]}), np.arange(1000) % 2)
    assert not two.constant[0]


def test_an_id_is_not_selected_before_noise():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 6)), columns=list("abcdef"))
    y = (X.a + X.b + rng.normal(size=1000) > 0).astype(int)
    for ids in ([f"u{i}" for i in range(1000)], rng.permutation(1000) + 10_000):
        selection = seqatt.select(X.assign(id=ids), y, k=3, epochs=5)
        assert {"a", "b"} <= set(selection.features)
        assert "id" not in selection.features


def test_codes_follow_frequency_then_text_and_rare_values_share_code_zero():
    values = ["b"] * 12 + ["a"] * 12 + [None] * 12 + ["z"] * 30 + ["rare"] * 9 + ["once"]
    data = read_table_data(pd.DataFrame({"c": values}), np.arange(76) % 2, categories="codes")
    code = dict(zip(values, data.codes[:, 0].tolist(), strict=True))
    assert code == {"z": 1, "a": 2, "b": 3, None: 4, "rare": 0, "once": 0}
    assert data.code_counts == (5,)
    assert data.columns.shape == (76, 0)


def test_values_not_seen_in_training_rows_get_code_zero_or_a_row_of_zeros():
    train = pd.DataFrame({"c": ["a", "b", "c"] * 20, "n": range(60)})
    y = np.arange(60) % 2
    test = pd.DataFrame({"n": [1, 2, 3], "c": ["b", "new", None], "more": ["x", "y", "z"]})
    columns, codes = read_table_data(train, y, categories="codes").encode(test)
    assert codes.tolist() == [[2], [0], [0]]
    hot = read_table_data(train, y).encode(test).columns
    assert (hot[1, :3] == hot[2, :3]).all()
    assert (hot[1, :3] < 0).all()
    assert columns.shape == (3, 1)


def test_a_group_may_hold_numbers_one_hot_columns_and_codes():
    frame = text_frame(6000)
    data = read_table_data(
        frame, np.arange(6000) % 2, categories="mixed", groups={"group": ["number", "many", "three"]}
    )
    group = data.names.index("group")
    assert (data.feature_of == group).sum() == 1 + 4
    assert data.coded_features.tolist() == [group, data.names.index("seventeen")]
    assert not data.constant.any()


def test_mixed_objects_are_categories_by_their_text():
    mixed = pd.Series([True, 1, "1", 1.0, None, np.nan, pd.NA, pd.NaT, "x", np.int64(7)] * 12, dtype=object)
    data = read_table_data(
        pd.DataFrame({"m": mixed, "n": range(120)}), np.arange(120) % 2, categories="codes"
    )
    codes = data.codes[:10, 0].tolist()
    assert codes[1] == codes[2]  # 1 and "1" have the same text
    assert len({codes[0], codes[1], codes[3], codes[4], codes[8], codes[9]}) == 6
    assert codes[4] == codes[5] == codes[6] == codes[7] == 1  # missing, the most frequent


def test_objects_that_are_numbers_are_numbers():
    columns = {
        "bool": [True, False, None],
        "mix": [True, 2, 2.5],
        "int": [1, 2, None],
        "huge": [2**70, 0, 1.0],
    }
    frame = pd.DataFrame({name: pd.Series(values * 10, dtype=object) for name, values in columns.items()})
    data = read_table_data(frame, np.arange(30) % 2)
    assert data.columns.shape == (30, 4)
    np.testing.assert_allclose(data.columns.mean(0), 0, atol=1e-6)


def test_objects_that_are_neither_numbers_nor_text_raise_wherever_they_are():
    values = ["a"] * 500 + [["a", "list"]]
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    with pytest.raises(TypeError, match="X: column 'c' holds a list"):
        read_table_data(frame, np.arange(501) % 2)


def test_text_that_is_not_unicode_is_a_category():
    frame = pd.DataFrame({"c": pd.Series(["\ud800", "b", "c"] * 10, dtype=object)})
    assert read_table_data(frame, np.arange(30) % 2).columns.shape == (30, 3)


def test_intervals_and_unused_levels_of_a_pandas_category():
    cut = pd.cut(np.arange(60), 4)
    frame = pd.DataFrame({"cut": cut, "unused": pd.Categorical(["a", "b", "c"] * 20, list("abcdefgh"))})
    assert np.bincount(read_table_data(frame, np.arange(60) % 2).feature_of).tolist() == [4, 3]


@pytest.mark.parametrize("name", CONTAINERS)
def test_python_looks_at_distinct_values_never_at_every_row(name):
    def python_lines(rows: int) -> int:
        frame = CONTAINERS[name](pd.concat([text_frame(500)] * (rows // 500), ignore_index=True))
        y = np.array(["no", "yes"] * (rows // 2), dtype=object)
        lines = 0

        def trace(frame, event, _):
            nonlocal lines
            lines += event == "line"
            return trace if "seqatt" in frame.f_code.co_filename else None

        threading.settrace(trace)
        sys.settrace(trace)
        try:
            read_table_data(frame, y, categories="mixed")
        finally:
            sys.settrace(None)
            threading.settrace(None)
        return lines

    python_lines(500)  # imports
    assert python_lines(8000) < python_lines(1000) + 500


def test_numbers_of_a_frame_are_never_copied_as_a_whole():
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(100_000, 100)).astype(np.float32)
    frame = pl.from_numpy(X)
    tracemalloc.start()
    read_table_data(frame, np.arange(100_000) % 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * X.nbytes  # the encoded table and one block in float64


def test_a_whole_number_is_the_same_category_as_an_integer_and_as_a_float():
    """pandas makes integers floats as soon as one is missing, in the training rows or in others."""
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 8, 300)
    y = np.array([1, 0, 1, 0, 1, 0, 1, 0])[shop]
    integers = pd.DataFrame({"shop": pd.Categorical(shop)})
    floats = pd.DataFrame({"shop": pd.Categorical(np.where(np.arange(300) == 5, np.nan, shop))})
    for train, test in ((integers, floats), (floats, integers)):
        evaluation = seqatt.evaluate(train[:200], y[:200], test[200:], y[200:], seeds=1, epochs=20)
        assert evaluation.mean["accuracy"] == 1
