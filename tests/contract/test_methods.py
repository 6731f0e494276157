"""What every method promises, on tables and on files. A new method is tested here without further work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.registry import DEFAULT, all_methods
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.options import names_of

METHODS = seqatt.methods()
INFORMED = [name for name in METHODS if name != "random"]
UNIVARIATE = ("mutual_information", "f_test")  # a copy of a feature has the score of the original
RELATIVE = ("entry_prune",)  # a score is relative to the other features in the network, here few
EPOCHS = {  # that find two features of eight; the default of most is about 850
    name: 400 if name == "concrete_autoencoder" else 30
    for name in METHODS
    if "epochs" in names_of(all_methods()[name].options)
}
TASKS = ["binary", "multiclass", "multilabel", "regression", "multi-output"]
SEVERAL_TARGETS = ("multilabel", "multi-output")
STREAMING = [name for name in METHODS if all_methods()[name].select_files is not None]
# On a table, and on files that are read batch by batch, which a method that cannot do that gets as a sample, a table.
# Files that are read into memory give the selection of the table bit for bit, so what holds for it holds for them.
CASES = [(name, "table") for name in METHODS] + [(name, "batches") for name in STREAMING]
SHORT = ["short", "default"]  # trainings
INFORMED_CASES = [case for case in CASES if case[0] in INFORMED]

pytestmark = pytest.mark.filterwarnings("ignore:.*steps.*:UserWarning")  # there are few rows


def with_tasks(cases: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Every case on a table with every task, and batch by batch with classes and with numbers."""
    tasks = {"table": TASKS, "batches": ["binary", "regression"]}
    return [(*case, task) for case in cases for task in tasks[case[1]]]


def default_first(cases: list[tuple[str, ...]]) -> list[Any]:
    """Trainings in full: batch by batch, those of other methods than the default are exhaustive."""
    long = [case[1] == "batches" and case[0] != DEFAULT for case in cases]
    marks = [[pytest.mark.exhaustive] if each else [] for each in long]
    return [pytest.param(*case, marks=mark) for case, mark in zip(cases, marks, strict=True)]


def quick(method: str, **more) -> dict:
    """Those of some options that the method has, for a fast run whose selection does not matter."""
    options = {"epochs": 2, "batch_size": 8, "hidden": (8,), "n_estimators": 20, "max_iter": 5} | more
    return {name: options[name] for name in names_of(all_methods()[method].options) if name in options}


def as_read(reading: str, X: Any, y: np.ndarray, folder: Path) -> dict[str, Any]:
    """The arguments of ``select`` for these rows: as they are, or written into two files of two row groups each."""
    if reading == "table":
        return {"X": X, "y": y}
    frame = (
        X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    )
    targets = ["y"] if y.ndim == 1 else [f"y{i}" for i in range(y.shape[1])]
    table = pd.concat([frame, pd.DataFrame(y, columns=targets)], axis=1)
    folder.mkdir(exist_ok=True)
    half = -(-len(table) // 2)
    for number in range(2):
        part = table.iloc[number * half : (number + 1) * half]
        part.to_parquet(folder / f"{number}.parquet", index=False, row_group_size=-(-half // 2))
    return {"X": folder, "target": ",".join(targets), "memory": "1GB" if reading == "files" else 0}


def assert_valid(selection: seqatt.Selection, k: int, features: int) -> None:
    assert len(selection.indices) == len(set(selection.indices.tolist())) == k
    assert selection.support.sum() == k
    assert selection.support[selection.indices].all()
    assert sorted(selection.ranking.tolist()) == list(range(1, features + 1))
    assert selection.ranking[selection.indices].tolist() == list(range(1, k + 1))
    assert [selection.names[i] for i in selection.indices] == selection.features
    assert len(selection.scores) == k


@pytest.mark.parametrize("method", METHODS)
def test_files_that_fit_in_memory_give_the_selection_of_the_table_bit_for_bit(method, tmp_path):
    rng = np.random.default_rng(0)
    X, y = linear_problem("binary", rows=200)
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    frame.loc[rng.random(200) < 0.1, "c"] = np.nan
    frame["few"] = np.array(["u", "v", None], dtype=object)[rng.integers(3, size=200)]
    frame["many"] = np.char.add("m", rng.integers(30, size=200).astype(str))
    frame["flag"] = rng.random(200) < 0.5
    frame["count"] = rng.integers(9, size=200)
    table, files = (
        seqatt.select(
            **as_read(reading, frame, y, tmp_path), k=5, method=method, **quick(method, batch_size=16)
        )
        for reading in ("table", "files")
    )
    assert files.settings["reading"] == "memory"
    assert files.features == table.features
    assert files.scores.tolist() == table.scores.tolist()
    assert files.ranking.tolist() == table.ranking.tolist()
    histories = [[entry | {"seconds": 0} for entry in s.to_dict()["history"]] for s in (table, files)]
    assert histories[0] == histories[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", ["binary", "multi-output"])
def test_files_are_read_batch_by_batch_if_the_method_can_and_else_as_a_sample(method, task, tmp_path):
    X, y = linear_problem(task, rows=60)
    selection = seqatt.select(**as_read("batches", X, y, tmp_path), k=2, method=method, **quick(method))
    streams = all_methods()[method].select_files is not None and task not in SEVERAL_TARGETS
    assert selection.settings["reading"] == ("batches" if streams else "sample")
    assert selection.settings["rows"] == 60


@pytest.mark.slow
@pytest.mark.parametrize(("method", "reading", "task"), with_tasks(CASES))
@pytest.mark.parametrize("k", [1, 8])
def test_exactly_k_distinct_features_are_selected(method, task, k, reading, tmp_path):
    data = as_read(reading, *linear_problem(task, rows=60), tmp_path)
    assert_valid(seqatt.select(**data, k=k, method=method, **quick(method, batch_size=4)), k, 8)


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_a_batch_can_be_a_single_row(method, reading, tmp_path):
    data = as_read(reading, *linear_problem("binary", rows=30), tmp_path)
    assert_valid(seqatt.select(**data, k=3, method=method, **quick(method, batch_size=1)), 3, 8)


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_constant_features_come_last(method, reading, tmp_path):
    X, y = linear_problem("binary", rows=60)
    X[:, [0, 5]] = 3.25
    selection = seqatt.select(**as_read(reading, X, y, tmp_path), k=7, method=method, **quick(method))
    assert_valid(selection, 7, 8)
    assert set(selection.indices[:6]) == {1, 2, 3, 4, 6, 7}


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_forbidden_features_are_not_selected_and_quotas_are_met(method, reading, tmp_path):
    X, y = linear_problem("binary", rows=60)
    X[:, 5] = 3.25
    quotas = {"a": {"features": ["x1", "x2", "x4"], "most": 1}, "b": {"features": ["x3", "x5"], "least": 1}}
    data = as_read(reading, X, y, tmp_path)
    selection = seqatt.select(**data, k=3, method=method, forbid=["x0"], quotas=quotas, **quick(method))
    assert_valid(selection, 3, 8)
    chosen = set(selection.indices.tolist())
    assert len(chosen & {1, 2, 4}) <= 1 <= len(chosen & {3, 5})
    assert selection.ranking[0] == 8
    filled = seqatt.select(**data, k=5, method=method, forbid=["x0"], quotas=quotas, **quick(method))
    assert_valid(filled, 5, 8)
    assert set(filled.indices.tolist()) > {3, 5, 6, 7}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "reading", "task"), with_tasks(CASES))
def test_the_same_seed_gives_the_same_selection(method, task, reading, tmp_path):
    data = as_read(reading, *linear_problem(task, rows=60), tmp_path)
    once, again = (seqatt.select(**data, k=4, method=method, seed=3, **quick(method)) for _ in range(2))
    assert once.indices.tolist() == again.indices.tolist()
    assert once.scores.tolist() == again.scores.tolist()


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_the_order_of_columns_does_not_change_the_selected_names(method, reading, tmp_path):
    X, y = linear_problem("multiclass", rows=100)
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    shuffled = frame[list("cahbgdfe")]
    a, b = (
        seqatt.select(**as_read(reading, f, y, tmp_path / str(i)), k=5, method=method, **quick(method))
        for i, f in enumerate((frame, shuffled))
    )
    assert a.features == b.features
    np.testing.assert_array_equal(a.scores, b.scores)
    assert [frame.columns[i] for i in a.indices] == [shuffled.columns[i] for i in b.indices]


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_a_trial_gives_the_same_selection_alone_and_beside_others(method, reading, tmp_path):
    data = as_read(reading, *linear_problem("multiclass", rows=200), tmp_path)
    options = quick(method, batch_size=16)
    trials = seqatt.select_trials(**data, k=4, seeds=[5, 0, 9], method=method, **options)
    alone = seqatt.select(**data, k=4, seed=0, method=method, **options)
    assert trials[1].indices.tolist() == alone.indices.tolist()
    assert trials[1].scores.tolist() == alone.scores.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=SHORT)
@pytest.mark.parametrize(("method", "reading", "task"), default_first(with_tasks(INFORMED_CASES)))
def test_the_relevant_features_are_found(method, task, reading, short, tmp_path):
    data = as_read(reading, *linear_problem(task), tmp_path)
    options = {"epochs": EPOCHS[method]} if short and method in EPOCHS else {}
    assert set(seqatt.select(**data, k=2, method=method, **options).indices) == {1, 4}


@pytest.mark.slow
@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=SHORT)
@pytest.mark.parametrize(
    ("method", "reading"),
    default_first([case for case in INFORMED_CASES if case[0] not in UNIVARIATE + RELATIVE]),
)
def test_a_duplicated_column_is_not_selected_before_another_relevant_one(method, reading, short, tmp_path):
    X, y = linear_problem("regression")
    X[:, 0] = X[:, 1]
    data = as_read(reading, X, y, tmp_path)
    options = {"epochs": EPOCHS[method]} if short and method in EPOCHS else {}
    selected = set(seqatt.select(**data, k=2, method=method, **options).indices.tolist())
    assert 4 in selected
    assert len(selected & {0, 1}) == 1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", [name for name in METHODS if all_methods()[name].nested])
def test_the_selections_of_a_nested_method_begin_with_those_for_a_smaller_k(method, task):
    """``compare`` runs such a method once, for the largest k."""
    X, y = linear_problem(task, rows=60, features=9, seed=3)
    X[:, 3], X[:, 5] = X[:, 1], 1.0  # a tie, and a constant feature
    largest = seqatt.select(X, y, 9, method=method, seed=2, **quick(method)).indices.tolist()
    for k in range(1, 9):
        selection = seqatt.select(X, y, k, method=method, seed=2, **quick(method))
        assert selection.indices.tolist() == largest[:k]


@pytest.mark.parametrize("method", METHODS)
def test_the_summary_is_one_line(method):
    summary = all_methods()[method].summary
    assert 20 < len(summary) < 80
    assert "\n" not in summary


@pytest.mark.parametrize(("method", "reading"), CASES)
def test_an_unknown_option_is_an_error(method, problem, reading, tmp_path):
    with pytest.raises(TypeError, match="no option 'epoch'"):
        seqatt.select(**as_read(reading, *problem, tmp_path), k=2, method=method, epoch=3)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_leaves_the_encoded_table_as_it_was(method):
    """``compare`` encodes a table once and gives it to all methods."""
    X, y = linear_problem("binary", rows=120)[:2]
    data = read_table_data(np.asarray(X), np.asarray(y))
    before = [data.columns.copy(), data.target.values.copy()]
    registered = all_methods()[method]
    few = {"epochs": 2.0} if "epochs" in names_of(registered.options) else {}
    request = SelectionRequest(data, 2, [0], registered.options(**few), torch.device("cpu"))
    registered.select(request, registered.plan(request), lambda steps: None)
    assert all(
        np.array_equal(old, new) for old, new in zip(before, [data.columns, data.target.values], strict=True)
    )
