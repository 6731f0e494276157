"""``seqatt select`` and the reading of files."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tests.support.command import run, run_process
from tests.support.problems import linear_problem

import seqatt
from seqatt.cli import holdout
from seqatt.cli.arguments import read_settings
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_set import open_files
from seqatt.data.files.whole_files import read_whole_table


def read_table(path: Path) -> pa.Table:
    files = open_files(path)
    return read_whole_table(files, list(files.types), {})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    frame["label"] = np.array(["no", "yes"])[y]
    return frame


@pytest.fixture
def csv(frame, tmp_path) -> Path:
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def write(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    text = frame.to_csv(index=False).encode()
    tabs = frame.to_csv(index=False, sep="\t").encode()
    writers = {
        "a.csv": lambda: path.write_bytes(text),
        "a.CSV.gz": lambda: path.write_bytes(gzip.compress(text)),
        "a.csv.bz2": lambda: path.write_bytes(bz2.compress(text)),
        "a.csv.zst": lambda: path.write_bytes(pa.compress(text, "zstd", asbytes=True)),
        "a.tsv": lambda: path.write_bytes(tabs),
        "a.b.tsv.gz": lambda: path.write_bytes(gzip.compress(tabs)),
        "a.parquet": lambda: pq.write_table(table, path),
        "a.feather": lambda: feather.write_feather(table, path),
        "a.arrow": lambda: _stream(table, path),
    }
    writers[path.name]()


def _stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    "name",
    [
        "a.csv",
        "a.CSV.gz",
        "a.csv.bz2",
        "a.csv.zst",
        "a.tsv",
        "a.b.tsv.gz",
        "a.parquet",
        "a.feather",
        "a.arrow",
    ],
)
def test_every_file_format_is_read(frame, tmp_path, name):
    write(frame, tmp_path / name)
    table = read_table(tmp_path / name)
    assert table.column_names == list(frame.columns)
    np.testing.assert_allclose(table.column("f3").to_numpy(), frame["f3"])


@pytest.mark.slow
def test_select_prints_a_table_and_writes_the_selection(csv, tmp_path):
    arguments = ["select", csv, "--target", "label", "-k", 2, "--out", tmp_path / "run", "--epochs", 120]
    done = run_process(*arguments)
    assert done.returncode == 0, done.stderr
    assert "2 of 8 features for label" in done.stdout
    assert done.stderr == ""  # silence when piped
    selection = seqatt.Selection.load(tmp_path / "run" / "selection.json")
    assert set(selection.features) == {"f1", "f4"}
    assert all(name in done.stdout for name in selection.features)


@pytest.mark.slow
def test_auto_shows_how_many_features_are_needed_as_a_chart(csv):
    done = run("select", csv, "-t", "label", "-k", "auto", "--max-k", 4, "--k-rule", 0.95)
    assert done.returncode == 0, done.stderr
    assert "2 of 8 features for label" in done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if "█" in line][:4] == ["1", "2", "3", "4"]
    (marked,) = [line for line in lines if "← chosen" in line]
    assert marked.split()[0] == "2"


@pytest.mark.slow
def test_auto_says_that_there_is_nothing_to_find(frame, tmp_path):
    noise = frame.assign(label=np.random.default_rng(0).normal(size=len(frame)))
    noise.to_csv(tmp_path / "noise.csv", index=False)
    done = run("select", tmp_path / "noise.csv", "-t", "label", "-k", "auto", "--holdout", 0.2)
    assert done.returncode == 0, done.stderr
    assert "0 of 8 features for label" in done.stdout
    assert "Nothing selected: no number of features does better than none" in done.stdout


def test_a_rate_takes_the_place_of_k(csv):
    done = run("select", csv, "-t", "label", "--fdr", 0.1, "--method", "f_test")
    assert done.returncode == 0, done.stderr
    assert "2 of 8 features for label" in done.stdout
    assert (
        "False discovery rate 0.1, estimated as 0.1: 8 features were compared with 5 knockoffs each."
        in done.stdout
    )


@pytest.mark.filterwarnings("ignore:fdr")
def test_a_rate_that_finds_nothing_says_how_to_select_anyway(frame, tmp_path):
    noise = frame.assign(label=np.random.default_rng(0).normal(size=len(frame)))
    noise.to_csv(tmp_path / "noise.csv", index=False)
    done = run("select", tmp_path / "noise.csv", "-t", "label", "--fdr", 0.1, "--method", "f_test")
    assert done.returncode == 0, done.stderr
    assert "Leave --fdr out and give -k to select as many anyway." in " ".join(done.stdout.split())


def test_neither_a_number_nor_a_rate_is_wrong_usage(csv):
    done = run("select", csv, "-t", "label")
    assert done.returncode == 2
    assert "--fdr" in done.stderr


@pytest.mark.slow
def test_json_and_holdout(csv):
    done = run("select", csv, "-t", "label", "-k", 0.25, "--json", "--holdout", 0.3, "--seed", 1)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert set(output["features"]) == {"f1", "f4"}
    assert output["settings"]["rows"] == 210
    assert np.mean(output["holdout"]["selected"]["accuracy"]) > 0.9
    assert set(output["holdout"]) == {"selected", "random", "all"}


@pytest.mark.slow
def test_options_reach_the_method(csv):
    done = run(
        "select", csv, "-t", "label", "-k", 3, "--json", "--ignore", "f0,f2", "--balanced",
        "--mask", "l1_normalised", "--hidden", "9,5", "--features-per-phase", 2, "--epochs", 2,
        "--learning-rate", 0.01, "--warmup", 0.3, "--replacement", 1, "--batch-size", 50,
    )  # fmt: skip
    settings = json.loads(done.stdout)["settings"]
    assert settings["hidden"] == [9, 5]
    assert settings["mask"] == "l1_normalised"
    assert settings["batch_size"] == 50
    assert "f0" not in json.loads(done.stdout)["names"]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("False", False),
        ("false", False),
        ("None", None),
        ("[2]", [2]),
        ("[True]", [True]),
        ("relu", "relu"),
    ],
)
def test_settings_are_read_as_python_or_json_literals_or_as_text(value, read):
    assert read_settings([f"name={value}"], "") == {"name": read}


@pytest.mark.slow
def test_set_gives_options_to_other_methods(csv):
    done = run(
        "select", csv, "-t", "label", "-k", 2, "--json", "--method", "forest", "--set", "n_estimators=7"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["n_estimators"] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--target", "label", "-k", "2", "--set", "n_estimators=7"],
            "sequential_attention has no option 'n_estimators'",
        ),
        (["--target", "label", "-k", "2", "--set", "seed=7"], "sequential_attention has no option 'seed'"),
        (["--target", "label", "-k", "2", "--set", "groups={}"], "--set: 'groups' is about the table"),
        (["--target", "nope", "-k", "2"], "target: no column 'nope'"),
        (["--target", "label,nope", "-k", "2"], "target: no column 'nope'"),
        (["--target", "label", "-k", "99"], "k: 99 features requested, but the table has 8"),
        (["--target", "label", "-k", "0"], "k: must be at least 1, got 0"),
        (["--target", "label", "-k", "2", "--max-k", "4"], "max_k: is for k='auto', got k=2"),
        (["--target", "label", "-k", "auto", "--k-rule", "1.5"], "k_rule: must be 'one_standard_error'"),
        (["--target", "label", "-k", "2", "--method", "magic"], "method: unknown 'magic'"),
        (["--target", "label", "-k", "2", "--device", "abacus"], "device: 'abacus'"),
        (["--target", "label", "-k", "2", "--task", "regression"], "target: holds text"),
        (["--target", "label", "-k", "2", "--ignore", "zz"], "ignore: no column 'zz'"),
        (["--target", "label", "-k", "2", "--categorical", "zz"], "--categorical, --numeric: no column 'zz'"),
        (["--target", "label", "-k", "2", "--memory", "lots"], "memory: must be a number of bytes"),
        (["--target", "label", "-k", "2", "--delimiter", ";;"], "delimiter: must be a single character"),
        (
            ["--target", "label", "-k", "2", "--method", "forest", "--checkpoint", "unused"],
            "checkpoint: forest writes none",
        ),
        (["--target", "label", "-k", "2", "--out", "/proc/none"], "--out: cannot write"),
    ],
)
def test_an_error_is_one_clear_line(csv, arguments, message):
    done = run("select", csv, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


@pytest.mark.slow
def test_an_error_or_wrong_usage_ends_the_process_with_its_exit_code(csv):
    failed = run_process("select", csv, "--target", "nope", "-k", 2)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert re.fullmatch(r"error: target: no column 'nope'.*\n", failed.stderr)
    assert run_process("select", csv, "--target", "label", "-k", "many").returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["select"],
        ["select", "data.csv", "-k", "2"],
        ["select", "data.csv", "-t", "y", "-k", "many"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--mask", "l9"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--holdout", "1.5"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--hidden", "x"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--set", "epochs"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--epochs", "2", "--set", "epochs=3"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--set", "hidden=[8]", "--set", "hidden=[9]"],
        ["frobnicate"],
        ["select", "data.csv", "-t", "y", "-k", "2", "--no-such-option"],
    ],
)
def test_wrong_usage_has_exit_code_2(arguments):
    assert run(*arguments).returncode == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "no such file"),
        ("empty.csv", b"", "the file is empty"),
        ("head.csv", b"a,b\n", "no row"),
        ("ragged.csv", b"a,b\n1,2\n3\n", "cannot be read as a table"),
        ("one.csv", b"a b\n1 2\n", "only one column"),
        ("binary.csv", bytes(range(256)) * 20, "read"),
        ("cut.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)[:60], "cannot be read"),
        ("fake.parquet", b"PAR1 not really", "cannot be read as a table"),
        ("fake.feather", b"not a feather", "cannot be read as a table"),
        (
            "data.xlsx",
            b"PK",
            "is a spreadsheet; save the sheet as CSV, or pass pandas.read_excel('data.xlsx')",
        ),
        ("data.zip", b"PK", "is an archive; unpack it"),
        ("data.tar.gz", b"x", "is an archive; unpack it"),
        ("data.csv.xz", b"x", "is compressed by xz; decompress it"),
        ("data.jsonl", b"{}", "pandas.read_json('data.jsonl', lines=True)"),
        ("data.pkl", b"x", "its ending is not that of a table; use one of .parquet"),
        (
            "zip.csv",
            b"PK\x03\x04" + bytes(range(256)),
            "is a ZIP archive or a spreadsheet and no text; unpack it",
        ),
        ("plain.csv", gzip.compress(b"a,b\n1,2\n"), "is compressed by gzip; name it plain.csv.gz"),
        ("data", b"x", "use one of .parquet"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFile, match=message.replace("(", r"\(").replace(")", r"\)")):
        read_table(tmp_path / name)


def test_a_folder_of_archives_says_what_to_do(tmp_path):
    (tmp_path / "data.csv.zip").write_bytes(b"PK")
    with pytest.raises(
        UnreadableFile, match=r"no file in .* ends in one of .*; data.csv.zip is an archive; unpack"
    ):
        read_table(tmp_path)


def test_a_truncated_parquet_file(frame, tmp_path):
    write(frame, tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFile, match="cannot be read as a table"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.slow
def test_duplicate_names_in_a_file(tmp_path):
    (tmp_path / "d.csv").write_text("a,a,y\n1,2,0\n2,1,1\n3,3,0\n")
    done = run("select", tmp_path / "d.csv", "-t", "y", "-k", 1)
    assert done.returncode == 1
    assert "'a' appears twice" in done.stderr


@pytest.mark.slow
def test_a_diverged_run_saves_the_features_selected_so_far(csv, tmp_path):
    out = tmp_path / "div"
    done = run("select", csv, "-t", "label", "-k", 2, "--learning-rate", "1e30", "--out", out)
    assert done.returncode == 1
    assert "learning_rate" in done.stderr
    assert "selection.partial.json" in done.stderr
    assert seqatt.Selection.load(out / "selection.partial.json").method == "sequential_attention"


def test_held_out_rows_have_every_class_in_proportion():
    labels = np.repeat(["a", "b", "c"], [70, 24, 6])
    for seed in range(5):
        train, test = holdout.split_rows(pa.array(labels), 0.3, seed)
        assert sorted([*train, *test]) == list(range(100))
        assert len(test) == 30
        counts = np.array([np.sum(labels[test] == name) for name in "abc"])
        assert np.abs(counts - [21, 7.2, 1.8]).max() < 1
    numbers = pa.array(np.random.default_rng(0).normal(size=10))
    tests = {tuple(holdout.split_rows(numbers, 0.3, seed)[1]) for seed in range(5)}
    assert {len(test) for test in tests} == {3}
    assert len(tests) > 1  # drawn, and the seed counts
    with pytest.raises(ValueError, match="--holdout: 1 rows are too few"):
        holdout.split_rows(numbers[:1], 0.3, 0)


@pytest.mark.slow
def test_a_rare_class_stays_among_the_training_rows(frame, tmp_path, monkeypatch):
    for module in ("evaluate", "networks"):
        monkeypatch.setattr(f"seqatt.api.evaluation.{module}.evaluation_steps", lambda *_: 40)
    rare = frame.assign(label=["rare", *frame["label"][1:]])[:64]
    rare.to_csv(tmp_path / "rare.csv", index=False)
    labels = read_table(tmp_path / "rare.csv")["label"]
    for seed in range(20):
        assert 0 in holdout.split_rows(labels, 0.5, seed)[0]
    done = run(
        "select", tmp_path / "rare.csv", "-t", "label", "-k", 1, "--holdout", 0.5, "--epochs", 1, "--json"
    )
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout, parse_constant=pytest.fail)


@pytest.mark.slow
def test_several_targets(tmp_path):
    X, y = linear_problem("multi-output")
    frame = pd.DataFrame(X).add_prefix("f").assign(u=y[:, 0], v=y[:, 1])
    frame.to_csv(tmp_path / "m.csv", index=False)
    done = run("select", tmp_path / "m.csv", "-t", "u,v", "-k", 2, "--json")
    assert set(json.loads(done.stdout)["features"]) == {"f1", "f4"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_saves_a_checkpoint_and_ends_within_a_second(csv, tmp_path):
    arguments = [csv, "-t", "label", "-k", "4", "--epochs", "1000000"]
    arguments += ["--checkpoint", tmp_path / "training", "--checkpoint-every", "1"]
    command = [sys.executable, "-m", "seqatt", "select", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list((tmp_path / "training").glob("*.npz")):
        time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 3  # a second on an idle machine
    assert process.returncode == 130
    assert (out, err) == (
        "",
        f"note: interrupted; continue with --resume from {tmp_path / 'training'}\ninterrupted\n",
    )


def test_help_has_examples_and_options():
    done = run("select", "--help")
    assert done.returncode == 0
    assert "Examples" in done.stdout
    assert "--features-per-phase" in run("select", "--help-all").stdout
    assert run("--version").stdout == f"seqatt {seqatt.__version__}\n"


def test_help_is_short_and_names_the_flag_that_shows_all_options():
    short, whole = (run("select", flag).stdout for flag in ("--help", "--help-all"))
    assert "--help-all" in short
    assert "--features-per-phase" not in short
    assert len(short.splitlines()) < len(whole.splitlines()) / 3


def test_help_shows_the_groups_of_options():
    done = run_process("select", "--help-all")
    assert (done.returncode, done.stderr) == (0, "")
    for group in ("What to select", "Training", "Files", "Running"):
        assert f" {group} " in done.stdout
