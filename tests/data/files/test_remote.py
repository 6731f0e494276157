"""Remote files are found and read like local ones."""

from __future__ import annotations

import sys
import uuid

import fsspec
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather
from pyarrow import parquet as pq
from typer.testing import CliRunner

import seqatt
from seqatt.cli.app import app
from seqatt.data.files.errors import IgnoredFiles, UnreadableFile
from seqatt.data.files.file_set import open_files, read_row_group
from seqatt.data.files.found_files import find_files
from seqatt.datasets.synthetic import click_log

QUICK = {"k": 2, "hidden": (8,), "batch_size": 64, "log1p": True, "epochs": 2}


@pytest.fixture
def folder() -> str:
    """A new folder in fsspec's memory filesystem, which all tests of a process share."""
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"x": [float(i) for i in range(500)], "word": ["a", "b", None, "c", "d"] * 100})


def find_paths(where) -> list:
    return [found.path for found in find_files(where, "X", None, [])]


def write(url: str, table: pa.Table) -> None:
    writers = {"parquet": pq.write_table, "feather": feather.write_feather, "csv": csv.write_csv}
    sink = pa.BufferOutputStream()
    writers[url.rpartition(".")[2]](table, sink)
    with fsspec.open(url, "wb") as out:
        out.write(sink.getvalue().to_pybytes())


def names(where) -> list[str]:
    return [str(path) for path in find_paths(where)]


def test_a_url_a_pattern_a_folder_and_a_list_find_each_file_once(folder, table):
    for name in ("a", "b", "year=1/c", "_SUCCESS"):
        write(f"{folder}/{name}.parquet", table)
    with fsspec.open(f"{folder}/notes.md", "w") as notes:
        notes.write("not a table")
    top = [f"{folder}/a.parquet", f"{folder}/b.parquet"]
    deep = f"{folder}/year=1/c.parquet"
    assert names(top[0]) == top[:1]
    assert names(f"{folder}/[ab].parquet") == top
    assert names(f"{folder}/?.parquet") == top
    assert names(f"{folder}/[!b].parquet") == names(f"{folder}/[a-a^].parquet") == top[:1]
    assert names(f"{folder}/[!a].parquet") == top[1:]
    assert names(f"{folder}/**/*.parquet") == sorted([*top, deep, f"{folder}/_SUCCESS.parquet"])
    assert names(f"{folder}/year=*/*.parquet") == [deep]
    with pytest.raises(UnreadableFile, match="no file matches the pattern"):
        names(f"{folder}/year=1[!x]c.parquet")  # no wildcard but ** matches "/"
    assert names(folder) == sorted([*top, deep])  # not _SUCCESS, which engines leave behind
    assert names([top[1], folder]) == [top[1], top[0], deep]


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_every_format_is_read_remotely(folder, table, ending):
    write(f"{folder}/a.{ending}", table)
    files = open_files(f"{folder}/*.{ending}")
    batches = [batch for group in files.row_groups for batch, _ in read_row_group(group, files.types, {})]
    found = pa.Table.from_batches(batches).to_pandas().astype({"word": object})
    pd.testing.assert_frame_equal(
        found[["x", "word"]], table.to_pandas().astype({"word": object}), check_dtype=False
    )
    assert files.rows == (None if ending == "csv" else 500)


def test_a_selection_by_url_is_that_of_the_same_local_files(folder, tmp_path):
    log = click_log(tmp_path, 4_000, rows_per_file=2_000)
    for path in log.files:
        write(f"{folder}/{path.name}", pq.read_table(path))
    local = seqatt.select(log.files, target="click", **QUICK)
    remote = seqatt.select(f"{folder}/*.parquet", target="click", **QUICK)
    by_file_url = seqatt.select(f"file://{tmp_path}/*.parquet", target="click", **QUICK)
    assert remote.features == local.features == by_file_url.features
    assert remote.scores.tolist() == local.scores.tolist() == by_file_url.scores.tolist()


def test_the_command_takes_a_url(folder, table):
    write(f"{folder}/a.parquet", table.append_column("y", pa.array([0, 1] * 250)))
    arguments = ["select", f"{folder}/a.parquet", "--target", "y", "-k", "1", "--method", "linear_omp"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://nowhere/a.parquet", "no such file or folder"),
        ("memory://nowhere/*.parquet", "no file matches the pattern"),
        ("memory://nowhere/[z-a].parquet", "no file matches the pattern"),
        ("nonsense://bucket/a.parquet", "cannot be reached"),
        ("s4.x://bucket/a.parquet", "cannot be reached"),
    ],
)
def test_an_error_about_a_missing_file_names_its_url(url, message):
    with pytest.raises(UnreadableFile) as error:
        find_paths(url)
    assert message in str(error.value)
    assert url in str(error.value)


def test_a_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UnreadableFile, match=r"fsspec.*pip install 'seqatt\[remote\]'"):
        find_paths("memory://a/b.parquet")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UnreadableFile, match=r"gcsfs.*pip install 'seqatt\[remote\]'"):
        find_paths("simplecache::gs://bucket/b.parquet")


@pytest.mark.parametrize("rows", [600, 400])
def test_a_replaced_remote_row_group_is_an_error(folder, table, rows):
    write(f"{folder}/a.parquet", table)
    files = open_files(folder)
    write(f"{folder}/a.parquet", pa.concat_tables([table, table]).slice(0, rows))
    with pytest.raises(UnreadableFile, match=rf"a\.parquet: has {rows} rows where it had 500"):
        next(read_row_group(files.row_groups[0], files.types, {}))


def test_a_remote_file_that_vanishes_is_named(folder, table):
    write(f"{folder}/a.parquet", table)
    files = open_files(folder)
    fsspec.filesystem("memory").rm(f"{folder}/a.parquet")
    with pytest.raises(UnreadableFile, match=r"a\.parquet: the file is no longer there"):
        list(read_row_group(files.row_groups[0], files.types, {}))


def test_partition_folders_of_a_url_are_columns(folder, table):
    for year in (1, 2):
        write(f"{folder}/year={year}/a.parquet", table)
    with fsspec.open(f"{folder}/README.txt", "w") as notes:
        notes.write("Clicks of two years.\n")
    with pytest.warns(IgnoredFiles, match="left out: README.txt$"):
        files = open_files(folder)
    assert files.types["year"] == pa.int32()
    names = {"year": pa.int32(), "x": files.types["x"]}
    rows = [batch for group in files.row_groups for batch, _ in read_row_group(group, names, {})]
    assert pa.Table.from_batches(rows)["year"].to_pylist() == [1] * 500 + [2] * 500


def test_a_run_on_remote_files_writes_checkpoints_and_is_resumed(folder, tmp_path):
    log = click_log(tmp_path / "log", 2_000)
    write(f"{folder}/log.parquet", pq.read_table(log.files[0]))
    options = {**QUICK, "target": "click", "memory": 0, "checkpoint": tmp_path / "checkpoints"}
    first = seqatt.select(folder, **options)
    again = seqatt.select(folder, resume=True, **options)
    assert again.scores.tolist() == first.scores.tolist()
