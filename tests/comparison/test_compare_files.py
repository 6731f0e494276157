"""``compare`` on files: those that fit in memory are the table they make, others are split row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem

import seqatt

METHODS = ["linear_omp", "random", "all"]
QUICK = {"seeds": [0, 1], "device": "cpu"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*steps.*:UserWarning"),  # there are few rows
    pytest.mark.usefixtures("quick_evaluation"),
]


@pytest.fixture
def frame() -> pd.DataFrame:
    X, y = linear_problem("binary", rows=400)
    frame = pd.DataFrame(X[:, :6], columns=list("abcdef"))
    frame["word"] = np.array(["one", "two", None], dtype=object)[np.arange(400) % 3]
    frame["day"] = np.arange(400) // 40
    return frame.assign(y=y)


@pytest.fixture
def files(frame, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(2):
        part = frame.iloc[200 * number : 200 * (number + 1)]
        part.to_parquet(folder / f"{number}.parquet", index=False, row_group_size=70)
    return folder


def outcomes(comparison: seqatt.Comparison) -> list[tuple]:
    assert not [run.error for run in comparison.runs if run.error]
    return [(run.key, run.features, run.metrics) for run in comparison.runs]


@pytest.mark.parametrize("options", [{}, {"ignore": ["a", "day"], "log1p": ["b"]}, {"split_groups": "day"}])
def test_files_that_fit_in_memory_are_compared_exactly_as_the_table_they_make(frame, files, options):
    on_table = seqatt.compare(frame, "y", [1, 2], methods=METHODS, **QUICK, **options)
    on_files = seqatt.compare(files, "y", [1, 2], methods=METHODS, **QUICK, **options)
    assert outcomes(on_files) == outcomes(on_table)
    assert on_files.settings == on_table.settings
    assert "y" not in on_files.runs[-1].features


def test_test_files_that_fit_in_memory_are_those_of_the_table(frame, files):
    train, test = files / "0.parquet", files / "1.parquet"
    on_files = seqatt.compare(train, "y", 2, X_test=test, methods=METHODS, **QUICK)
    on_table = seqatt.compare(frame[:200], "y", 2, X_test=frame[200:], methods=METHODS, **QUICK)
    assert outcomes(on_files) == outcomes(on_table)
    assert on_files.settings["test"] == {"rows": 200}


def test_larger_files_are_split_by_rows_and_the_seed_decides_where(files, tmp_path, monkeypatch):
    monkeypatch.setattr("seqatt.api.evaluation.evaluate.evaluation_steps", lambda *_: 80)
    options = {"memory": 0, "methods": [*METHODS, "sequential_attention", "f_test"], **QUICK}
    options["options"] = {"sequential_attention": {"epochs": 1, "batch_size": 4, "hidden": (8,)}}
    comparison = seqatt.compare(files, "y", 2, test_size=0.25, out=tmp_path / "out", **options)
    assert outcomes(comparison) == outcomes(seqatt.compare(files, "y", 2, test_size=0.25, **options))
    assert comparison.settings["rows"] == 400
    assert comparison.settings["test"] == {"size": 0.25, "stratified": False, "grouped": False}
    # Of row groups of 70, 70 and 60 rows, twice.
    assert comparison.settings["split_rows"] == [[298, 102], [298, 102]]
    [omp] = [run for run in comparison.runs if run.key == ("linear_omp", 2, 0)]
    assert set(omp.features) == {"b", "e"}
    assert omp.metrics["accuracy"] > 0.8
    again = seqatt.compare(files, "y", 2, test_size=0.25, out=tmp_path / "out", **options)
    assert outcomes(again) == outcomes(comparison)


def test_larger_files_may_have_test_files(files):
    train, test = files / "0.parquet", files / "1.parquet"
    comparison = seqatt.compare(train, "y", 2, X_test=test, methods=METHODS, memory=0, **QUICK)
    assert comparison.settings["test"] == {"rows": 200}
    assert len(outcomes(comparison)) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stratify": True, "memory": 0}, "stratify: is not for files that do not fit in memory"),
        ({"split_groups": "day", "memory": 0}, "split_groups: is not for files that do not fit"),
        ({"test_size": 0.9, "memory": 0}, "test_size: at most half"),
        ({"y_test": [0, 1]}, "y_test: is not for files"),
        ({"y": "gone"}, "target: no column 'gone'"),
        ({"split_groups": "gone"}, "no column 'gone'"),
        ({"y": "y,a", "memory": 0}, "y: files that do not fit in memory have one target"),
        ({"memroy": 0}, "no option 'memroy'"),
        ({"options": {"random": {"memory": 0}}}, "options: 'memory' applies to all methods"),
    ],
)
def test_invalid_arguments_about_files_are_refused(files, options, message):
    arguments = {"X": files, "y": "y", "k": 2, "methods": METHODS} | options
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.compare(**arguments)


def test_options_of_files_are_refused_for_a_table(frame):
    with pytest.raises(TypeError, match="memory: is for files"):
        seqatt.compare(frame, "y", 2, memory=0)


def test_a_column_missing_from_the_test_files_is_named(frame, files, tmp_path):
    frame.drop(columns="c").to_parquet(tmp_path / "narrow.parquet")
    with pytest.raises(ValueError, match="X_test: column 'c' is missing"):
        seqatt.compare(files / "0.parquet", "y", 2, X_test=tmp_path / "narrow.parquet")


def test_text_files_are_compared_batch_by_batch_though_they_do_not_store_their_number_of_rows(
    frame, tmp_path
):
    frame[["a", "b", "c", "y"]].to_csv(tmp_path / "rows.csv", index=False)
    comparison = seqatt.compare(
        tmp_path / "rows.csv", "y", 1, methods=["linear_omp", "random"], memory=0, **QUICK
    )
    assert len(outcomes(comparison)) == 4
    assert comparison.table()
