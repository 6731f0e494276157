"""Files that cannot be read during a pass end the run, or are skipped with a warning, but never silently."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import seqatt
from seqatt.api import read_files
from seqatt.checkpoints import checkpoint
from seqatt.data.files import loader
from seqatt.data.files.errors import SkippedData, UnreadableFile
from seqatt.data.files.formats import delimited
from seqatt.data.files.loader import FileLoader

QUICK = {
    "k": 2,
    "hidden": (8,),
    "batch_size": 32,
    "epochs": 1,
    "ensemble": 1,
    "schema_rows": 400,
    "memory": 0,
}
SUMS = {"k": 2, "memory": 0}


@pytest.fixture
def folder(tmp_path):
    """Four files of two row groups, 500 rows each; the target depends on a and b."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        frame = pd.DataFrame(rng.normal(size=(1_000, 5)), columns=list("abcde"))
        frame["y"] = (2 * frame["a"] - 2 * frame["b"] > 0).astype(int)
        frame.to_parquet(folder / f"{number}.parquet", row_group_size=500, write_page_checksum=True)
    return folder


def flip_bits(path, group: int) -> None:
    """Flip bits in the values of one row group; the file's metadata and modification time stay the same."""
    times = path.stat()
    column = pq.ParquetFile(path).metadata.row_group(group).column(2)
    middle = column.data_page_offset + column.total_compressed_size // 2
    content = bytearray(path.read_bytes())
    for position in range(middle, middle + 40):
        content[position] ^= 0xFF
    path.write_bytes(bytes(content))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def remove(folder) -> None:
    (folder / "2.parquet").unlink()


def change(folder) -> None:
    frame = pd.read_parquet(folder / "2.parquet")
    frame["c"] = "text"
    frame.to_parquet(folder / "2.parquet", row_group_size=500)


def corrupt(folder) -> None:
    flip_bits(folder / "2.parquet", 1)


FAULTS = [(remove, 1_000, "no longer there"), (change, 1_000, "has changed"), (corrupt, 500, "2.parquet")]


def cause_fault(monkeypatch, folder, fault) -> None:
    """Cause the fault after the schema sample was read and before the pass."""
    real = loader.make_loader

    def make_loader(*arguments, **options):
        fault(folder)
        return real(*arguments, **options)

    for module in (loader, read_files):  # sums over files, training
        monkeypatch.setattr(module, "make_loader", make_loader)


@pytest.mark.parametrize(("fault", "lost", "message"), FAULTS)
def test_a_fault_during_a_pass_ends_the_run_with_the_name_of_the_file(
    folder, monkeypatch, fault, lost, message
):
    cause_fault(monkeypatch, folder, fault)
    with pytest.raises(UnreadableFile, match=r"2\.parquet") as error:
        seqatt.select(folder, target="y", **QUICK)
    assert message in str(error.value)


@pytest.mark.parametrize(("fault", "lost", "message"), FAULTS)
def test_a_skipped_fault_is_reported_with_the_number_of_rows_lost(folder, monkeypatch, fault, lost, message):
    cause_fault(monkeypatch, folder, fault)
    with pytest.warns(SkippedData, match=rf"2\.parquet.* {lost:,} rows were skipped"):
        selection = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)
    assert sorted(selection.features) == ["a", "b"]
    skipped = selection.settings["skipped"]
    assert sum(part["rows"] for part in skipped) == lost
    assert all("2.parquet" in part["file"] and message in part["reason"] for part in skipped)
    assert selection.settings["rows"] == 4_000 - lost


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_methods_that_accumulate_sums_skip_too_if_requested(folder, monkeypatch, method):
    whole = seqatt.select(folder, target="y", method=method, **SUMS)
    cause_fault(monkeypatch, folder, corrupt)
    with pytest.raises(UnreadableFile, match=r"2\.parquet"):
        seqatt.select(folder, target="y", method=method, **SUMS)
    monkeypatch.undo()
    with pytest.warns(SkippedData, match=r"2\.parquet.* 500 rows were skipped"):
        selection = seqatt.select(folder, target="y", method=method, on_bad_file="skip", **SUMS)
    assert selection.features == whole.features
    assert selection.settings["rows"] == 3_500
    assert [part["rows"] for part in selection.settings["skipped"]] == [500]


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_without_a_readable_row_there_is_an_error(folder, tmp_path, method):
    frame = pd.read_parquet(folder / "0.parquet")
    frame.loc[900, "c"] = np.inf
    frame.to_parquet(tmp_path / "bad.parquet")
    options = SUMS | {"target": "y", "method": method, "schema_rows": 500, "on_bad_file": "skip"}
    with pytest.warns(SkippedData), pytest.raises(UnreadableFile, match="no row of any file could be read"):
        seqatt.select(tmp_path / "bad.parquet", **options)


def test_files_that_cannot_be_opened_are_skipped_too_if_requested(folder):
    (folder / "1.parquet").write_bytes(b"not a table")
    with pytest.raises(UnreadableFile, match=r"1\.parquet"):
        seqatt.select(folder, target="y", **QUICK)
    with pytest.warns(SkippedData, match=r"1\.parquet.* the whole file was skipped"):
        selection = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)
    assert [part["file"] for part in selection.settings["skipped"]] == [str(folder / "1.parquet")]
    assert selection.settings["rows"] == 3_000
    gone = [folder / f"{name}.parquet" for name in ("gone", 0, 2)]
    with pytest.warns(
        SkippedData, match=r"gone\.parquet: no such file or folder; the whole file was skipped"
    ):
        selection = seqatt.select(gone, target="y", on_bad_file="skip", **QUICK)
    assert [part["file"] for part in selection.settings["skipped"]] == [str(gone[0])]
    for path in folder.iterdir():
        path.write_bytes(b"not a table")
    with pytest.warns(SkippedData), pytest.raises(UnreadableFile, match=r"0\.parquet"):
        seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)


@pytest.mark.parametrize(("column", "message"), [("c", "infinity"), ("y", "missing or infinite values")])
def test_a_bad_value_in_the_schema_sample_is_reported_with_its_file_or_skipped(folder, column, message):
    frame = pd.read_parquet(folder / "2.parquet").astype({"y": float})
    frame.loc[700, column] = np.inf
    frame.to_parquet(folder / "2.parquet", row_group_size=500)
    with pytest.raises(ValueError, match=rf"2\.parquet: .*'{column}'.* {message}"):
        seqatt.select(folder, target="y", **QUICK | {"schema_rows": 4_000})
    with pytest.warns(SkippedData, match=r"2\.parquet.* 500 rows were skipped"):
        selection = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK | {"schema_rows": 4_000})
    assert selection.settings["rows"] == 3_500


@pytest.mark.parametrize("memory", [0, "1GB"])
def test_evaluation_skips_too_if_requested(folder, tmp_path, memory):
    flip_bits(folder / "3.parquet", 0)
    train, test = (
        [folder / "gone.parquet", folder / "0.parquet"],
        [folder / "3.parquet", tmp_path / "gone.csv"],
    )
    options = {"seeds": [0], "hidden": (8,), "batch_size": 32, "epochs": 8, "memory": memory}
    with pytest.warns(SkippedData) as caught:
        evaluation = seqatt.evaluate(train, "y", test, indices=list("edcba"), on_bad_file="skip", **options)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 3
    for name in ("gone.parquet", "gone.csv", "3.parquet"):
        assert any(name in message for message in messages)
    assert evaluation["auc"][0] > 0.9


def test_a_truncated_text_file_is_skipped_from_where_it_ends(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 12)
    frame = pd.concat([pd.read_parquet(path) for path in sorted(folder.iterdir())])
    text_folder = tmp_path / "text"
    text_folder.mkdir()
    for number in range(2):
        frame.iloc[2_000 * number : 2_000 * (number + 1)].to_csv(text_folder / f"{number}.csv", index=False)
    whole = (text_folder / "1.csv").read_bytes()
    (text_folder / "1.csv").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(SkippedData, match=r"1\.csv.* an unknown number of rows were skipped"):
        selection = seqatt.select(text_folder, target="y", on_bad_file="skip", **QUICK)
    assert selection.settings["skipped"][0]["rows"] is None
    assert 2_000 <= selection.settings["rows"] < 4_000


def stop_at_first_skip(folder, checkpoints, options) -> None:
    """A run that gets SIGTERM when it skips a row group."""
    real = FileLoader._record_skips

    def record_skips(loader, shard, skips) -> None:
        real(loader, shard, skips)
        if skips:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = pytest.warns(UserWarning, match="stopped by SIGTERM")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileLoader, "_record_skips", record_skips)
        with pytest.warns(SkippedData), stopped, pytest.raises(SystemExit):
            seqatt.select(folder, target="y", checkpoint=checkpoints, **options)
    last = checkpoint.list_checkpoints(checkpoints)[-1]
    assert checkpoint.read_checkpoint(last).metadata["state"]["stream"]["cursor"]["skips"]


def test_a_run_that_skipped_can_be_resumed_with_the_same_result(folder, tmp_path):
    flip_bits(folder / "2.parquet", 1)
    options = QUICK | {"on_bad_file": "skip", "checkpoint_every": 0, "shuffle_rows": 64}
    with pytest.warns(SkippedData):
        whole = seqatt.select(folder, target="y", **options)
    checkpoints = tmp_path / "checkpoints"
    stop_at_first_skip(folder, checkpoints, options)
    resumed = seqatt.select(folder, target="y", checkpoint=checkpoints, resume=True, **options)
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.settings["skipped"] == whole.settings["skipped"]


def test_a_run_that_skipped_a_missing_file_can_be_resumed_once_it_is_back(folder, tmp_path, monkeypatch):
    options = QUICK | {"on_bad_file": "skip", "checkpoint_every": 0, "shuffle_rows": 64}
    checkpoints, away = tmp_path / "checkpoints", tmp_path / "away"
    cause_fault(monkeypatch, folder, lambda folder: (folder / "2.parquet").rename(away))
    stop_at_first_skip(folder, checkpoints, options)
    monkeypatch.undo()
    again = {"checkpoint": checkpoints, "resume": True, **options}
    with pytest.raises(ValueError, match=r"\(2\.parquet is missing; to continue, restore it unchanged"):
        seqatt.select(folder, target="y", **again)
    away.rename(folder / "2.parquet")
    resumed = seqatt.select(folder, target="y", **again)
    assert {part["file"] for part in resumed.settings["skipped"]} == {str(folder / "2.parquet")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_file": "hide"}, "on_bad_file: unknown 'hide'"),
        ({"shards": 0}, "shards: must be"),
        ({"shards": 64}, "batch_size: 32 is less than one row for each of 64 shards"),
    ],
)
def test_invalid_options_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        seqatt.select(folder, target="y", **QUICK | options)
