"""Checkpoints: a run that was killed ends as if it had not been; what cannot be gone on from is refused."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import seqatt
from seqatt.checkpoints import checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.data.files.loader import FileLoader
from seqatt.datasets.synthetic import click_log
from seqatt.streaming import trials as training
from seqatt.streaming.sums import accumulate as gathering
from seqatt.streaming.trained_methods import STREAMED_METHODS

QUICK = {"k": 3, "hidden": [8], "batch_size": 32, "log1p": True, "look": 500, "checkpoint_every": 0.03}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_000, rows_per_file=1_000)


def kill(files, scratch: Path, **case) -> dict:
    told = {
        "files": [str(path) for path in files],
        "scratch": str(scratch),
        "ranks": 1,
        "options": QUICK,
    } | case
    script = Path(__file__).parents[1] / "support" / "kill_and_resume.py"
    done = subprocess.run(
        [sys.executable, script, json.dumps(told)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_run_killed_at_any_moment_and_resumed_gives_the_same_answer_to_the_last_bit(log, tmp_path):
    found = kill(log.files, tmp_path, kills=3, options=QUICK | {"passes": 2, "batch_size": 64, "buffer": 512})
    assert all(answer == found["whole"] for answer in found["killed"])


SUMS = {"k": 3, "log1p": True, "look": 500, "checkpoint_every": 0.01, "buffer": 256}


def test_sums_gathered_by_a_run_that_was_killed_are_the_same_too(log, tmp_path):
    found = kill(log.files, tmp_path, kills=2, options=SUMS | {"method": "cmim"})
    assert all(answer == found["whole"] for answer in found["killed"])


@contextmanager
def ending_when_kept(count: int = 1) -> Iterator[None]:
    """SIGTERM to ourselves, once so many checkpoints have been begun."""
    real, begun = Checkpointer.keep, []

    def keep(self, *about, **others) -> None:
        real(self, *about, **others)
        begun.append(about)
        if len(begun) == count:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpointer, "keep", keep)
        with pytest.warns(UserWarning, match="told to end; go on with resume"):
            yield
    assert len(begun) > count


def choose(log, folder, **options):
    told = QUICK | {"checkpoint": folder} | options
    return seqatt.select_trials(log.files, target="click", seeds=told.pop("seeds", [0]), **told)


@pytest.fixture
def kept(log, tmp_path):
    """The folder of a run that was told to end."""
    folder = tmp_path / "kept"
    with ending_when_kept(), pytest.raises(SystemExit) as ending:
        choose(log, folder)
    assert ending.value.code == 143
    return folder


def test_sigterm_saves_and_the_run_goes_on_from_there(log, kept, tmp_path):
    assert len(checkpoint.list_checkpoints(kept)) <= 2
    before = signal.getsignal(signal.SIGTERM)
    place = checkpoint.read_checkpoint(checkpoint.list_checkpoints(kept)[-1]).about["position"]
    assert 0 < place["rows"] < 3_000
    [resumed] = choose(log, kept, resume=True)
    [whole] = choose(log, tmp_path / "other")
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.features == whole.features
    assert signal.getsignal(signal.SIGTERM) == before
    again = choose(log, kept, resume=True)[0]  # over: nothing is read again
    assert again.scores.tolist() == whole.scores.tolist()
    assert [path.suffix for path in kept.iterdir() if path.name != ".lock"] == [".npz"]


def test_numbers_of_numpy_can_be_kept(log, tmp_path):
    told = {"embedding": np.int64(4), "class_weight": {0: np.float32(2), 1: 1}, "hidden": np.array([8])}
    [found] = choose(
        log, tmp_path, k=np.int64(2), batch_size=np.int64(32), shards=np.int64(2), seeds=np.arange(1), **told
    )
    assert json.loads(json.dumps(found.settings))["class_weight"] == {"0": 2.0, "1": 1}


def test_seeds_that_were_finished_are_not_trained_again(log, tmp_path):
    both = choose(log, tmp_path / "whole", seeds=[3, 4])
    folder = tmp_path / "kept"

    started: list[int] = []
    real = training.StreamTraining.trial

    def trial(self, seed, advance):
        started.append(seed)
        if len(started) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, seed, advance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.StreamTraining, "trial", trial)
        with pytest.warns(UserWarning, match="told to end"), pytest.raises(SystemExit):
            choose(log, folder, seeds=[3, 4])
        resumed = choose(log, folder, seeds=[3, 4], resume=True)
    assert started == [3, 4, 4]
    assert [s.scores.tolist() for s in resumed] == [s.scores.tolist() for s in both]


def test_an_unfinished_run_is_not_written_over(log, kept):
    files = checkpoint.list_checkpoints(kept)
    with pytest.raises(ValueError, match="holds a run that was not finished; go on with it with resume"):
        choose(log, kept)
    assert checkpoint.list_checkpoints(kept) == files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": [9]}, r"hidden was \[8\] and is \[9\]"),
        ({"k": 2}, "k was 3 and is 2"),
        ({"look": 400}, "look was 500 and is 400"),
        ({"seeds": [1]}, r"seeds was \[0\] and is \[1\]"),
        ({"method": "group_lasso"}, "method was 'sequential_attention'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(log, kept, options, message):
    with pytest.raises(ValueError, match=rf"is of another run: {message}"):
        choose(log, kept, resume=True, **options)


def test_files_that_have_changed_are_noticed(log, kept):
    times = log.files[1].stat()
    os.utime(log.files[1], ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    with pytest.raises(ValueError, match=rf"the files have changed \({log.files[1].name} has another"):
        choose(log, kept, resume=True)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_serves(log, tmp_path):
    folder = tmp_path / "kept"
    [whole] = choose(log, tmp_path / "whole")
    with ending_when_kept(2), pytest.raises(SystemExit):
        choose(log, folder, checkpoint_every=0)
    *_, last = checkpoint.list_checkpoints(folder)
    content = bytearray(last.read_bytes())
    for damage in (content[: len(content) // 2], b"", _flipped(content)):
        last.write_bytes(damage)
        with pytest.raises(ValueError, match=rf"{last.name} is damaged"):
            choose(log, folder, resume=True)
    last.unlink()
    [resumed] = choose(log, folder, resume=True)
    assert resumed.scores.tolist() == whole.scores.tolist()


def _flipped(content: bytearray) -> bytes:
    """One bit in the middle of the numbers."""
    content = bytearray(content)
    content[len(content) // 2] ^= 1
    return bytes(content)


def test_no_bit_that_turns_goes_unnoticed(tmp_path):
    """Wherever it is, a checkpoint is what it was or is called damaged."""
    arrays = {"one": np.arange(3.0), "two": np.array(7)}
    path = checkpoint.write_checkpoint(tmp_path, {"seen": 1}, arrays)
    whole = checkpoint.read_checkpoint(path)
    assert whole.about == {"format": checkpoint.FORMAT, "seen": 1}
    content = path.read_bytes()
    noticed: list[str] = []
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        try:
            found = checkpoint.read_checkpoint(path)
        except ValueError as error:
            noticed.append(str(error))
        else:
            assert found.about == whole.about
            assert {name: value.tolist() for name, value in found.arrays.items()} == {
                name: value.tolist() for name, value in arrays.items()
            }
    assert len(noticed) > len(content) / 2
    assert all(f"{path} is damaged" in why for why in noticed)


def test_a_checkpoint_whose_arrays_do_not_fit_is_named(log, kept):
    last = checkpoint.list_checkpoints(kept)[-1]
    held = checkpoint.read_checkpoint(last)
    path = checkpoint.write_checkpoint(kept, held.about, held.arrays | {"0.loss": np.zeros(3)})
    with pytest.raises(
        ValueError, match=rf"{path.name} cannot be gone on from: 0.loss is missing or of another"
    ):
        choose(log, kept, resume=True)


def test_nothing_in_a_checkpoint_can_run(log, kept):
    last = checkpoint.list_checkpoints(kept)[-1]
    held = checkpoint.read_checkpoint(last)
    evil = np.empty(1, dtype=object)
    evil[0] = _Evil()
    np.savez(last, about=np.frombuffer(json.dumps(held.about).encode(), dtype=np.uint8), evil=evil)
    with pytest.raises(ValueError, match="is damaged"):
        choose(log, kept, resume=True)


class _Evil:
    def __reduce__(self):
        return pytest.fail, ("code from a checkpoint was run",)


@pytest.mark.parametrize("choice", ["warn", "stop"])
def test_a_disk_that_takes_no_more_ends_the_run_only_if_asked_to(log, tmp_path, choice):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))  # a real error of the system, in write
    try:
        if choice == "stop":
            with pytest.raises(RuntimeError, match=r"could not be written to .*make room"):
                choose(log, tmp_path, on_full_disk=choice)
        else:
            with pytest.warns(UserWarning, match=r"could not be written to .*training goes on"):
                [found] = choose(log, tmp_path, on_full_disk=choice)
            assert len(found.features) == 3
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_a_folder_serves_one_run_at_a_time(log, tmp_path):
    with FileLock(tmp_path / ".lock"), pytest.raises(ValueError, match="another run is at work in"):
        choose(log, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": None, "resume": True}, "resume: needs the folder"),
        ({"checkpoint": 7}, "checkpoint: must be a folder"),
        ({"checkpoint_every": -1}, "checkpoint_every: must be"),
        ({"on_full_disk": "pray"}, "on_full_disk: unknown 'pray'"),
    ],
)
def test_what_cannot_be_is_refused(log, tmp_path, options, message):
    told = {"checkpoint": tmp_path} | QUICK | options
    told = {name: value for name, value in told.items() if value or name == "checkpoint"}
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.select(log.files, target="click", **told)


@pytest.mark.parametrize("method", [name for name in STREAMED_METHODS if name != "sequential_attention"])
def test_every_method_that_trains_can_be_resumed(log, tmp_path, method):
    options = {"method": method, "passes": 2}
    [whole] = choose(log, tmp_path / "whole", **options)
    with ending_when_kept(2), pytest.raises(SystemExit):
        choose(log, tmp_path / "kept", checkpoint_every=0, **options)
    [resumed] = choose(log, tmp_path / "kept", resume=True, **options)
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.ranking.tolist() == whole.ranking.tolist()


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_every_method_that_gathers_can_be_resumed(log, tmp_path, monkeypatch, method):
    monkeypatch.setattr(gathering, "AT_ONCE", 64)
    told = SUMS | {"target": "click", "method": method, "checkpoint": tmp_path / "kept"}
    whole = seqatt.select(log.files, **told | {"checkpoint": tmp_path / "whole"})
    with ending_when_kept(2), pytest.raises(SystemExit):
        seqatt.select(log.files, **told | {"checkpoint_every": 0})
    with pytest.raises(ValueError, match="holds a run that was not finished"):
        seqatt.select(log.files, **told)
    for other, was in {"log1p": False, "buffer": 128}.items():
        with pytest.raises(ValueError, match=rf"is of another run: {other} was"):
            seqatt.select(log.files, **told | {"resume": True, other: was})
    with monkeypatch.context() as patch:
        patch.setattr(gathering, "AT_ONCE", 32)
        with pytest.raises(ValueError, match="is of another run: at_once was 64 and is 32"):
            seqatt.select(log.files, **told, resume=True)
    read = []
    real = FileLoader._next
    monkeypatch.setattr(FileLoader, "_next", lambda self: read.append(batch := real(self)) or batch)
    for again in (range(1, 47), [0]):  # what is left of 47 batches, then nothing
        resumed = seqatt.select(log.files, **told, resume=True)
        assert resumed.scores.tolist() == whole.scores.tolist()
        assert resumed.settings["rows"] == 3_000
        assert sum(batch is not None for batch in read) in again
        read.clear()
    more = seqatt.select(log.files, **told | {"resume": True, "k": 5})  # from the same sums
    assert more.features[:3] == whole.features
    assert not read
    seqatt.select(log.files, **told)
    assert read  # afresh: nobody said resume


def test_what_is_written_slowly_is_what_was_when_it_was_kept(log, tmp_path, monkeypatch):
    real, changed = checkpoint.write_checkpoint, []

    def write(folder, about, arrays):
        then = json.dumps(about), {name: array.copy() for name, array in arrays.items()}
        time.sleep(0.05)  # choices are made meanwhile
        changed.append(
            json.dumps(about) != then[0] or any((arrays[n] != a).any() for n, a in then[1].items())
        )
        return real(folder, about, arrays)

    monkeypatch.setattr(checkpoint, "write", write)
    choose(log, tmp_path, checkpoint_every=0)
    assert len(changed) > 2
    assert not any(changed)
