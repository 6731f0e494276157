"""What ``seqatt select`` leaves behind beside selection.json: partial selections, scores on held-out rows, logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from tests.support.command import run, run_process
from tests.support.problems import linear_problem

import seqatt


@pytest.fixture
def csv(tmp_path) -> Path:
    X, y = linear_problem("binary")
    pd.DataFrame(X).add_prefix("f").assign(label=y).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_writes_what_was_selected_marked_as_partial(csv, tmp_path):
    out = tmp_path / "run"
    arguments = [
        csv,
        "-t",
        "label",
        "-k",
        "6",
        "--epochs",
        "40000",
        "--out",
        out,
        "--checkpoint-every",
        "0.2",
    ]
    arguments += ["--ensemble", "1", "--warmup", "0", "--surplus", "1"]
    command = [sys.executable, "-m", "seqatt", "select", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not selected_so_far(out / "checkpoint"):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    path = out / "selection.partial.json"
    assert process.returncode == 130
    assert printed == ""
    assert f"of 6 features were selected: the features selected so far are in {path}\ninterrupted\n" in errors
    partial = seqatt.Selection.load(path)
    assert partial.settings["partial"] == "interrupted"
    assert 1 <= len(partial.features) < 6
    assert not (out / "selection.json").exists()


def selected_so_far(folder: Path) -> bool:
    """Whether the last checkpoint has a selected feature."""
    from seqatt.checkpoints.checkpoint import list_checkpoints, read_checkpoint

    try:
        return bool(read_checkpoint(list_checkpoints(folder)[-1]).metadata["state"]["selection"]["order"][0])
    except (IndexError, KeyError, OSError, ValueError):
        return False


def interrupt(*_args, **_options):
    X, y = linear_problem("binary")
    partial = seqatt.select(X, y, 2, method="linear_omp")
    raise seqatt.SelectionInterrupted("interrupted after 2 of 4 features were selected", [partial])


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_without_out_prints_what_was_selected(csv, monkeypatch):
    monkeypatch.setattr("seqatt.cli.run_selection.select", interrupt)
    done = run("select", csv, "-t", "label", "-k", 4)
    assert done.returncode == 130
    assert done.stderr.endswith(": x4, x1\ninterrupted\n") or done.stderr.endswith(": x1, x4\ninterrupted\n")


def test_holdout_scores_are_written_beside_the_selection(csv, tmp_path):
    arguments = ["select", csv, "-t", "label", "-k", 2, "--method", "linear_omp", "--holdout", "0.25"]
    done = run(*arguments, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert f"Wrote {tmp_path / 'run' / 'evaluation.json'}" in done.stdout.replace("\n", "")
    written = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert written["format"] == 1
    assert written["rows"] == "75 held-out rows"
    assert set(written["holdout"]) == {"selected", "random", "all"}
    assert len(written["holdout"]["selected"]["accuracy"]) == 5
    printed = json.loads(run(*arguments, "--json").stdout)
    assert printed["holdout"] == written["holdout"]


def test_without_holdout_there_is_no_evaluation(csv, tmp_path):
    run("select", csv, "-t", "label", "-k", 2, "--method", "linear_omp", "--out", tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["selection.json"]


def test_a_piped_run_logs_where_asked_to(csv):
    silent = run_process("select", csv, "-t", "label", "-k", 2, "--method", "linear_omp")
    logged = run_process("select", csv, "-t", "label", "-k", 2, "--method", "linear_omp", "--log")
    assert silent.stderr == ""
    lines = logged.stderr.splitlines()
    assert lines[0].endswith(": started")
    assert ": 100% after" in lines[-1]


def test_a_finished_selection_removes_the_partial_one_of_an_earlier_run(csv, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in ("selection.partial.json", "evaluation.json"):
        (out / name).write_text("{}")
    done = run("select", csv, "-t", "label", "-k", 2, "--method", "f_test", "--out", out)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in out.iterdir()] == ["selection.json"]
