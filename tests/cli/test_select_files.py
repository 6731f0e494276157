"""``seqatt select`` on files, read into memory or batch by batch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run
from tests.support.problems import linear_problem

import seqatt
from seqatt.datasets.synthetic import click_log

IN_MEMORY, IN_BATCHES = ("--memory", "1GB"), ("--memory", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks")
    click_log(path, 12_000, rows_per_file=4_000)
    return path


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """A table whose columns need every option about columns: f1 and f4 alone say what ``label`` is."""
    X, y = linear_problem("binary", rows=600)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)]).assign(
        label=np.array(["no", "yes"])[y], answer=y, weight=np.arange(600) % 3 + 1, site=np.arange(600) % 5
    )
    frame["f2"] = np.where(np.arange(600) % 4, np.expm1(np.abs(frame["f2"])), np.nan)
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "line"),
    [
        (IN_MEMORY, r"12,000 rows of 3 files, read into memory \([\d.]+ MB\)"),
        (IN_BATCHES, r"about 12,000 rows of 3 files, read batch by batch"),
    ],
)
def test_a_pattern_gives_the_result_of_the_library_and_says_how_it_was_read(folder, tmp_path, memory, line):
    out = tmp_path / "run"
    done = run(
        "select", f"{folder}/*.parquet", "-t", "click", "-k", 3, "--hidden", "16", "--batch-size", 64,
        "--epochs", 1, "--log1p", "all", "--out", out, *memory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 of 39 features for click" in done.stdout
    assert re.search(line, done.stdout), done.stdout
    saved = seqatt.Selection.load(out / "selection.json")
    options = {"hidden": (16,), "batch_size": 64, "epochs": 1, "log1p": True, "memory": memory[1]}
    here = seqatt.select(f"{folder}/*.parquet", target="click", k=3, **options)
    assert saved.features == here.features
    assert saved.scores.tolist() == here.scores.tolist()
    assert saved.settings["rows"] == 12_000


@pytest.mark.slow
@pytest.mark.parametrize("memory", [IN_MEMORY, IN_BATCHES])
def test_every_option_about_columns_works_in_memory_and_in_batches(csv, memory):
    done = run(
        "select", csv, "-t", "label", "-k", 2, "--json", "--epochs", 30, "--ignore", "answer", "--weight", "weight",
        "--categorical", "site", "--log1p", "f2", "--missing-indicator", "--balanced", "--negatives-kept", 0.5,
        *memory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    selection = json.loads(done.stdout)
    assert selection["names"] == [*(f"f{i}" for i in range(8)), "site"]
    assert set(selection["features"]) == {"f1", "f4"}
    settings = selection["settings"]
    assert settings["column_types"] == {"site": "categorical"}
    assert settings["log1p"] == ["f2"]
    assert settings["sample_weight"] is True
    assert settings["missing_indicator"] is True
    assert settings["class_weight"] == "balanced"
    assert settings["negatives_kept"] == 0.5


@pytest.mark.slow
def test_several_files_and_a_folder_are_the_same_data_for_any_method(folder):
    results = []
    for paths in (sorted(folder.glob("*.parquet")), [folder]):
        done = run(
            "select", *paths, "-t", "click", "-k", 2, "--method", "linear_omp", "--json",
            "--ignore", "count03,count09", "--categorical", "count01",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
        assert results[-1]["settings"]["files"] == 3
        assert "count03" not in results[-1]["names"]
    assert results[0]["features"] == results[1]["features"]


@pytest.mark.slow
def test_a_method_that_needs_a_table_says_how_many_rows_of_large_files_it_used(folder):
    done = run(
        "select", folder, "-t", "click", "-k", 2, "--method", "mutual_information", "--memory", "300kB"
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"a sample of [\d,]+ rows of 3 files, which would take [\d.]+ MB", done.stdout)


@pytest.mark.slow
def test_a_column_without_a_name_is_named_as_it_is_shown(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    X.assign(y=X.a > 0).set_index(X.a + 0.1 * X.b).to_csv(tmp_path / "data.csv", index_label="")
    command = ("select", tmp_path / "data.csv", "--target", "y", "-k", 1, "--method", "f_test", "--json")
    assert json.loads(run(*command).stdout)["features"] == ["a"]
    assert "" in json.loads(run(*command).stdout)["input_names"]
    for flag in ("--ignore", "--forbid"):
        assert json.loads(run(*command, flag, "c,(no name),a").stdout)["features"] == ["b"]
    assert json.loads(run(*command, "--candidates", "(no name)").stdout)["features"] == [""]
    wrong = run(*command, "--ignore", "d")
    assert "the columns are (no name), a, b, c, y" in wrong.stderr


def test_a_delimiter_can_be_named(csv, tmp_path):
    (tmp_path / "data.csv").write_text(csv.read_text().replace(",", ":"))
    arguments = ["select", tmp_path / "data.csv", "-t", "label", "-k", 1, "--method", "random", "--json"]
    assert run(*arguments, "--delimiter", ":").returncode == 0
    done = run(*arguments)
    assert done.returncode == 1
    assert "delimiter" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}/none-*.parquet"], "no file matches the pattern"),
        (["{}", "--holdout", "0.7", "--memory", "0"], "--holdout: must be at most 0.5"),
        (["{}", "--target", "click,count01", "--holdout", "0.2", "--memory", "0"], "raise --memory"),
    ],
)
def test_invalid_arguments_end_with_one_line_instead_of_a_traceback(folder, arguments, message):
    named = [argument.format(folder) for argument in arguments]
    done = run("select", "-t", "click", "-k", 2, *named)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["{}", "--resume"], "--checkpoint DIR"), ([""], "an empty name is no file")],
)
def test_errors_name_the_option_that_helps(folder, arguments, message):
    named = [argument.format(folder) for argument in arguments]
    done = run("select", "--target", "click", "-k", "2", *named)
    assert done.returncode in (1, 2)
    assert message in done.stderr


@pytest.fixture
def quick_evaluation(monkeypatch):
    """Held-out rows are evaluated after a few passes over the others."""
    for module in ("evaluate", "networks"):
        monkeypatch.setattr(f"seqatt.api.evaluation.{module}.evaluation_steps", lambda *_: 40)


@pytest.mark.slow
def test_the_holdout_of_files_read_batch_by_batch_is_every_so_many_rows(csv, quick_evaluation):
    done = run(
        "select", csv, "-t", "label", "-k", 2, "--epochs", 30, "--ignore", "answer,weight", "--holdout", 0.25,
        *IN_BATCHES,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "on one in 4 rows, held out" in done.stdout
    assert "selected by seqatt" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("memory", [IN_MEMORY, IN_BATCHES])
def test_options_about_columns_also_hold_in_the_evaluation_of_held_out_rows(csv, quick_evaluation, memory):
    done = run(
        "select", csv, "-t", "label", "-k", 2, "--json", "--epochs", 30, "--ignore", "answer", "--weight", "weight",
        "--categorical", "site", "--log1p", "f2", "--holdout", 0.25, *memory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["holdout"]["all"]["features"] == 9  # neither the answer nor the weights
    assert np.mean(output["holdout"]["selected"]["accuracy"]) > 0.85
    assert output["settings"]["rows"] == 450


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "memory", "written"),
    [
        ("sequential_attention", IN_MEMORY, True),
        ("sequential_attention", IN_BATCHES, True),
        ("linear_omp", IN_MEMORY, False),
        ("linear_omp", IN_BATCHES, True),
        ("random", IN_MEMORY, False),
    ],
)
def test_checkpoints_are_beside_the_result_of_methods_that_write_them(csv, tmp_path, method, memory, written):
    epochs = ["--epochs", 1] if method == "sequential_attention" else []
    done = run("select", csv, "-t", "label", "-k", 1, "--method", method, "--out", tmp_path, *epochs, *memory)
    assert done.returncode == 0, done.stderr
    assert bool(list((tmp_path / "checkpoint").glob("*.npz"))) == written


@pytest.mark.slow
@pytest.mark.parametrize("memory", [IN_MEMORY, IN_BATCHES])
def test_sigterm_ends_with_exit_code_143_and_the_run_can_be_resumed(folder, tmp_path, memory):
    out = tmp_path / "run"
    arguments = ["select", folder, "-t", "click", "-k", 2, "--hidden", 8, "--batch-size", 64, "--epochs", 8]
    arguments += [*memory, "--out", out]
    command = [sys.executable, "-m", "seqatt", *map(str, arguments), "--checkpoint-every", "0.01"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not list((out / "checkpoint").glob("*.npz")) and running.poll() is None:
            time.sleep(0.01)
        running.terminate()
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == 143
    assert stderr.strip() == f"note: stopped by SIGTERM; continue with --resume from {out / 'checkpoint'}"
    whole = run(*arguments[:-1], tmp_path / "whole")
    resumed = run(*arguments, "--resume")
    assert (whole.returncode, resumed.returncode) == (0, 0), whole.stderr + resumed.stderr
    selections = [seqatt.Selection.load(path / "selection.json") for path in (tmp_path / "whole", out)]
    assert selections[0].scores.tolist() == selections[1].scores.tolist()
