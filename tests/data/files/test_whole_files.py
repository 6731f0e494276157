"""Files that fit in memory are read as one table; their size is known before, and rows can be sampled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from seqatt.data.files.encoding.column_types import decide_kinds
from seqatt.data.files.errors import SkippedData, UnreadableFile
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.options import FileOptions
from seqatt.data.files.whole_files import count_rows, estimate_table_bytes, read_whole_table, sample_rows
from seqatt.data.tables.table_data import read_table_data

ROWS = 9_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    words = np.array(["a", "b", "ünï", "com,ma"], dtype=object)
    return pa.table(
        {
            "i": pa.array(np.arange(ROWS), pa.int64()),
            "small": pa.array(rng.integers(0, 9, ROWS), pa.int8()),
            "x": pa.array(rng.normal(size=ROWS), mask=rng.random(ROWS) < 0.1),
            "word": pa.array(words[rng.integers(4, size=ROWS)], mask=rng.random(ROWS) < 0.1),
            "id": pa.array([f"id-{i:08}" for i in range(ROWS)]),
            "y": pa.array(rng.integers(2, size=ROWS), pa.int64()),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2_000)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    else:
        path.write_text(table.to_pandas().astype({"x": float}).to_csv(index=False))
    return path


def kinds_of(files: FileSet, names: list[str]) -> dict:
    return decide_kinds(files.types, [name for name in names if name != "y"], {})


def read(where) -> pa.Table:
    files = open_files(where)
    return read_whole_table(files, list(files.types), kinds_of(files, list(files.types)))


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_all_rows_are_read_in_the_order_of_the_files(table, tmp_path, ending):
    for start in (0, 3_000, 6_000):
        write(table.slice(start, 3_000), tmp_path / f"part-{start}.{ending}")
    found = read(tmp_path)
    assert found.column_names == table.column_names
    for name in table.column_names:
        column = found[name].combine_chunks()
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        assert column.to_pylist() == table[name].to_pylist(), name
    assert found["i"].type == found["y"].type == pa.int64()
    assert found["small"].type == (pa.int64() if ending == "csv" else pa.int8())


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_text_is_a_dictionary_where_that_saves_memory(table, tmp_path, ending):
    found = read(write(table, tmp_path / f"a.{ending}"))
    assert pa.types.is_dictionary(found["word"].type)
    assert pa.types.is_string(found["id"].type)
    assert len(found["word"].chunk(0).dictionary) == 4


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("categories", ["one_hot", "mixed", "codes"])
def test_the_table_of_files_is_encoded_bit_for_bit_like_the_table_itself(table, tmp_path, ending, categories):
    found = read(write(table, tmp_path / f"a.{ending}"))
    both = [read_table_data(t.drop_columns(["y"]), t["y"], categories=categories) for t in (found, table)]
    assert both[0].names == both[1].names
    assert both[0].columns.tobytes() == both[1].columns.tobytes()
    assert both[0].codes.tobytes() == both[1].codes.tobytes()


def test_types_that_differ_between_files_have_one_type_in_the_table(tmp_path):
    days = pa.array([0, 86_400], pa.timestamp("s"))
    for name, x, t, w in [
        ("a", pa.array([1, 2], pa.int8()), days, pa.array(["u", "v"])),
        (
            "b",
            pa.array([300, 4], pa.int16()),
            days.cast(pa.date32()),
            pa.array(["v", "w"]).dictionary_encode(),
        ),
        ("c", pa.nulls(2), days.cast(pa.timestamp("us")), pa.nulls(2)),
    ]:
        pq.write_table(pa.table({"x": x, "t": t, "w": w, "y": [0, 1]}), tmp_path / f"{name}.parquet")
    found = read(tmp_path)
    assert found["x"].type == pa.int16()
    assert found["x"].to_pylist() == [1, 2, 300, 4, None, None]
    assert found["t"].type == pa.timestamp("us")
    assert found["t"].to_pylist() == days.to_pylist() * 3
    assert found["w"].cast(pa.string()).to_pylist() == ["u", "v", "v", "w", None, None]


def test_an_unusable_value_is_an_error_that_names_the_file_or_is_left_out(table, tmp_path):
    write(table, tmp_path / "a.parquet")
    x = table["x"].to_numpy().copy()
    x[[10, 2_500, 7_000]] = np.inf
    write(table.set_column(2, "x", pa.array(x)), tmp_path / "b.parquet")
    files = open_files(tmp_path)
    names = list(files.types)
    with pytest.raises(ValueError, match=r"b\.parquet: X: column 'x' contains infinity"):
        read_whole_table(files, names, kinds_of(files, names))
    skipping, skips = FileOptions(on_bad_file="skip"), []
    with pytest.warns(SkippedData, match=r"b\.parquet: .*; 6,000 rows were skipped") as caught:
        found = read_whole_table(files, names, kinds_of(files, names), skipping, skips)
    assert len(caught) == 1  # for three row groups
    assert found.num_rows == 2 * ROWS - 6_000
    assert [skip["group"] for skip in skips] == [0, 1, 3]
    for path in (tmp_path / "a.parquet", tmp_path / "b.parquet"):
        path.unlink()
    with pytest.warns(SkippedData), pytest.raises(UnreadableFile, match="no row of any file"):
        read_whole_table(files, names, kinds_of(files, names), skipping)
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [0, None]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: target: column 'y' has missing"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("categories", ["one_hot", "mixed", "codes"])
def test_the_memory_of_the_table_is_estimated_before_it_is_read(table, tmp_path, ending, categories):
    for start in (0, 3_000, 6_000):
        write(table.slice(start, 3_000), tmp_path / f"part-{start}.{ending}")
    files = open_files(tmp_path)
    kinds = kinds_of(files, list(files.types))
    inputs = [name for name in files.types if name != "y"]
    estimated = estimate_table_bytes(files, inputs, kinds, files.types, categories, 64)
    found = read(tmp_path)
    data = read_table_data(found.drop_columns(["y"]), found["y"], categories=categories)
    used = found.nbytes + data.columns.nbytes + data.codes.nbytes
    assert 0.8 * used < estimated < 1.4 * used


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_sampled_rows_are_spread_evenly_over_all_files(table, tmp_path, ending):
    for start in (0, 3_000, 6_000):
        write(table.slice(start, 3_000), tmp_path / f"part-{start}.{ending}")
    files = open_files(tmp_path)
    names = list(files.types)

    def sample(rows: int, seed: int = 0) -> pa.Table:
        return sample_rows(files, kinds_of(files, names), files.types, rows, seed)

    found = sample(900)
    assert found.num_rows == pytest.approx(900, abs=1 if ending == "parquet" else 50)
    rows = found["i"].to_numpy()
    assert set(np.diff(rows)) <= {9, 10, 11}
    assert rows[0] < 11
    assert rows[-1] > ROWS - 12
    assert found["x"].to_pylist() == table["x"].take(rows).to_pylist()
    assert sample(900).equals(found)
    assert any(sample(900, seed)["i"].to_pylist() != rows.tolist() for seed in (1, 2, 3))
    assert sample(10 * ROWS).num_rows == ROWS
    assert count_rows(files, files.types, kinds_of(files, names)) == pytest.approx(ROWS, rel=0.05)
