"""What goes wrong in the middle of a pass ends the run, or is skipped and told of: never silence."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import seqatt
from seqatt.checkpoints import checkpoint
from seqatt.data.files import delimited as text
from seqatt.data.files import loader
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.loader import FileLoader
from seqatt.data.tables.whole_file import UnreadableFile

QUICK = {"k": 2, "hidden": (8,), "batch_size": 32, "look": 400}


@pytest.fixture
def folder(tmp_path):
    """Four files of two row groups, 500 rows each; a and b decide."""
    rng = np.random.default_rng(0)
    place = tmp_path / "data"
    place.mkdir()
    for number in range(4):
        frame = pd.DataFrame(rng.normal(size=(1_000, 5)), columns=list("abcde"))
        frame["y"] = (2 * frame["a"] - 2 * frame["b"] > 0).astype(int)
        frame.to_parquet(place / f"{number}.parquet", row_group_size=500, write_page_checksum=True)
    return place


def spoil(path, group: int) -> None:
    """Turn bits in the middle of a row group's numbers; the file's own description and time stay."""
    times = path.stat()
    column = pq.ParquetFile(path).metadata.row_group(group).column(2)
    middle = column.data_page_offset + column.total_compressed_size // 2
    content = bytearray(path.read_bytes())
    for place in range(middle, middle + 40):
        content[place] ^= 0xFF
    path.write_bytes(bytes(content))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def vanish(folder) -> None:
    (folder / "2.parquet").unlink()


def change(folder) -> None:
    frame = pd.read_parquet(folder / "2.parquet")
    frame["c"] = "text"
    frame.to_parquet(folder / "2.parquet", row_group_size=500)


def corrupt(folder) -> None:
    spoil(folder / "2.parquet", 1)


FAULTS = [(vanish, 1_000, "no longer there"), (change, 1_000, "has changed"), (corrupt, 500, "2.parquet")]


def happen(monkeypatch, folder, fault) -> None:
    """Let it happen after the first look, before the pass."""
    real = loader.make_loader

    def batches_of(*arguments, **others):
        fault(folder)
        return real(*arguments, **others)

    monkeypatch.setattr(loader, "make_loader", batches_of)


@pytest.mark.parametrize(("fault", "lost", "message"), FAULTS)
def test_a_fault_in_the_middle_of_a_pass_ends_it_with_the_name_of_the_file(
    folder, monkeypatch, fault, lost, message
):
    happen(monkeypatch, folder, fault)
    with pytest.raises(UnreadableFile, match=r"2\.parquet") as error:
        seqatt.select(folder, target="y", **QUICK)
    assert message in str(error.value)


@pytest.mark.parametrize(("fault", "lost", "message"), FAULTS)
def test_a_fault_that_is_skipped_is_told_of_with_the_rows_it_cost(folder, monkeypatch, fault, lost, message):
    happen(monkeypatch, folder, fault)
    with pytest.warns(SkippedData, match=r"2\.parquet.* 500 rows were skipped"):
        found = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)
    assert sorted(found.features) == ["a", "b"]
    skipped = found.settings["skipped"]
    assert sum(part["rows"] for part in skipped) == lost
    assert all("2.parquet" in part["file"] and message in part["why"] for part in skipped)
    assert found.settings["rows"] == 4_000 - lost


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_methods_that_gather_skip_too_if_asked(folder, monkeypatch, method):
    whole = seqatt.select(folder, target="y", k=2, method=method)
    happen(monkeypatch, folder, corrupt)
    with pytest.raises(UnreadableFile, match=r"2\.parquet"):
        seqatt.select(folder, target="y", k=2, method=method)
    monkeypatch.undo()
    with pytest.warns(SkippedData, match=r"2\.parquet.* 500 rows were skipped"):
        found = seqatt.select(folder, target="y", k=2, method=method, on_bad_file="skip")
    assert found.features == whole.features
    assert found.settings["rows"] == 3_500
    assert [part["rows"] for part in found.settings["skipped"]] == [500]


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_no_answer_comes_from_no_rows(folder, tmp_path, method):
    frame = pd.read_parquet(folder / "0.parquet")
    frame.loc[900, "c"] = np.inf
    frame.to_parquet(tmp_path / "bad.parquet")
    told = {"target": "y", "k": 2, "method": method, "look": 500, "on_bad_file": "skip"}
    with pytest.warns(SkippedData), pytest.raises(UnreadableFile, match="no row of any file could be read"):
        seqatt.select(tmp_path / "bad.parquet", **told)


def test_files_that_cannot_be_opened_are_skipped_too_if_asked(folder):
    (folder / "1.parquet").write_bytes(b"not a table")
    with pytest.raises(UnreadableFile, match=r"1\.parquet"):
        seqatt.select(folder, target="y", **QUICK)
    with pytest.warns(SkippedData, match=r"1\.parquet.* the whole file was skipped"):
        found = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)
    assert [part["file"] for part in found.settings["skipped"]] == [str(folder / "1.parquet")]
    assert found.settings["rows"] == 3_000
    gone = [folder / f"{name}.parquet" for name in ("gone", 0, 2)]
    with pytest.warns(
        SkippedData, match=r"gone\.parquet: no such file or folder; the whole file was skipped"
    ):
        found = seqatt.select(gone, target="y", on_bad_file="skip", **QUICK)
    assert [part["file"] for part in found.settings["skipped"]] == [str(gone[0])]
    for path in folder.iterdir():
        path.write_bytes(b"not a table")
    with pytest.warns(SkippedData), pytest.raises(UnreadableFile, match=r"0\.parquet"):
        seqatt.select(folder, target="y", on_bad_file="skip", **QUICK)


@pytest.mark.parametrize(("column", "message"), [("c", "infinity"), ("y", "NaN or infinity")])
def test_a_bad_value_in_the_first_look_is_told_with_its_file_or_skipped(folder, column, message):
    frame = pd.read_parquet(folder / "2.parquet").astype({"y": float})
    frame.loc[700, column] = np.inf
    frame.to_parquet(folder / "2.parquet", row_group_size=500)
    with pytest.raises(ValueError, match=rf"2\.parquet: .*'{column}'.* {message}"):
        seqatt.select(folder, target="y", **QUICK | {"look": 4_000})
    with pytest.warns(SkippedData, match=r"2\.parquet.* 500 rows were skipped"):
        found = seqatt.select(folder, target="y", on_bad_file="skip", **QUICK | {"look": 4_000})
    assert found.settings["rows"] == 3_500


def test_judging_skips_too_if_asked(folder, tmp_path):
    spoil(folder / "3.parquet", 0)
    train, test = (
        [folder / "gone.parquet", folder / "0.parquet"],
        [folder / "3.parquet", tmp_path / "gone.csv"],
    )
    told = {"seeds": [0], "hidden": (8,), "batch_size": 32, "passes": 8}
    with pytest.warns(SkippedData) as said:
        judged = seqatt.evaluate_files(train, test, "y", list("edcba"), on_bad_file="skip", **told)
    skipped = [str(warning.message) for warning in said]
    assert len(skipped) == 3
    assert all(any(name in why for why in skipped) for name in ("gone.parquet", "gone.csv", "3.parquet"))
    assert judged["auc"][0] > 0.9


def test_a_text_file_that_breaks_off_is_skipped_from_there(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1 << 12)
    frame = pd.concat([pd.read_parquet(path) for path in sorted(folder.iterdir())])
    place = tmp_path / "text"
    place.mkdir()
    for number in range(2):
        frame.iloc[2_000 * number : 2_000 * (number + 1)].to_csv(place / f"{number}.csv", index=False)
    whole = (place / "1.csv").read_bytes()
    (place / "1.csv").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(SkippedData, match=r"1\.csv.* an unknown number of rows were skipped"):
        found = seqatt.select(place, target="y", on_bad_file="skip", **QUICK)
    assert found.settings["skipped"][0]["rows"] is None
    assert 2_000 <= found.settings["rows"] < 4_000


def stop_when_skipped(folder, kept, options) -> None:
    real = FileLoader._skipped

    def skipped(*about) -> None:
        real(*about)
        os.kill(os.getpid(), signal.SIGTERM)

    told = pytest.warns(UserWarning, match="told to end")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileLoader, "_skipped", skipped)
        with pytest.warns(SkippedData), told, pytest.raises(SystemExit):
            seqatt.select(folder, target="y", checkpoint=kept, **options)
    assert checkpoint.read_checkpoint(checkpoint.list_checkpoints(kept)[-1]).about["position"]["skips"]


def test_a_run_that_skipped_goes_on_as_if_it_had_not_been_stopped(folder, tmp_path):
    spoil(folder / "2.parquet", 1)
    options = QUICK | {"on_bad_file": "skip", "checkpoint_every": 0, "buffer": 64}
    with pytest.warns(SkippedData):
        whole = seqatt.select(folder, target="y", **options)
    kept = tmp_path / "kept"
    stop_when_skipped(folder, kept, options)
    resumed = seqatt.select(folder, target="y", checkpoint=kept, resume=True, **options)
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.settings["skipped"] == whole.settings["skipped"]


def test_a_run_that_skipped_a_file_that_vanished_goes_on_once_it_is_back(folder, tmp_path, monkeypatch):
    options = QUICK | {"on_bad_file": "skip", "checkpoint_every": 0, "buffer": 64}
    kept, away = tmp_path / "kept", tmp_path / "away"
    happen(monkeypatch, folder, lambda folder: (folder / "2.parquet").rename(away))
    stop_when_skipped(folder, kept, options)
    monkeypatch.undo()
    again = {"checkpoint": kept, "resume": True, **options}
    with pytest.raises(ValueError, match=r"\(2\.parquet is not there any more; put it back"):
        seqatt.select(folder, target="y", **again)
    away.rename(folder / "2.parquet")
    resumed = seqatt.select(folder, target="y", **again)
    assert {part["file"] for part in resumed.settings["skipped"]} == {str(folder / "2.parquet")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_file": "hide"}, "on_bad_file: unknown 'hide'"),
        ({"shards": 0}, "shards: must be"),
        ({"shards": 64}, "batch_size: 32 rows do not go round 64 shards"),
    ],
)
def test_what_cannot_be_is_refused(folder, options, message):
    told = QUICK | options
    if "method" in options:
        told = {name: value for name, value in told.items() if name not in ("hidden", "batch_size")}
    with pytest.raises(ValueError, match=message):
        seqatt.select(folder, target="y", **told)
