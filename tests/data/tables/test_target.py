"""The kind of target: which whole numbers are class labels, in tables and in files, and where the answer is shown."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.support.problems import linear_problem
from typer.testing import CliRunner

import seqatt
from seqatt.cli.app import app
from seqatt.data.files.encoding.target_column import fit_target
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.target import read_target
from seqatt.selection import Selection

RNG = np.random.default_rng(0)
CLASSES, NUMBERS = "classes", "numbers"


def ages(rows: int) -> np.ndarray:
    return np.clip(RNG.normal(40, 14, rows).round(), 17, 90)


# What a user expects of each target.
TARGETS = {
    "digits 0 to 9": (np.arange(1797) % 10, CLASSES),
    "forty people from 1 on, ten rows each": (1 + np.arange(400) % 40, CLASSES),
    "forty people from 0 on, eight rows each": (np.arange(320) % 40, CLASSES),
    "26 letters, 3 to 400 rows each": (
        np.repeat(np.arange(26), np.linspace(3, 400, 26).astype(int)),
        CLASSES,
    ),
    "a hundred classes": (np.arange(5000) % 100, CLASSES),
    "two values, one of them once": (np.r_[np.zeros(50), 1], CLASSES),
    "two values that are not 0 and 1": (5 + 2 * (np.arange(5) % 2), CLASSES),
    "labels -1, 0 and 1": (np.arange(30) % 3 - 1, CLASSES),
    "nine tumours, 48 rows, the rarest once": (np.r_[np.arange(47) % 8, 8] + 1, CLASSES),
    "codes 10, 20, 30": (10 * (1 + np.arange(60) % 3), CLASSES),
    "ratings 1 to 10": (1 + np.arange(500) % 10, CLASSES),
    "quality 3 to 9, a rare end": (
        np.repeat([3, 4, 5, 6, 7, 8, 9], [20, 163, 1457, 2198, 880, 175, 5]),
        CLASSES,
    ),
    "counts 0 to 12": (np.minimum(12, RNG.poisson(5, 1_000)), CLASSES),
    "whole floats": (np.arange(90) % 3 * 1.0, CLASSES),
    "ages": (ages(1_000), NUMBERS),
    "ages of many people": (ages(50_000), NUMBERS),
    "years": (1922 + RNG.binomial(89, 0.8, 20_000), NUMBERS),
    "years 1990 to 2019, each often": (1990 + np.arange(3_000) % 30, NUMBERS),
    "prices in whole euros": (RNG.integers(5, 4_000, 1_000), NUMBERS),
    "prices in few rows": (np.array([100, 120, 95, 210, 180, 99, 130, 145, 160, 300]), NUMBERS),
    "counts with a rare tail": (RNG.poisson(14, 5_000), NUMBERS),
    "rings of shells, 1 to 29": (1 + np.minimum(28, RNG.poisson(9, 4_177)), NUMBERS),
    "row numbers": (np.arange(15), NUMBERS),
    "points 0 to 100": (RNG.binomial(100, 0.5, 30_000), NUMBERS),
    "fractions": (np.arange(60) % 3 + 0.5, NUMBERS),
}


def kind(task: str) -> str:
    return CLASSES if task in ("binary", "multiclass") else NUMBERS


@pytest.mark.parametrize("name", list(TARGETS))
def test_whole_numbers_are_read_as_a_user_expects_in_tables_and_in_files(name):
    y, expected = TARGETS[name]
    shuffled = RNG.permutation(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert kind(read_target(shuffled, None).task) == expected
        column = fit_target("y", pa.array(shuffled), None, FileOptions())
    assert kind(column.target.task) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forty people from 1 on, ten rows each", "40 distinct whole numbers and is read as classification"),
        ("ages", "read as regression; pass task='classification'"),
        ("prices in few rows", "10 distinct whole numbers and is read as regression"),
        ("prices in whole euros", None),
        ("digits 0 to 9", None),
        ("codes 10, 20, 30", None),
        ("two values, one of them once", None),
        ("quality 3 to 9, a rare end", "7 distinct whole numbers and is read as classification"),
        ("counts 0 to 12", "13 distinct whole numbers and is read as classification; pass task='regression'"),
        ("whole floats", "3 distinct whole numbers and is read as classification"),
    ],
)
def test_a_warning_says_what_was_decided_where_the_other_reading_is_plausible(name, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_target(TARGETS[name][0], None)
    assert len(caught) == (message is not None)
    assert message is None or message in str(caught[0].message)


def test_a_task_that_is_given_is_not_questioned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_target(1 + np.arange(400) % 40, None, "regression").task == "regression"
        assert read_target(ages(1_000), None, "classification").task == "multiclass"


def faces(rows: int) -> tuple[np.ndarray, np.ndarray]:
    return RNG.normal(size=(rows, 4)), 1 + np.arange(rows) % 40


@pytest.mark.filterwarnings("ignore:y holds")
@pytest.mark.parametrize(
    ("y", "task", "classes", "shown"),
    [
        (faces(200)[1], "multiclass", 40, "multiclass, 40 classes"),
        (np.arange(200) % 2, "binary", 2, "binary"),
        (np.arange(200) / 7, "regression", None, "regression"),
    ],
)
def test_the_decision_is_in_the_settings_and_in_the_repr(y, task, classes, shown, tmp_path):
    selection = seqatt.select(faces(200)[0], y, 2, method="f_test")
    assert (selection.settings["task"], selection.settings.get("classes")) == (task, classes)
    assert f"; {shown}" in repr(selection)
    selection.save(tmp_path / "selection.json")
    assert repr(Selection.load(tmp_path / "selection.json")) == repr(selection)


@pytest.mark.filterwarnings("ignore:.* holds 40 distinct")
@pytest.mark.parametrize("memory", [[], ["--memory", "0"]])
def test_the_commands_print_the_decision(memory, tmp_path):
    X, y = faces(400)
    path = tmp_path / "faces.csv"
    pd.DataFrame(X).add_prefix("x").assign(person=y).to_csv(path, index=False)
    arguments = [str(path), "--target", "person", "-k", "2"]
    chosen = CliRunner().invoke(app, ["select", *arguments, "--method", "linear_omp", *memory])
    assert chosen.exit_code == 0, chosen.output
    assert "multiclass, 40 classes, " in chosen.output
    if not memory:
        compared = CliRunner().invoke(app, ["compare", *arguments, "--methods", "linear_omp", "--seeds", "1"])
        assert "multiclass, 40 classes, 400 rows, 4 features" in compared.output


def test_a_comparison_saved_before_the_number_of_classes_was_recorded_is_still_shown():
    X, y = linear_problem("multiclass")
    comparison = seqatt.compare(X, y, 2, methods=["random"], seeds=[0])
    assert "multiclass, 3 classes, 300 rows" in repr(comparison)
    del comparison.settings["classes"]
    assert "multiclass, 300 rows" in repr(comparison)


@pytest.mark.parametrize("task", [None, "classification", "multiclass"])
def test_classes_that_mostly_occur_once_are_refused_with_what_to_do(task):
    measured = RNG.normal(size=200).round(6)
    y = measured.astype(str) if task is None else measured
    with pytest.raises(ValueError, match=r"y: 200 of its 200 classes occur once, .*task='regression'"):
        seqatt.select(RNG.normal(size=(200, 3)), y, 2, task=task)
    with pytest.raises(ValueError, match=r"target: 200 of .* \(column 'm', in a schema sample of 200 rows\)"):
        fit_target("m", pa.array(y), None, FileOptions(task=task))


def test_classes_of_which_some_occur_once_are_read():
    names = np.array(["a", "b", "c", "d", "a", "b"])  # two of six rows
    assert read_target(names, None).task == "multiclass"
    assert read_target(np.array(["a", "b"]), None).task == "binary"
    assert read_target(np.array(["a", "b", "c"]), None).task == "multiclass"  # a few rows to try out


@pytest.mark.parametrize("memory", [[], ["--memory", "0"]])
def test_the_command_refuses_a_column_of_identifiers_as_target(memory, tmp_path):
    path = tmp_path / "rows.csv"
    rows = pd.DataFrame(
        {"x": RNG.normal(size=80), "z": RNG.normal(size=80), "name": [f"n{i}" for i in range(80)]}
    )
    rows.to_csv(path, index=False)
    done = CliRunner().invoke(app, ["select", str(path), "--target", "name", "-k", "1", *memory])
    assert isinstance(done.exception, ValueError)
    assert "target: 80 of its 80 classes occur once" in str(done.exception)


def test_rows_without_a_target_are_counted(tmp_path):
    frame = pd.DataFrame({"x": np.arange(3000.0), "y": np.random.default_rng(0).normal(size=3000)})
    frame.loc[[5, 17, 2999], "y"] = np.nan
    with pytest.raises(ValueError, match="y: contains NaN in 3 of 3,000 rows"):
        read_target(frame["y"], None)
    labels = frame["y"].map(lambda value: None if np.isnan(value) else str(value > 0))
    with pytest.raises(ValueError, match=r"y: contains NaN .* in 3 of 3,000 rows"):
        read_target(labels, None)
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=1000)
    with pytest.raises(ValueError, match=r"'y' has missing or infinite values in 3 of 3,000 rows; .*dropna"):
        seqatt.select(tmp_path / "data.parquet", target="y", k=1)
    with pytest.raises(ValueError, match="values in 2 of 1,000 rows that were looked at"):
        seqatt.select(tmp_path / "data.parquet", target="y", k=1, memory=0)
