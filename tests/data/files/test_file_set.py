"""Files are found, described and read in row groups; an error names the file."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pyarrow import types as of

from seqatt.api.read_data import are_files
from seqatt.data.files.encoding.column_types import column_kind
from seqatt.data.files.errors import IgnoredFiles, UnreadableFile
from seqatt.data.files.file_columns import open_columns
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.file_set import FileSet, open_files, read_row_group
from seqatt.data.files.formats import delimited, parquet
from seqatt.data.files.found_files import find_files
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import ShardSlice
from seqatt.data.files.whole_files import read_whole_table

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


def find_paths(where) -> list:
    return [found.path for found in find_files(where, "X", None, [])]


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


def test_a_row_group_decoded_as_a_whole_has_the_same_rows(table, tmp_path, monkeypatch):
    wide = pa.table({f"x{j}": table["x"] for j in range(70)}).append_column("id", table["id"])
    wide = wide.set_column(3, "x3", pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 7 == 0))
    path = tmp_path / "wide.parquet"
    pq.write_table(wide, path, row_group_size=ROWS, use_dictionary=False)
    in_batches = read_all(path, ["id", "x69", "x3", *(f"x{j}" for j in range(4, 68))])
    monkeypatch.setattr(parquet, "LARGE_PAGES", 0)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)  # not in batches
    assert read_all(path, in_batches.column_names).equals(in_batches)
    assert in_batches["x3"].to_pylist()[:8] == [None, 1, 2, 3, 4, 5, 6, None]


def test_a_row_group_of_many_pages_may_hold_text_and_empty_columns(table, tmp_path, monkeypatch):
    path = write(table.append_column("none", pa.nulls(ROWS)), tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, "LARGE_PAGES", 0)
    found = read_all(path, ["word", "none", "id"])
    assert found["word"].cast(pa.string()).to_pylist() == table["word"].to_pylist()
    assert found["none"].null_count == ROWS


def test_the_index_of_a_pandas_frame_is_no_column(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    frame.iloc[[2, 0, 1]].to_parquet(tmp_path / "a.parquet")
    frame.to_parquet(tmp_path / "b.parquet", index=False)
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    for ignore in ((), ("__index_level_0__",)):  # which had to be left out by name before
        assert open_columns(tmp_path, "y", FileOptions(ignore=ignore)).inputs == ["x"]


@pytest.mark.parametrize(
    ("index", "left_out"), [([0, 1, 2], True), ([7, 3, 5], True), ([0.5, 1, 2], False), ([1, 1, 2], False)]
)
def test_an_unnamed_first_column_of_row_numbers_is_left_out_of_text_files_with_one_warning(
    tmp_path, recwarn, index, left_out
):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}, index)
    for name in ("a.csv", "b.csv"):
        frame.to_csv(tmp_path / name)
    found = open_columns(tmp_path, "y", FileOptions())
    assert found.inputs == ([] if left_out else [""]) + ["x"]
    assert [str(w.message).count("give it a name") for w in recwarn] == [1] * left_out
    assert open_columns(tmp_path, "y", FileOptions(ignore=("",))).inputs == ["x"]
    assert open_files(tmp_path / "b.csv", like=found.files).types == found.files.types


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
    assert set(find_paths(tmp_path)) == set(paths)
    assert find_paths(str(tmp_path / "part-*.parquet")) == paths[:2]
    assert find_paths([paths[1], tmp_path / "part-*.parquet"]) == [paths[1], paths[0]]
    with pytest.warns(IgnoredFiles, match=r"no tables were left out: \.hidden\.parquet, _SUCCESS$"):
        assert open_files(tmp_path).rows == 30
    (tmp_path / "link.parquet").symlink_to(paths[0])
    repeated = [
        paths[0],
        os.path.relpath(paths[0]),
        tmp_path / "deep/../part-1.parquet",
        tmp_path / "link.parquet",
    ]
    assert find_paths(repeated) == [paths[0]]
    for empty in ("", [paths[0], ""]):
        with pytest.raises(ValueError, match="X: an empty name is no file"):
            find_paths(empty)
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
        assert (
            sum(rows.count for group in files.row_groups for rows, _ in data.read_slice(ShardSlice(group), 0))
            >= 18
        )


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


def test_files_of_a_folder_that_are_no_tables_are_left_out_with_one_warning(table, tmp_path):
    small = table.slice(0, 10)
    write(small, tmp_path / "a.parquet")
    write(small, tmp_path / "b.csv")
    for name in ["_SUCCESS", "picture.png", ".crc", *(f"_log/{i}.json" for i in range(9))]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "README.txt").write_text("Clicks, of one week.\nEvery row is one, and more; see the notes.\n")
    with pytest.warns(IgnoredFiles) as caught:
        files = open_files(tmp_path)
    assert len(caught) == 1
    assert "README.txt" in str(caught[0].message) or "and 5 more" in str(caught[0].message)
    assert [group.path.name for group in files.row_groups] == ["a.parquet", "b.csv"]
    with pytest.raises(UnreadableFile, match=r"README\.txt: column 'id' is missing"):  # requested by its name
        open_files([tmp_path / "a.parquet", tmp_path / "README.txt"])


def test_a_txt_file_of_a_folder_is_data_if_it_is_a_table(table, tmp_path):
    small = table.slice(0, 10).select(["id", "x"])
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_text(small.to_pandas().to_csv(index=False, sep="\t"))
    (tmp_path / "0-notes.txt").write_text("These are notes, of course.\nOne more, and so on.\n")
    with pytest.warns(IgnoredFiles, match="left out: 0-notes.txt$"):
        assert len(open_files(tmp_path).row_groups) == 2
    (tmp_path / "3.txt").write_text("id\tz\n1\t2\n")  # a table like the others, without one of their columns
    with pytest.raises(UnreadableFile, match=r"3\.txt: column 'x' is missing"):
        open_files(tmp_path)
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "notes.txt").write_text("These are notes.\n")
    with pytest.raises(UnreadableFile, match="only one column"):
        open_files(tmp_path / "only")


def test_columns_that_the_first_file_does_not_have_are_ignored_with_one_warning(table, tmp_path):
    small = table.slice(0, 10).select(["id", "x"])
    for name in "abc":
        write(small if name == "a" else small.append_column("new", small["x"]), tmp_path / f"{name}.parquet")
    with pytest.warns(
        IgnoredFiles, match=r"b\.parquet: columns that .*a\.parquet does not have .*: new$"
    ) as caught:
        files = open_files(tmp_path)
    assert len(caught) == 1
    assert list(files.types) == ["id", "x"]


def test_another_delimiter_is_found_with_a_warning_or_stated(table, tmp_path):
    small = table.slice(0, 10).select(["id", "x"])
    for name, delimiter in (("a.csv", ";"), ("b.csv", ";"), ("c.tsv", "|")):
        (tmp_path / name).write_text(small.to_pandas().to_csv(index=False, sep=delimiter))
    with pytest.warns(
        UserWarning, match=r"a\.csv: the columns are separated by ';'.* pass delimiter=';'"
    ) as caught:
        files = open_files([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert len(caught) == 1
    rows = [batch for group in files.row_groups for batch, _ in read_row_group(group, files.types, {})]
    assert pa.Table.from_batches(rows)["x"].to_pylist() == small["x"].to_pylist() * 2
    assert open_files(tmp_path / "a.csv", options=FileOptions(delimiter=";")).types.keys() == {
        "id",
        "x",
    }  # no warning
    with pytest.raises(
        UnreadableFile, match=r"a\.csv: only one column .* delimiter '\|'; pass delimiter=';'"
    ):
        open_files(tmp_path / "a.csv", options=FileOptions(delimiter="|"))
    data = read_file_data(tmp_path / "c.tsv", "id", FileOptions(delimiter="|", task="regression"), 64)
    assert data.names == ("x",)
    (tmp_path / "d.csv").write_text("id\n1\n2\n")
    with pytest.raises(UnreadableFile, match=r"d\.csv: only one column .* pass the right one as delimiter"):
        open_files(tmp_path / "d.csv")


@pytest.mark.parametrize(("value", "stated"), [("tab", "\t"), ("\\t", "\t"), ("|", "|"), (None, None)])
def test_the_delimiter_is_one_character(value, stated):
    assert FileOptions(delimiter=value).delimiter == stated
    for bad in ("", ", ", '"', 7):
        with pytest.raises(ValueError, match="delimiter: must be a single character"):
            FileOptions(delimiter=bad)


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_partition_folders_are_columns_with_the_types_of_pyarrow(tmp_path, ending):
    for day, country, x in [
        ("0", "NL", 1.0),
        ("10", "a%2Fb", 2.0),
        ("__HIVE_DEFAULT_PARTITION__", "NL", 3.0),
    ]:
        folder = tmp_path / f"day={day}" / f"country={country}"
        folder.mkdir(parents=True)
        write(pa.table({"x": [x] * 50, "y": [0, 1] * 25}), folder / f"part.{ending}")
    files = open_files(tmp_path)
    assert files.types["day"] == pa.int32()
    assert files.types["country"] == pa.string()
    found = read_all(tmp_path, ["day", "x", "country"]).to_pandas().drop_duplicates()
    assert found["x"].tolist() == [1.0, 2.0, 3.0]
    assert found["country"].tolist() == ["NL", "a/b", "NL"]
    assert found["day"].fillna(-1).tolist() == [0, 10, -1]
    data = read_file_data(tmp_path, "y", FileOptions(), 64)
    assert data.names == ("country", "day", "x")
    assert data.kinds == {"x": "numeric", "day": "numeric", "country": "categorical"}
    assert not data.constant.any()
    by_pattern = open_files(str(tmp_path / "day=*" / "**" / f"*.{ending}"))
    assert {"day", "country"} <= by_pattern.types.keys()
    inside = open_files(tmp_path / "day=0")  # as in pyarrow.dataset: only folders below the one that is named
    assert "day" not in inside.types
    assert inside.types["country"] == pa.string()


def test_a_column_of_the_file_takes_precedence_over_a_partition(tmp_path):
    (tmp_path / "x=7").mkdir()
    write(pa.table({"x": [1.0, 2.0], "y": [0, 1]}), tmp_path / "x=7" / "a.parquet")
    assert read_all(tmp_path, ["x"])["x"].to_pylist() == [1.0, 2.0]


def test_times_of_day_are_seconds_and_decimals_are_numbers(tmp_path):
    times = pa.array([0, 3_600_000_000, None], pa.time64("us"))
    price = pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2))
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"t": times, "s": times.cast(pa.time32("s")), "p": price, "y": price.fill_null(Decimal(3))}),
        path,
    )
    data = read_file_data(path, "y", FileOptions(task="regression"), 64)
    assert [number.shift for number in data.numbers] == [-0.375, 1_800.0, 1_800.0]
    [(rows, _)] = data.read_slice(ShardSlice(data.files.row_groups[0]), 0)
    assert rows.numbers.tolist() == [[1, -1, -1], [-1, 1, 1], [0, 0, 0]]
    assert rows.target == pytest.approx((np.array([1.5, -2.25, 3]) - 0.75) / np.std([1.5, -2.25, 3]))
    classes = read_file_data(path, "y", FileOptions(task="multiclass"), 64)
    assert classes.target.outputs == 3
    assert [
        rows.target.tolist() for rows, _ in classes.read_slice(ShardSlice(classes.files.row_groups[0]), 0)
    ] == [[1, 0, 2]]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_split_has_every_row_once_and_the_test_rows_at_equal_distances(tmp_path, ending):
    for number, rows in enumerate((25, 3, 1)):
        numbers = [100 * number + row for row in range(rows)]
        table = pa.table({"a": numbers, "b": numbers})
        path = tmp_path / f"{number}.{ending}"
        if ending == "csv":
            csv.write_csv(table, path)
        else:
            pq.write_table(table, path, row_group_size=10)
    files = open_files(tmp_path)
    train, test = files.split(4, 1)

    def read(part: FileSet) -> list[int]:
        table = read_whole_table(part, ["a"], {"a": "numeric"})
        return [int(value) for value in table["a"].to_pylist()]

    groups = {"parquet": [range(10), range(10, 20), range(20, 25)], "csv": [range(25)]}[ending]
    groups = [*groups, range(100, 103), range(200, 201)]
    assert read(test) == [value for group in groups for value in group[1::4]]
    assert sorted(read(train) + read(test)) == [value for group in groups for value in group]
    if ending == "parquet":
        assert (train.rows, test.rows) == (len(read(train)), len(read(test)))
    else:
        assert train.rows is None
    for step, offset in ((1, 0), (4, 4), (4, -1)):
        with pytest.raises(ValueError, match="split: needs a step above 1 and an offset below it"):
            files.split(step, offset)
    with pytest.raises(ValueError, match="split already"):
        train.split(4, 1)


@pytest.mark.parametrize("name", ["a.feather", "a.arrow"])
def test_an_arrow_file_that_is_cut_off_while_it_is_read_is_an_error_that_names_it(name, tmp_path):
    """In a process of its own, which a memory-mapped file would end (SIGBUS)."""
    code = """
import os, sys
import numpy as np, pyarrow as pa
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_set import open_files, read_row_group

path = sys.argv[1]
table = pa.table({name: np.arange(200_000.0) for name in "xyz"})
new = pa.ipc.new_file if path.endswith("feather") else pa.ipc.new_stream
with new(path, table.schema) as writer:
    writer.write_table(table, max_chunksize=20_000)
files = open_files(path)
batches = read_row_group(files.row_groups[0], {"x": files.types["x"], "z": files.types["z"]}, {})
first = next(batches)
os.truncate(path, os.path.getsize(path) // 2)
try:
    for _ in batches:
        pass
except UnreadableFile as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert f"{name}: cannot be read as a table" in done.stdout


@pytest.mark.parametrize("name", ["a.feather", "a.arrow"])
def test_a_damaged_arrow_file_is_an_error_and_not_the_end_of_the_process(name, tmp_path):
    """Offsets of texts that point outside the file: a reader that does not check them reads foreign memory."""
    words = pa.array(["plain", "words", "of", "text"] * 10)
    path = tmp_path / name
    with pa.OSFile(str(path), "wb") as sink:
        new = pa.ipc.new_file if name.endswith("feather") else pa.ipc.new_stream
        with new(sink, pa.schema({"word": words.type})) as writer:
            writer.write_table(pa.table({"word": words}))
    content = path.read_bytes()
    offsets = np.frombuffer(words.buffers()[1], np.int32)[1:9].tobytes()
    assert offsets in content
    path.write_bytes(content.replace(offsets, np.full(8, 2**30, np.int32).tobytes()))
    with pytest.raises(UnreadableFile, match=rf"{name}: cannot be read as a table"):
        read_all(path, ["word"])


def test_the_delimiter_follows_from_the_first_lines_not_from_the_header_alone(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a;b,c;y\n1;2;0\n3;4;1\n")
    with pytest.warns(UserWarning, match=r"separated by ';'.* pass delimiter=';'"):
        assert list(open_files(path).types) == ["a", "b,c", "y"]
    assert list(open_files(path, options=FileOptions(delimiter=";")).types) == ["a", "b,c", "y"]
    with pytest.raises(UnreadableFile, match=r"data\.csv: the lines differ .* ','; pass delimiter=';'"):
        open_files(path, options=FileOptions(delimiter=","))
    path.write_text('a,b\n1,x;y;z\n2,"v, w"\n')  # no warning
    assert list(open_files(path).types) == ["a", "b"]
    path.write_text("a,b\n1," + "x" * 200_000 + "\n2,y\n")
    assert list(open_files(path).types) == ["a", "b"]


@pytest.mark.parametrize(("encoding", "converted"), [("latin-1", "ISO-8859-1"), ("utf-16", "UTF-16")])
def test_text_in_another_encoding_is_named_with_the_conversion(tmp_path, monkeypatch, encoding, converted):
    path = tmp_path / "data.csv"
    path.write_text("ort,x,y\nKöln,1,2\nBonn,2,3\n", encoding=encoding)
    message = rf"data\.csv: the text is not UTF-8; .*iconv -f {converted} -t UTF-8 data\.csv"
    with pytest.raises(UnreadableFile, match=message):
        open_files(path)
    if encoding == "latin-1":  # after the first block
        monkeypatch.setattr(delimited, "BLOCK_BYTES", 100)
        path.write_text("ort,x,y\n" + "Bonn,2,3\n" * 100 + "Köln,1,2\n", encoding=encoding)
        with pytest.raises(UnreadableFile, match=message):
            read_all(path, ["ort", "x", "y"])


def test_a_decimal_comma_is_found_with_a_warning_or_stated(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pa.table(
        {"x": rng.normal(size=300).round(3), "n": np.arange(300), "y": rng.normal(size=300).round(2)}
    )
    frame = table.to_pandas()
    text = frame.to_csv(index=False, sep=";", decimal=",").replace(";7;", ";?;")
    (tmp_path / "a.csv").write_text(frame.assign(x=1, y=2).to_csv(index=False, sep=";"))  # decides nothing
    (tmp_path / "b.csv").write_text(text)
    with pytest.warns(UserWarning, match="decimal comma; pass decimal=','"):
        files = open_files(tmp_path, options=FileOptions(delimiter=";"))
    assert [group.decimal for group in files.row_groups] == [",", ","]
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 500)
    stated = open_files(tmp_path / "b.csv", options=FileOptions(delimiter=";", decimal=","))  # no warning
    assert [str(stated.types[name]) for name in "xny"] == ["double", "int64", "double"]
    read = read_whole_table(stated, ["x", "n", "y"], {"x": "numeric", "n": "numeric"})
    np.testing.assert_array_equal(read["x"], table["x"])
    assert read["n"].null_count == 1
    assert of.is_string(
        open_files(tmp_path / "b.csv", options=FileOptions(delimiter=";", decimal=".")).types["x"]
    )
    with pytest.raises(ValueError, match="decimal: must be"):
        FileOptions(decimal="comma")


def test_a_value_of_another_type_is_an_error_with_the_name_of_its_column(tmp_path):
    (tmp_path / "a.csv").write_text("x,code,y\n" + "1,2,0\n3,4,1\n" * 5)
    (tmp_path / "b.csv").write_text("x,code,y\n1,blue,0\n")
    with pytest.raises(UnreadableFile, match=r"b\.csv: .*in column 'code': .*invalid value 'blue'"):
        read_all(str(tmp_path), ["y", "code"])


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/null", "table.csv", "list"])
def test_what_can_be_read_only_once_is_refused_with_a_remedy(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("table.csv")
    what = "standard input" if name in ("-", "/dev/stdin") else "a pipe or a device"
    reason = "cannot be read, because files are read several times; write it to a file first"
    given = ["table.csv"] if name == "list" else name
    with pytest.raises(UnreadableFile, match=f": {what} {reason}"):
        open_files(given)
