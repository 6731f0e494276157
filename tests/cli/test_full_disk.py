"""A result that cannot be written is not lost: ``seqatt select`` on a full disk."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from tests.support import command
from tests.support.problems import linear_problem

import seqatt

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")]
LIMIT = 1000  # bytes per file: the selection has more


def limit_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def run_on_full_disk(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``seqatt select`` in a process whose files cannot grow beyond a limit, as on a full disk."""
    return command.run_process("select", *arguments, preexec_fn=limit_files)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return command.run("select", *arguments)


@pytest.fixture
def arguments(tmp_path) -> list[object]:
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)]).assign(label=y)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return [tmp_path / "data.csv", "-t", "label", "-k", 2, "--epochs", 120, "--out", tmp_path / "run"]


def test_the_features_are_printed_and_the_error_names_the_file(arguments, tmp_path):
    done = run_on_full_disk(*arguments)
    assert done.returncode == 1
    assert "2 of 8 features for label" in done.stdout
    *notes, error = done.stderr.splitlines()
    assert all(note.startswith("note: checkpoint: could not be written") for note in notes)
    assert error.startswith(
        f"error: --out: cannot write {tmp_path / 'run' / 'selection.json'} (File too large)"
    )
    assert "--json > FILE" in error
    assert not list((tmp_path / "run").glob("*.json"))
    assert not list((tmp_path / "run").glob(".selection*"))  # nothing half written


def test_json_is_printed_before_the_failure(arguments):
    done = run_on_full_disk(*arguments, "--json")
    assert done.returncode == 1
    assert set(json.loads(done.stdout)["features"]) == {"f1", "f4"}
    assert "all of it is in the JSON that was printed" in done.stderr


def test_the_command_in_the_error_gives_the_selection_again_without_training(arguments, tmp_path):
    (tmp_path / "run" / "selection.json").mkdir(parents=True)  # the checkpoint can be written, this not
    done = run(*arguments)
    assert done.returncode == 1
    resume = f"--resume --checkpoint {tmp_path / 'run' / 'checkpoint'}"
    assert resume in done.stderr
    assert "without training" in done.stderr
    again = run(*arguments, *resume.split(), "--out", tmp_path / "elsewhere")
    assert again.returncode == 0, again.stderr
    undisturbed = run(*arguments, "--out", tmp_path / "undisturbed")
    assert undisturbed.returncode == 0, undisturbed.stderr
    found = [
        seqatt.Selection.load(tmp_path / name / "selection.json") for name in ("elsewhere", "undisturbed")
    ]
    assert found[0].scores.tolist() == found[1].scores.tolist()
    phases = [[phase["seconds"] for phase in selection.history] for selection in found]
    repeated = run(*arguments, *resume.split(), "--out", tmp_path / "repeated")
    assert repeated.returncode == 0
    last = seqatt.Selection.load(tmp_path / "repeated" / "selection.json")
    assert [phase["seconds"] for phase in last.history] == phases[
        0
    ]  # those of the first run: no phase ran again


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_selection_that_cannot_be_printed_is_written(arguments, tmp_path, as_json):
    with Path("/dev/full").open("w") as full:
        done = command.run_process("select", *arguments, *as_json, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n"
    assert set(seqatt.Selection.load(tmp_path / "run" / "selection.json").features) == {"f1", "f4"}
