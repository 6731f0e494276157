"""Checkpoints: a run that was killed and resumed gives the result of an undisturbed one; others are refused."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from benchmarks.kill_and_resume import kill_and_resume
from filelock import FileLock

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.algorithms.sums import accumulate
from seqatt.checkpoints import checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.checkpoints.training import CheckpointHook
from seqatt.data.files.loader import FileLoader
from seqatt.datasets.synthetic import click_log
from seqatt.training.trial_group import TrialGroup

QUICK = {
    "k": 3,
    "hidden": [8],
    "batch_size": 32,
    "epochs": 1,
    "log1p": True,
    "memory": 0,
    "schema_rows": 500,
    "checkpoint_every": 0.03,
}
READINGS = {"table": {"memory": "1GB"}, "batches": {"memory": 0}}
TRAINED = [name for name, method in all_methods().items() if method.trains]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_000, rows_per_file=1_000)


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
def test_a_run_killed_at_any_moment_and_resumed_gives_the_same_result_bit_for_bit(log, tmp_path, reading):
    options = QUICK | {"epochs": 2, "batch_size": 64, "shuffle_rows": 512} | READINGS[reading]
    report = kill_and_resume(log.files, tmp_path, kills=2, options=options)
    assert report["kills"] >= 2
    assert all(result == report["whole"] for result in report["killed"])


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_command_that_kills_counts_the_kills_and_the_selections_that_differ():
    """``python -m benchmarks.kill_and_resume`` does the same 100 times, on one and two ranks."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kill_and_resume", "--kills", "4"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^[4-9] SIGKILLs, \d+ runs resumed until they finished, 0 selections differ$", done.stdout, re.M
    )


SUMS = {
    "k": 3,
    "log1p": True,
    "memory": 0,
    "schema_rows": 500,
    "checkpoint_every": 0.01,
    "shuffle_rows": 256,
}


@pytest.mark.slow
def test_sums_accumulated_by_a_run_that_was_killed_are_the_same_too(log, tmp_path):
    report = kill_and_resume(log.files, tmp_path, kills=2, options=SUMS | {"method": "cmim"})
    assert all(result == report["whole"] for result in report["killed"])


@contextmanager
def sigterm_after(
    count: int = 1, *, wait: bool = False, number: int = signal.SIGTERM, message: str = "stopped by SIGTERM"
) -> Iterator[None]:
    """Send a signal to this process once ``count`` checkpoints were begun, each of which training may ``wait`` for."""
    real, begun = Checkpointer.save, []

    def save(self, *arguments, **options) -> None:
        real(self, *arguments, **options | ({"wait": True} if wait else {}))
        begun.append(arguments)
        if len(begun) == count:
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpointer, "save", save)
        with pytest.warns(UserWarning, match=f"{message}; continue with resume"):
            yield
    assert len(begun) > count


def select(log, folder, **options):
    options = QUICK | {"checkpoint": folder} | options
    return seqatt.select_trials(log.files, target="click", seeds=options.pop("seeds", [0]), **options)


@pytest.fixture
def unfinished(log, tmp_path):
    """The checkpoint folder of a run that SIGTERM ended."""
    folder = tmp_path / "checkpoints"
    with sigterm_after(), pytest.raises(SystemExit) as ended:
        select(log, folder)
    assert ended.value.code == 143
    return folder


def test_sigterm_saves_a_checkpoint_from_which_the_run_continues(log, unfinished, tmp_path):
    assert len(checkpoint.list_checkpoints(unfinished)) <= 2
    before = signal.getsignal(signal.SIGTERM)
    last = checkpoint.list_checkpoints(unfinished)[-1]
    assert 0 < checkpoint.read_checkpoint(last).metadata["state"]["stream"]["cursor"]["rows"] < 3_000
    [resumed] = select(log, unfinished, resume=True)
    [whole] = select(log, tmp_path / "other")
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.features == whole.features
    assert signal.getsignal(signal.SIGTERM) == before
    again = select(log, unfinished, resume=True)[0]  # finished: nothing is read again
    assert again.scores.tolist() == whole.scores.tolist()
    assert [path.suffix for path in unfinished.iterdir() if path.name != ".lock"] == [".npz"]


@pytest.mark.parametrize("options", [{}, SUMS], ids=["network", "sums"])
def test_ctrl_c_saves_a_checkpoint_too_and_gives_what_is_selected(log, tmp_path, options):
    folder, before = tmp_path / "checkpoints", signal.getsignal(signal.SIGINT)
    with (
        sigterm_after(number=signal.SIGINT, message="interrupted"),
        pytest.raises(KeyboardInterrupt) as interruption,
    ):
        select(log, folder, **options)
    assert options or isinstance(interruption.value, seqatt.SelectionInterrupted)
    assert signal.getsignal(signal.SIGINT) == before
    [resumed] = select(log, folder, resume=True, **options)
    [whole] = select(log, tmp_path / "other", **options)
    assert resumed.scores.tolist() == whole.scores.tolist()


def test_ctrl_c_after_training_ends_the_run_at_once_and_the_training_is_kept(log, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("seqatt.api.run.examine_traces", interrupt)
    options = {"memory": "1GB"}
    with pytest.raises(seqatt.SelectionInterrupted) as interruption:
        select(log, tmp_path, **options)
    monkeypatch.undo()
    [whole] = select(log, tmp_path, resume=True, **options)
    assert interruption.value.selections[0].features == whole.features


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path):
    checkpointer = Checkpointer(CheckpointOptions(checkpoint=tmp_path / "checkpoints"), writes=True)
    with checkpointer.open():
        os.kill(os.getpid(), signal.SIGINT)
        assert checkpointer.stop_requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_options_that_are_numpy_scalars_can_be_saved(log, tmp_path):
    options = {
        "embedding_dim": np.int64(4),
        "class_weight": {0: np.float32(2), 1: 1},
        "hidden": np.array([8]),
    }
    [selection] = select(
        log,
        tmp_path,
        k=np.int64(2),
        batch_size=np.int64(32),
        shards=np.int64(2),
        seeds=np.arange(1),
        **options,
    )
    assert json.loads(json.dumps(selection.settings))["class_weight"] == {"0": 2.0, "1": 1}


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
def test_finished_seeds_are_not_trained_again(log, tmp_path, reading):
    options = {"seeds": [3, 4]} | READINGS[reading]
    both = seqatt.select_trials(log.files, target="click", **QUICK | options)  # without checkpoints
    folder = tmp_path / "checkpoints"

    started: list[int] = []
    real = CheckpointHook.start

    def start(self, group, number, schedule):
        started.append(number)
        if len(started) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, group, number, schedule)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointHook, "start", start)
        with pytest.warns(UserWarning, match="stopped by SIGTERM"), pytest.raises(SystemExit):
            select(log, folder, **options)
        resumed = select(log, folder, resume=True, **options)
    assert started == [0, 1, 1]
    assert [s.scores.tolist() for s in resumed] == [s.scores.tolist() for s in both]


def test_an_unfinished_run_is_not_overwritten(log, unfinished):
    files = checkpoint.list_checkpoints(unfinished)
    with pytest.raises(ValueError, match="holds an unfinished run; continue it with resume"):
        select(log, unfinished)
    assert checkpoint.list_checkpoints(unfinished) == files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": [9]}, r"hidden was \[8\] and is \[9\]"),
        ({"k": 2}, "k was 3 and is 2"),
        ({"schema_rows": 400}, "schema_rows was 500 and is 400"),
        ({"seeds": [1]}, r"seeds was \[0\] and is \[1\]"),
        ({"method": "group_lasso"}, "method was 'sequential_attention'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(log, unfinished, options, message):
    with pytest.raises(ValueError, match=rf"belongs to another run: {message}"):
        select(log, unfinished, resume=True, **options)


def test_changed_files_are_detected(log, unfinished):
    times = log.files[1].stat()
    os.utime(log.files[1], ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    with pytest.raises(ValueError, match=rf"the files have changed \({log.files[1].name} has another"):
        select(log, unfinished, resume=True)


@pytest.mark.parametrize(("version", "member"), [(3, "about"), (checkpoint.FORMAT + 1, "metadata")])
def test_a_checkpoint_of_another_format_is_refused_and_its_format_named(log, tmp_path, version, member):
    path = tmp_path / "checkpoint-00000001.npz"
    text = json.dumps({"format": version, "arrays": ["loss"], "run": {}}).encode()
    np.savez(path, **{member: np.frombuffer(text, dtype=np.uint8)}, loss=np.zeros(1))
    message = rf"{path.name} has format {version}, and this version of seqatt reads {checkpoint.FORMAT};"
    with pytest.raises(ValueError, match=message):
        select(log, tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds an unfinished run"):  # not overwritten either
        select(log, tmp_path)


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_it(log, tmp_path):
    folder = tmp_path / "checkpoints"
    [whole] = select(log, tmp_path / "whole")
    with sigterm_after(2), pytest.raises(SystemExit):
        select(log, folder, checkpoint_every=0)
    *_, last = checkpoint.list_checkpoints(folder)
    content = bytearray(last.read_bytes())
    for number, damaged in enumerate((content[: len(content) // 2], b"", _flip_middle_bit(content))):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(folder, copy)
        (copy / last.name).write_bytes(damaged)
        with pytest.warns(UserWarning, match=rf"{last.name} is damaged.*; it is now {last.name}.damaged"):
            [resumed] = select(log, copy, resume=True)
        assert resumed.scores.tolist() == whole.scores.tolist()


def test_where_every_checkpoint_is_damaged_resuming_is_refused(log, tmp_path):
    folder = tmp_path / "checkpoints"
    with sigterm_after(2), pytest.raises(SystemExit):
        select(log, folder, checkpoint_every=0)
    for path in checkpoint.list_checkpoints(folder):
        path.write_bytes(b"")
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(ValueError, match="remove the folder"):
        select(log, folder, resume=True)


def _flip_middle_bit(content: bytearray) -> bytes:
    """One bit flipped in the middle of the arrays."""
    content = bytearray(content)
    content[len(content) // 2] ^= 1
    return bytes(content)


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / ".checkpoint-00000001.npz.0123abcd.part").write_bytes(b"half")
    path = checkpoint.write_checkpoint(tmp_path, {}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_every_flipped_bit_is_harmless_or_detected(tmp_path):
    """With any one bit flipped, a checkpoint reads as before or is refused as damaged."""
    arrays = {"one": np.arange(3.0), "two": np.array(7)}
    path = checkpoint.write_checkpoint(tmp_path, {"seen": 1}, arrays)
    whole = checkpoint.read_checkpoint(path)
    assert whole.metadata == {"format": checkpoint.FORMAT, "seen": 1}
    content = path.read_bytes()
    errors: list[str] = []
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(bytes(damaged))
        try:
            read = checkpoint.read_checkpoint(path)
        except ValueError as error:
            errors.append(str(error))
        else:
            assert read.metadata == whole.metadata
            assert {name: value.tolist() for name, value in read.arrays.items()} == {
                name: value.tolist() for name, value in arrays.items()
            }
    assert len(errors) > len(content) / 2
    assert all(f"{path} is damaged" in error for error in errors)


def test_a_checkpoint_whose_arrays_do_not_fit_is_named(log, unfinished):
    last = checkpoint.list_checkpoints(unfinished)[-1]
    saved = checkpoint.read_checkpoint(last)
    path = checkpoint.write_checkpoint(unfinished, saved.metadata, saved.arrays | {"0.losses": np.zeros(3)})
    with pytest.raises(ValueError, match=rf"{path.name} cannot be resumed: losses is missing or has another"):
        select(log, unfinished, resume=True)


def test_nothing_in_a_checkpoint_can_run_code(log, unfinished):
    last = checkpoint.list_checkpoints(unfinished)[-1]
    saved = checkpoint.read_checkpoint(last)
    evil = np.empty(1, dtype=object)
    evil[0] = _Evil()
    np.savez(last, metadata=np.frombuffer(json.dumps(saved.metadata).encode(), dtype=np.uint8), evil=evil)
    with pytest.warns(UserWarning, match="is damaged"):
        select(log, unfinished, resume=True)


class _Evil:
    def __reduce__(self):
        return pytest.fail, ("code from a checkpoint was run",)


@pytest.mark.parametrize("choice", ["warn", "stop"])
def test_a_full_disk_ends_the_run_only_if_requested(log, tmp_path, choice):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))  # makes the system call write fail
    try:
        if choice == "stop":
            with pytest.raises(RuntimeError, match=r"could not be written to .*free some space"):
                select(log, tmp_path, on_full_disk=choice)
        else:
            with pytest.warns(UserWarning, match=r"could not be written to .*training continues"):
                [selection] = select(log, tmp_path, on_full_disk=choice)
            assert len(selection.features) == 3
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_a_folder_serves_one_run_at_a_time(log, tmp_path):
    with FileLock(tmp_path / ".lock"), pytest.raises(ValueError, match="another run is using"):
        select(log, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": None, "resume": True}, "resume: needs the folder"),
        ({"checkpoint": 7}, "checkpoint: must be a folder"),
        ({"checkpoint_every": -1}, "checkpoint_every: must be"),
        ({"on_full_disk": "pray"}, "on_full_disk: unknown 'pray'"),
    ],
)
def test_invalid_options_are_refused(log, tmp_path, options, message):
    options = {"checkpoint": tmp_path} | QUICK | options
    options = {name: value for name, value in options.items() if value or name == "checkpoint"}
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.select(log.files, target="click", **options)


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", TRAINED)
def test_every_method_that_trains_can_be_resumed(log, tmp_path, monkeypatch, method, reading):
    steps = TrialGroup.next_steps  # one at a time: a checkpoint may follow each
    monkeypatch.setattr(TrialGroup, "next_steps", lambda self, plan, most: steps(self, plan, min(most, 1)))
    options = {"method": method, "batch_size": 64, "epochs": 2 if reading == "table" else 1} | READINGS[
        reading
    ]
    [whole] = select(log, tmp_path / "whole", **options)
    for resume in (False, True):
        with sigterm_after(6, wait=True), pytest.raises(SystemExit):
            select(log, tmp_path / "checkpoints", checkpoint_every=0, resume=resume, **options)
    [resumed] = select(log, tmp_path / "checkpoints", resume=True, **options)
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.ranking.tolist() == whole.ranking.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_every_method_that_accumulates_sums_can_be_resumed(log, tmp_path, monkeypatch, method):
    monkeypatch.setattr(accumulate, "SHARD_BATCH_ROWS", 64)
    options = SUMS | {"target": "click", "method": method, "checkpoint": tmp_path / "checkpoints"}
    whole = seqatt.select(log.files, **options | {"checkpoint": tmp_path / "whole"})
    with sigterm_after(2), pytest.raises(SystemExit):
        seqatt.select(log.files, **options | {"checkpoint_every": 0})
    with pytest.raises(ValueError, match="holds an unfinished run"):
        seqatt.select(log.files, **options)
    for name, value in {"log1p": False, "shuffle_rows": 128}.items():
        with pytest.raises(ValueError, match=rf"belongs to another run: {name} was"):
            seqatt.select(log.files, **options | {"resume": True, name: value})
    with monkeypatch.context() as patch:
        patch.setattr(accumulate, "SHARD_BATCH_ROWS", 32)
        with pytest.raises(ValueError, match="belongs to another run: shard_batch_rows was 64 and is 32"):
            seqatt.select(log.files, **options, resume=True)
    read = []
    real = FileLoader._next
    monkeypatch.setattr(FileLoader, "_next", lambda self: read.append(batch := real(self)) or batch)
    for expected in (range(1, 47), [0]):  # the rest of 47 batches, then none
        resumed = seqatt.select(log.files, **options, resume=True)
        assert resumed.scores.tolist() == whole.scores.tolist()
        assert resumed.settings["rows"] == 3_000
        assert sum(batch is not None for batch in read) in expected
        read.clear()
    more = seqatt.select(log.files, **options | {"resume": True, "k": 5})  # from the same sums
    assert more.features[:3] == whole.features
    assert not read
    seqatt.select(log.files, **options)
    assert read  # from the start: resume is False


def test_training_does_not_change_a_checkpoint_that_is_still_being_written(log, tmp_path, monkeypatch):
    real, changed = checkpoint.write_checkpoint, []

    def write_slowly(folder, metadata, arrays):
        before = json.dumps(metadata), {name: array.copy() for name, array in arrays.items()}
        time.sleep(0.05)  # training continues meanwhile
        changed.append(
            json.dumps(metadata) != before[0] or any((arrays[n] != a).any() for n, a in before[1].items())
        )
        return real(folder, metadata, arrays)

    monkeypatch.setattr(checkpoint, "write_checkpoint", write_slowly)
    select(log, tmp_path, checkpoint_every=0)
    assert len(changed) > 2
    assert not any(changed)
