"""``seqatt compare``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support import command
from tests.support.problems import linear_problem

import seqatt

QUICK = ["--methods", "linear_omp,random,all", "--seeds", 2]
ENDLESS = ["--set", "sequential_attention.epochs=1000000000"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return command.run("compare", *arguments)


def start(*arguments: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "seqatt", "compare", *map(str, arguments)], **pipes)


@pytest.fixture(scope="module")
def csv(tmp_path_factory) -> Path:
    X, y = linear_problem("binary", rows=60)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    frame["label"] = np.array(["no", "yes"])[y]
    frame["patient"] = np.arange(60) // 4
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_command_shows_the_table_writes_the_files_and_repeats_no_finished_run(csv, tmp_path):
    arguments = [csv, "-t", "label", "-k", "1,2", *QUICK, "--ignore", "patient", "--out", tmp_path / "run"]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress bar in a pipe
    assert "\x1b" not in done.stdout
    assert "Selecting features for label: binary, 60 rows, 8 features" in done.stdout
    assert "k = 2: linear_omp" in done.stdout
    assert "All 8 features: accuracy" in done.stdout
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "comparison.json", "comparison.md", "comparison.svg",
    ]  # fmt: skip
    comparison = seqatt.Comparison.load(tmp_path / "run" / "comparison.json")
    assert comparison.missing == 0
    assert comparison.best(2) == "linear_omp"
    assert (tmp_path / "run" / "comparison.md").read_text().startswith(comparison.to_markdown())
    repeated = run(*arguments)
    assert repeated.stdout == done.stdout  # with the same seconds, so nothing was run again


@pytest.mark.slow
def test_json_metric_groups_and_options_of_a_method(csv):
    done = run(
        csv, "-t", "label", "-k", "0.25", "--methods", "sequential_attention", "--seeds", 1,
        "--metric", "auc", "--split-groups", "patient", "--json", "--balanced",
        "--set", "sequential_attention.epochs=1", "--set", "sequential_attention.mask=l1",
        "--missing-indicator",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["settings"]["options"] == {"sequential_attention": {"epochs": 1, "mask": "l1"}}
    assert output["settings"]["test"]["grouped"] is True
    assert output["settings"]["table"]["class_weight"] == "balanced"
    assert output["settings"]["table"]["missing_indicator"] is True
    assert output["table"][0]["metric"] == "auc"
    assert output["table"][0]["k"] == 2
    assert "patient" not in output["runs"][0]["features"]


@pytest.mark.slow
def test_a_file_of_test_rows(csv, tmp_path):
    frame = pd.read_csv(csv)
    frame[["label", *reversed(frame.columns.drop("label"))]].to_csv(tmp_path / "test.csv", index=False)
    done = run(
        csv, "-t", "label", "-k", 2, "--methods", "linear_omp", "--seeds", 1, "--test", tmp_path / "test.csv"
    )
    assert done.returncode == 0, done.stderr
    frame.drop(columns="f3").to_csv(tmp_path / "less.csv", index=False)
    done = run(csv, "-t", "label", "-k", 2, "--methods", "random", "--test", tmp_path / "less.csv")
    assert done.returncode == 1
    assert "X_test: column 'f3' is missing" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "99"], "k: 99 features requested"),
        (["-k", "2", "--split-groups", "zz"], "no column 'zz'"),
        (["-k", "2", "--set", "random.epochs=3"], "random has no option 'epochs'"),
        (["-k", "2", "--out", "/proc/none"], "--out: cannot write"),
    ],
)
def test_errors_are_one_clear_line(csv, arguments, message):
    done = run(csv, "-t", "label", *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["-k", "2,many"], ["-k", "2", "--seeds", "0"], ["-k", "2", "--set", "x=1"], ["-k", "2", "--set", "x.y"]],
)
def test_wrong_usage_has_exit_code_2(csv, arguments):
    assert run(csv, "-t", "label", *arguments).returncode == 2


@pytest.mark.slow
def test_the_command_fails_if_every_run_failed(csv):
    done = run(csv, "-t", "label", "-k", 1, "--seeds", 1, "--methods", "sequential_attention",
               "--set", "sequential_attention.learning_rate=1e30")  # fmt: skip
    assert done.returncode == 1
    assert "sequential_attention failed at k = 1: TrainingDiverged" in done.stdout
    assert done.stderr.startswith("error: every run failed")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_shows_the_finished_runs(csv, tmp_path):
    methods = ["--methods", "random,sequential_attention", "--seeds", 2]
    process = start(csv, "-t", "label", "-k", 2, *methods, *ENDLESS, "--out", tmp_path)
    saved = tmp_path / "comparison.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not saved.exists():
        time.sleep(0.2)
    time.sleep(6)  # random selects at once, and is evaluated when the comparison is interrupted
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "interrupted\n"
    assert "random" in out
    assert "interrupted: 1 of 4 runs were made" in out
    assert len(seqatt.Comparison.load(saved).runs) == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_before_the_first_finished_run_prints_only_interrupted(csv, tmp_path):
    process = start(
        csv, "-t", "label", "-k", 2, "--methods", "sequential_attention", *ENDLESS, "--out", tmp_path
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (tmp_path / "comparison.json").exists():
        time.sleep(0.1)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_help_has_examples_and_options():
    done = run("--help")
    assert done.returncode == 0
    assert "Examples" in done.stdout
    assert "--methods" in done.stdout
    assert "--decimal" not in done.stdout
    assert "--decimal" in run("--help-all").stdout


@pytest.mark.slow
def test_several_files_are_compared_as_the_one_table_that_they_make(csv, tmp_path):
    frame = pd.read_csv(csv)
    for number, part in enumerate((frame[:25], frame[25:])):
        part.to_csv(tmp_path / f"part-{number}.csv", index=False, sep=";")
    methods = ["--methods", "linear_omp", "--seeds", 2]
    arguments = ["-t", "label", "-k", 2, *methods, "--ignore", "patient", "--json"]
    whole = run(csv, *arguments)
    parts = run(tmp_path, *arguments, "--delimiter", ";")
    assert (whole.returncode, parts.returncode) == (0, 0), whole.stderr + parts.stderr
    runs = [
        [(each["method"], each["features"], each["metrics"]) for each in json.loads(done.stdout)["runs"]]
        for done in (whole, parts)
    ]
    assert runs[0] == runs[1]


def test_a_misspelt_method_is_answered_with_the_one_that_was_meant(csv):
    done = run(csv, "-t", "label", "-k", 2, "--methods", "linear_opm,random")
    assert done.returncode == 1
    assert "unknown 'linear_opm'; did you mean 'linear_omp'? Use some of" in " ".join(done.stderr.split())
