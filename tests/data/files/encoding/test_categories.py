"""Categories of files are one-hot columns or codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqatt.data.files.encoding.categories import fit_one_hot
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.categories import ONE_HOT_VALUES
from seqatt.data.tables.table_data import read_table_data

ROWS = 3_000


def encode(column, values) -> np.ndarray:
    out = np.empty((column.width, len(values)), dtype=np.float32)
    column.write(values, out)
    return out.T


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    few = rng.integers(ONE_HOT_VALUES - 1, size=ROWS).astype(str).astype(object)
    few[rng.random(ROWS) < 0.1] = None
    more = rng.integers(ONE_HOT_VALUES, size=ROWS).astype(str).astype(object)
    more[:50] = None
    return pa.table(
        {
            "more": pa.array(more),
            "x": rng.normal(size=ROWS),
            "few": pa.array(few),
            "two": pa.array(np.where(rng.random(ROWS) < 0.3, "no", "yes")),
            "same": pa.array(["a"] * ROWS),
            "y": rng.integers(2, size=ROWS),
        }
    )


def file_data(table, tmp_path, one_hot):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    return read_file_data(tmp_path / "a.parquet", "y", FileOptions(), 1 << 10, one_hot=one_hot)


@pytest.mark.parametrize(
    ("one_hot", "coded"),
    [(False, ["few", "more", "same", "two"]), (True, [])],
)
def test_categories_are_codes_or_one_hot_columns(table, tmp_path, one_hot, coded):
    data = file_data(table, tmp_path, one_hot)
    assert [data.names[f] for f in data.coded_features] == coded
    assert data.code_counts == tuple(category.size for category in data.categories)
    rows = data.encode(table.to_batches()[0])
    assert rows.numbers.shape == (ROWS, len(data.feature_of))
    assert rows.codes.shape == (ROWS, len(coded))
    assert sorted({*data.feature_of.tolist(), *data.coded_features.tolist()}) == list(range(5))
    assert data.empty_rows().numbers.shape == (0, len(data.feature_of))
    assert data.constant.tolist() == [False, False, True, False, False]


def test_one_hot_columns_are_those_of_a_table_in_memory(table, tmp_path):
    data = file_data(table, tmp_path, one_hot=True)
    rows = data.encode(table.to_batches()[0])
    features = table.drop_columns(["y"])
    in_memory = read_table_data(features, table["y"])
    assert in_memory.names == data.names
    for feature, name in enumerate(data.names):
        of_table = in_memory.columns[:, in_memory.feature_of == feature]
        of_files = rows.numbers[:, data.feature_of == feature]
        assert of_files == pytest.approx(of_table, abs=1e-5), name
        if not data.constant[feature]:
            assert of_files.var(0).sum() == pytest.approx(1, abs=1e-3)


def test_only_the_most_frequent_values_have_a_column_and_ties_are_decided_by_text():
    column = pa.array(["c"] * 3 + ["b"] * 2 + ["a"] * 2 + ["rare"] + [None] * 2)
    one_hot = fit_one_hot("x", column, 4)
    hot = encode(one_hot, column) > 0
    assert hot.argmax(1).tolist() == [0] * 3 + [2] * 2 + [1] * 2 + [0] + [3] * 2
    assert not hot[7].any()


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("share_rare", [False, True])
def test_text_that_never_repeats_in_the_sample_is_constant(tmp_path, one_hot, share_rare):
    ids = pa.array([f"u{i}" for i in range(ROWS)])
    pq.write_table(
        pa.table({"id": ids, "x": np.arange(ROWS), "y": np.arange(ROWS) % 2}), tmp_path / "a.parquet"
    )
    data = read_file_data(
        tmp_path / "a.parquet", "y", FileOptions(), 1 << 10, one_hot=one_hot, share_rare=share_rare
    )
    assert data.constant.tolist() == [True, False]


def test_values_that_the_sample_does_not_have_are_zero_in_every_column():
    one_hot = fit_one_hot("x", pa.array(["a", "b", "c", "a"]), 64)
    later = encode(one_hot, pa.array(["new", None, "a"]))
    fitted = one_hot.category
    assert later[0].tolist() == later[1].tolist() == pytest.approx((-fitted.shift / fitted.scale).tolist())
    assert (later[2] > 0).sum() == 1
    empty = fit_one_hot("x", pa.array([None, None], pa.string()), 64)
    assert empty.constant
    assert encode(empty, pa.array(["a", None])).shape == (2, 1)
    for same in (pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b"], pa.large_string())):
        assert encode(one_hot, same).tolist() == encode(one_hot, pa.array(["a", "b"])).tolist()
