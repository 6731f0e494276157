"""Selected features that are probably a mistake are named in the notes: row numbers, and copies of the target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import seqatt

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
