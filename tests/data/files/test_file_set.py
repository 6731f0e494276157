"""Files are found, described and read in row groups; an error names the file."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from seqatt.api.select import are_files
from seqatt.data.files.column_types import column_kind
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.file_set import find_files, open_files, read_row_group
from seqatt.data.files.formats import delimited
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.whole_file import UnreadableFile

ROWS = 40_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    words = np.array(["plain", 'a "quoted" word', "two\nlines", "com,ma", "ünïcode"], dtype=object)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "x": rng.normal(size=ROWS).round(4),
            "word": pa.array(words[rng.integers(5, size=ROWS)], mask=rng.random(ROWS) < 0.1),
            "flag": rng.random(ROWS) < 0.5,
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    text = table.to_pandas().to_csv(index=False, sep="\t" if ".tsv" in path.name else ",").encode()
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=7_000)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=9_000)
    else:
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read_all(where: object, names: list[str]) -> pa.Table:
    files = open_files(where)
    types = {name: files.types[name] for name in names}
    return pa.Table.from_batches(
        [batch for group in files.row_groups for batch, _ in read_row_group(group, types, {})]
    )


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz", "a.tsv", "a.feather", "a.arrow"])
def test_every_format_gives_the_same_rows_of_the_requested_columns(table, tmp_path, monkeypatch, name):
    # Many blocks, cut between lines with line breaks inside quotes.
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 16)
    found = read_all(write(table, tmp_path / name), ["word", "id", "flag"])
    assert found.column_names == ["word", "id", "flag"]
    assert found["id"].to_numpy().tolist() == list(range(ROWS))
    assert found["word"].cast(pa.string()).to_pylist() == table["word"].to_pylist()
    assert found["flag"].to_pylist() == table["flag"].to_pylist()


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz", "a.feather", "a.arrow"])
def test_the_share_of_a_row_group_that_was_read_grows_to_one(table, tmp_path, monkeypatch, name):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 16)
    files = open_files(write(table, tmp_path / name))
    for group in files.row_groups:
        shares = [share for _, share in read_row_group(group, {"id": files.types["id"]}, {})]
        assert shares == sorted(shares)
        assert 0 < shares[0] <= shares[-1]
        assert shares[-1] == pytest.approx(1.0, abs=0.01)


def test_a_path_a_pattern_a_folder_and_a_list_find_each_file_once(table, tmp_path):
    small = table.slice(0, 10)
    names = ["part-1.parquet", "part-2.parquet", "deep/part-3.parquet"]
    (tmp_path / "deep").mkdir()
    paths = [write(small, tmp_path / name) for name in names]
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_bytes(b"x")
    assert set(find_files(tmp_path)) == set(paths)
    assert find_files(str(tmp_path / "part-*.parquet")) == paths[:2]
    assert find_files([paths[1], tmp_path / "part-*.parquet"]) == [paths[1], paths[0]]
    assert open_files(tmp_path).rows == 30
    (tmp_path / "link.parquet").symlink_to(paths[0])
    repeated = [
        paths[0],
        os.path.relpath(paths[0]),
        tmp_path / "deep/../part-1.parquet",
        tmp_path / "link.parquet",
    ]
    assert find_files(repeated) == [paths[0]]
    for empty in ("", [paths[0], ""]):
        with pytest.raises(ValueError, match="X: an empty name is no file"):
            find_files(empty)
    assert all(map(are_files, ["a.csv", Path("a"), ["a", Path("b")]]))
    assert not any(map(are_files, [[], [[1.0]], np.zeros((2, 2)), table]))


def test_row_counts_come_from_metadata(table, tmp_path):
    assert open_files(write(table, tmp_path / "a.parquet")).rows == ROWS
    assert len(open_files(tmp_path / "a.parquet").row_groups) == 6
    assert open_files(write(table, tmp_path / "a.feather")).rows == ROWS
    assert open_files(write(table, tmp_path / "a.csv")).rows is None


def assert_refused(where: object, *messages: str) -> None:
    with pytest.raises(UnreadableFile) as error:
        read_all(where, ["id", "x"])
    assert all(message in str(error.value) for message in messages), str(error.value)


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_a_later_file_without_a_column_is_named(table, tmp_path, ending):
    write(table.slice(0, 9), tmp_path / f"a.{ending}")
    write(table.slice(0, 9).drop_columns(["x"]), tmp_path / f"b.{ending}")
    assert_refused(tmp_path, f"b.{ending}", "'x' is missing")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_later_file_with_text_for_numbers_is_named(table, tmp_path, ending):
    write(table.slice(0, 9), tmp_path / f"a.{ending}")
    words = table.slice(0, 9).set_column(1, "x", pa.array(["word"] * 9))
    write(words, tmp_path / f"b.{ending}")
    assert_refused(tmp_path, f"b.{ending}", "x" if ending == "parquet" else "column_types")


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_a_column_that_is_empty_in_the_first_file_has_the_type_of_a_later_one(table, tmp_path, ending):
    full = table.slice(0, 9)
    empty = full.set_column(2, "word", pa.nulls(9))
    write(empty, tmp_path / f"a.{ending}")
    write(full, tmp_path / f"b.{ending}")
    write(empty.slice(0, 0) if ending == "csv" else empty, tmp_path / f"c.{ending}")
    for order in ("abc", "cba", "bac", "cab"):
        paths = [tmp_path / f"{name}.{ending}" for name in order]
        files = open_files(paths)
        assert column_kind(files.types["word"]) == "categorical"
        assert column_kind(files.types["x"]) == "numeric"
        data = read_file_data(paths, "flag", FileOptions(), 64)
        [category] = data.categories
        assert len(category.known) == len(full["word"].drop_null().unique())
        assert sum(rows.count for group in files.row_groups for rows, _ in data.read(group)) >= 18


def test_a_corrupt_file_is_named(table, tmp_path):
    path = write(table, tmp_path / "bad.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert_refused(path, "bad.parquet", "cannot be read")
    path.write_bytes(whole[:100] + bytes(50_000) + whole[50_100:])
    assert_refused(path, "bad.parquet", "cannot be read")
    cut = write(table, tmp_path / "cut.csv.gz")
    cut.write_bytes(cut.read_bytes()[:-2_000])
    assert_refused(cut, "cut.csv.gz")
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert_refused(empty, "empty.csv", "empty")
    assert_refused(tmp_path / "none-*.csv", "no file matches")
    (tmp_path / "folder").mkdir()
    assert_refused(tmp_path / "folder", "no file in")


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(delimited, "MAX_LINE_BYTES", 1 << 15)
    path = tmp_path / "open.csv"
    path.write_text('id,x\n1,"2\n' + "1,2\n" * 50_000)
    assert_refused(path, "open.csv", "quote")


def test_a_file_that_vanishes_or_changes_while_it_is_read_is_named(table, tmp_path):
    path = write(table, tmp_path / "a.parquet")
    files = open_files(path)
    os.remove(path)
    with pytest.raises(UnreadableFile, match=r"a\.parquet: the file is no longer there"):
        list(read_row_group(files.row_groups[0], {"id": files.types["id"]}, {}))
    write(table.slice(0, 20), path)
    with pytest.raises(UnreadableFile, match=r"a\.parquet: has changed since the start"):
        list(read_row_group(files.row_groups[0], {"id": files.types["id"]}, {}))


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.feather"])
def test_a_replaced_file_is_an_error_before_any_of_its_rows_is_read(table, tmp_path, name):
    path = write(table.slice(0, 1_000), tmp_path / name)
    files = open_files(path)
    times = path.stat()
    for rows in (1_500, 1_000):  # more rows; and as many, with another modification time
        write(table.slice(0, rows), path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + (rows == 1_000)))
        with pytest.raises(UnreadableFile, match=rf"{name}: has changed"):
            next(read_row_group(files.row_groups[0], {"id": files.types["id"]}, {}))
