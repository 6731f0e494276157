"""Selected features that are probably a mistake are named in the notes: row numbers, and copies of the target."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.selected_notes import note_selected

ROWS = 300
QUICK = {"method": "f_test"}


def problem() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    return X, np.where(X.a + rng.normal(size=ROWS) > 0, "yes", "no")


def test_a_row_number_is_noted_even_without_a_name(tmp_path):
    X, y = problem()
    numbered = (
        X.assign(y=y).sort_values("y").set_index(np.arange(ROWS) / 2)
    )  # whole numbers would be left out
    numbered.to_csv(tmp_path / "data.csv")
    selection = seqatt.select(tmp_path / "data.csv", target="y", k=2, **QUICK)
    assert selection.features[0] == ""
    assert selection.notes == [
        "(no name) rises or falls from row to row, as a row number or a time does; "
        "ignore (--ignore) leaves a column out."
    ]
    some = pd.read_csv(tmp_path / "data.csv").sample(100, random_state=0).sort_index()  # others are held out
    assert seqatt.select(some, target="y", k=2, **QUICK).notes[0].startswith("Unnamed: 0 rises or falls")
    assert not seqatt.select(X, y, 4, **QUICK).notes


@pytest.mark.parametrize("kind", ["copy", "relabelled", "finer", "many codes"])
def test_a_feature_that_determines_the_class_is_noted(kind):
    X, y = problem()
    rng = np.random.default_rng(1)
    leaks = {
        "copy": y,
        "relabelled": np.where(y == "yes", 7, 3),
        "finer": np.where(y == "yes", rng.choice(list("pqr"), ROWS), rng.choice(list("stu"), ROWS)),
        "many codes": [f"{c}{n}" for c, n in zip(y, np.arange(ROWS) % 9, strict=True)],
    }
    method = "sequential_attention" if kind == "many codes" else "f_test"  # with embeddings, and without
    (note,) = seqatt.select(X.assign(leak=leaks[kind]), y, 5, method=method).notes
    assert note.startswith("leak determines the target in every row.")
    one_row_differs = list(leaks[kind])
    one_row_differs[0] = leaks[kind][next(i for i in range(ROWS) if y[i] != y[0])]
    assert not seqatt.select(X.assign(leak=one_row_differs), y, 5, method=method).notes


def test_a_feature_that_is_the_target_up_to_its_scale_is_noted():
    X, _ = problem()
    y = X.a + np.random.default_rng(1).normal(size=ROWS)
    (note,) = seqatt.select(X.assign(leak=3 - 2 * y), y, 2, **QUICK).notes
    assert note.startswith("leak determines")
    assert not seqatt.select(X, y, 2, **QUICK).notes


def test_a_feature_with_a_value_per_row_determines_nothing():
    X, y = problem()
    notes = seqatt.select(X.assign(id=[f"u{i}" for i in range(ROWS)]), y, 5, **QUICK).notes
    assert not any("determines" in note for note in notes)


def leaks(y: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers that are known once the class is: an amount, a side of a threshold, a shift that outweighs the noise."""
    rng = np.random.default_rng(2)
    amount, code = rng.lognormal(3, 1, len(y)), np.unique(y, return_inverse=True)[1]
    return {
        "amount": np.where(code > 0, amount, 0),
        "missing": np.where(code > 0, amount, np.nan),
        "threshold": np.where(code > 0, 1, -1) * amount,
        "shift": 10 * code + rng.normal(size=len(y)),
    }


@pytest.mark.parametrize("kind", ["amount", "missing", "threshold", "shift"])
def test_a_number_that_separates_the_classes_is_noted(kind):
    X, y = problem()
    leak = leaks(y)[kind]
    notes = seqatt.select(X.assign(leak=leak), y, 5, **QUICK).notes
    assert notes[-1] == (
        "leak determines the target in every row: every class has a range of values of its own. Is it known before the "
        "target is? Else leave it out with ignore (--ignore)."
    )
    here, there = np.flatnonzero(y == "yes")[40], np.flatnonzero(y == "no")[40]
    leak[[here, there]] = leak[[there, here]]
    notes = seqatt.select(X.assign(leak=leak), y, 5, **QUICK).notes
    assert not any("determine" in note for note in notes)


def test_numbers_that_separate_several_classes_in_any_order_are_noted():
    X, _ = problem()
    y = np.array(list("bca"))[np.arange(ROWS) % 3]
    apart = leaks(y)["shift"]
    indicated = np.where(y == "b", np.nan, apart)  # one class has none, and the others have ranges
    given = X.assign(leak=apart, other=-apart, third=indicated)
    notes = seqatt.select(given, y, 7, missing_indicator=True, **QUICK).notes
    assert notes[-1].startswith(
        "third, leak and other determine the target in every row: in each, every class has"
    )
    assert "Are they known" in notes[-1]
    mixed = np.where(y == "b", X.a, apart)  # one class reaches into the range of another
    assert not seqatt.select(X.assign(leak=mixed), y, 5, **QUICK).notes


def test_a_rare_class_that_the_first_rows_do_not_have_is_looked_for():
    rng = np.random.default_rng(3)
    X, y = pd.DataFrame(rng.normal(size=(2_000, 4)), columns=list("abcd")), np.arange(2_000) >= 1_900
    (note,) = seqatt.select(X.assign(leak=leaks(y)["amount"]), y, 5, **QUICK).notes
    assert note.startswith("leak determines")


@pytest.mark.parametrize("positives", [1, 2])
def test_few_rows_that_one_of_many_columns_separates_by_chance_are_not_noted(positives):
    X, y = np.random.default_rng(4).normal(size=(20, 1_000)), np.arange(20) < positives
    selection = seqatt.select(X, y, 5, **QUICK)
    selected = X[:, selection.indices] * np.sign(X[:, selection.indices][y].mean(0))
    assert (selected[y].min(0) > selected[~y].max(0)).any()
    assert not selection.notes


@pytest.mark.parametrize("kind", ["rounded", "logarithm", "falling", "zeros", "two numbers"])
def test_a_number_that_the_target_rises_or_falls_with_is_noted(kind):
    X, _ = problem()
    y = np.exp(X.a.to_numpy() + np.random.default_rng(1).normal(size=ROWS)) + 1
    task = None
    if kind == "zeros":
        y[::2] = 0
    elif kind == "two numbers":
        y, task = (y > 3) + 0.0, "regression"
    leak = {
        "rounded": np.log1p(y).round(2),
        "falling": -np.log1p(y),
        "two numbers": np.arange(ROWS) + ROWS * y,
    }.get(kind, np.log1p(y))
    (note,) = seqatt.select(X.assign(leak=leak), y, 5, task=task, **QUICK).notes
    assert note.startswith(
        "leak determines the target in every row: the target only rises, or only falls, with it. Is it known before"
    )
    leak[[40, 41]] = leak[[41, 40]] if y[40] != y[41] else leak[[40, 41]][::-1] * [-1, 1]
    assert not seqatt.select(X.assign(leak=leak), y, 5, task=task, **QUICK).notes


def test_a_number_that_is_the_target_in_a_few_steps_does_not_determine_it():
    X, _ = problem()
    y = X.a + np.random.default_rng(1).normal(size=ROWS)
    for leak in (y.round(), y > 0, (y > y.median()) + 0.0):
        assert not seqatt.select(X.assign(leak=leak), y, 5, **QUICK).notes


@pytest.mark.filterwarnings("ignore:epochs")
def test_a_leak_in_files_read_batch_by_batch_is_noted_from_the_schema_sample(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3_000, 4)), columns=list("abcd"))
    frame["y"] = (frame["a"] + rng.normal(size=3_000) > 1).astype(int)
    frame["refund"] = np.where(frame["y"] == 1, 1 + rng.exponential(size=3_000), 0.0)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=500)
    selection = seqatt.select(path, target="y", k=1, memory=0, epochs=5)
    assert selection.features == ["refund"]
    (note,) = selection.notes
    assert note.startswith("refund determines the target in all 3,000 rows of the schema sample: every class")
    data = read_file_data(path, "y", FileOptions(), 1_000)
    assert note_selected(data, [data.names.index("refund")], {}, SimpleNamespace(data=FileOptions()))
    path.unlink()
    assert note_selected(data, [data.names.index("refund")], {}, SimpleNamespace(data=FileOptions())) == []
