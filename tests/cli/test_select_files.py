"""Files larger than memory on the command line, run as a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import seqatt
from seqatt.cli.main import app
from seqatt.datasets.synthetic import click_log


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seqatt", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks")
    click_log(path, 12_000, rows_per_file=4_000)
    return path


@pytest.mark.slow
def test_a_pattern_is_streamed_and_gives_the_result_of_the_library(folder, tmp_path):
    out = tmp_path / "run"
    done = run(
        "select", f"{folder}/*.parquet", "-t", "click", "-k", 3, "--hidden", "16", "--batch-size", 64,
        "--log1p", "all", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 of 39 features for click" in done.stdout
    saved = seqatt.Selection.load(out / "selection.json")
    options = {"hidden": (16,), "batch_size": 64, "log1p": True}
    here = seqatt.select(f"{folder}/*.parquet", target="click", k=3, **options)
    assert saved.features == here.features
    assert saved.settings["rows"] == 12_000


@pytest.mark.slow
def test_several_files_or_a_folder_are_streamed_with_any_method_that_can(folder):
    for paths in (sorted(folder.glob("*.parquet")), [folder]):
        done = run(
            "select", *paths, "-t", "click", "-k", 2, "--method", "linear_omp", "--json",
            "--ignore", "count03,count09", "--categorical", "count01",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        selection = json.loads(done.stdout)
        assert selection["settings"]["files"] == 3
        assert selection["settings"]["columns"]["count01"] == "categorical"
        assert "count03" not in selection["names"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{}/none-*.parquet"], 1, "no file matches the pattern"),
        (["{}", "--holdout", "0.2"], 2, "--holdout"),
        (["{}/clicks-00000.parquet", "--passes", "2"], 2, "--passes"),
        (["{}", "--method", "forest"], 1, "does not run on files"),
        (["{}", "--surplus", "2"], 1, "has no option 'surplus'"),
    ],
)
def test_invalid_arguments_end_with_one_line_instead_of_a_traceback(folder, arguments, code, message):
    named = [argument.format(folder) for argument in arguments]
    done = run("select", *named, "-t", "click", "-k", 2)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}", "--resume"], "--checkpoint DIR"),
        (["{}", "--epochs", "3"], "--passes"),
        (["{}", "--target", "click,count01"], "files have one target"),
        ([""], "an empty name is no file"),
    ],
)
def test_errors_name_the_option_that_helps(folder, arguments, message):
    named = [argument.format(folder) for argument in arguments]
    done = CliRunner().invoke(app, ["select", "--target", "click", "-k", "2", *named])
    assert done.exit_code in (1, 2)
    assert message in f"{done.output} {done.exception}"


@pytest.mark.slow
def test_sigterm_ends_with_exit_code_143_and_the_run_can_be_resumed(folder, tmp_path):
    out = tmp_path / "run"
    arguments = ["select", folder, "-t", "click", "-k", 2, "--hidden", 8, "--batch-size", 64, "--out", out]
    command = [sys.executable, "-m", "seqatt", *map(str, arguments), "--checkpoint-every", "0.01"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not list((out / "checkpoint").glob("*.npz")) and running.poll() is None:
            time.sleep(0.01)
        running.terminate()
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == 143
    assert stderr.strip() == f"note: stopped by SIGTERM; continue with resume from {out / 'checkpoint'}"
    options = {"hidden": 8, "batch_size": 64}
    whole = seqatt.select(folder, target="click", k=2, **options)
    resume = {"checkpoint": out / "checkpoint", "resume": True}
    resumed = seqatt.select([str(folder)], target="click", k=2, **options, **resume)
    assert resumed.scores.tolist() == whole.scores.tolist()
