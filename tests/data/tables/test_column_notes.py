"""What is wrong with columns is said once per kind, in sentences that name the remedy, everywhere a result is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.cli.display import show
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.table_data import read_table_data
from seqatt.report.facts.selection_facts import selection_facts
from seqatt.report.page.html_page import make_page

ROWS = 400
QUICK = {"method": "f_test"}


def problem(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=list("abc"))
    return X, (X.a + rng.normal(size=ROWS) > 0).astype(int).to_numpy(), rng


def notes_of(X: pd.DataFrame, y: np.ndarray, **options) -> tuple[str, ...]:
    return read_table_data(X, y, **options).notes


def test_an_ordinary_table_has_no_notes():
    X, y, rng = problem()
    X = X.assign(
        colour=rng.choice(["red", "green"], ROWS), m=np.where(rng.random(ROWS) < 0.3, np.nan, 1.0 * X.b)
    )
    assert notes_of(X, y) == ()
    assert "notes" not in seqatt.select(X, y, 2, **QUICK).settings


def test_text_that_hardly_repeats_looks_like_an_identifier():
    X, y, _ = problem()
    (note,) = notes_of(X.assign(id=[f"u{i}" for i in range(ROWS)]), y)
    assert note.startswith("id looks like an identifier")
    assert "ignore" in note
    many = X.assign(**{f"id{j}": [f"u{i}" for i in range(ROWS)] for j in range(5)})
    (note,) = notes_of(many, y)
    assert note.startswith("id0, id1, id2 and 2 more look like identifiers")


def test_extreme_values_are_named_with_their_rows():
    X, y, _ = problem()
    X.loc[:3, "b"], X.loc[0, "c"] = -999.0, 1e9
    (note,) = notes_of(X, y)
    assert note.startswith("b (4 rows, up to -999) and c (1 row, up to 1e+09) hold extreme values")
    (note,) = notes_of(X.drop(columns="b").assign(c=np.exp(np.r_[90.0, X.b[1:]])), y, log1p=["c"])
    assert f"up to {np.exp(90):.6g}" in note


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "poisson", "ordinal"])
def test_missing_values_that_tell_the_target_name_the_option(task):
    X, _, rng = problem()
    y = np.digitize(X.a, [-0.5, 0.5]) if task in ("multiclass", "ordinal") else np.digitize(X.a, [0.0])
    y = X.a.to_numpy() if task == "regression" else y
    told = X.assign(
        m=np.where((X.a > 0) & (rng.random(ROWS) < 0.8), np.nan, 1.0), n=np.where(X.b > 0, np.nan, X.c)
    )
    (note,) = notes_of(told, y, task=task)
    assert note.startswith("Whether m is missing is related to the target; missing_indicator=True")
    assert notes_of(told, y, task=task, missing_indicator=True) == ()


def test_missing_values_by_chance_are_not_noted():
    for seed in range(10):
        X, y, rng = problem(seed)
        X[[f"m{j}" for j in range(40)]] = np.where(rng.random((ROWS, 40)) < 0.3, np.nan, 1.0)
        assert notes_of(X, y) == ()


def test_constant_features_that_fill_up_k_are_noted():
    X, y, _ = problem()
    X = X.assign(same=1.0, nothing=np.nan)
    selection = seqatt.select(X, y, 5, **QUICK)
    assert selection.notes == [
        "nothing and same are constant and were selected only because k is larger than the number of other features."
    ]
    assert seqatt.select(X, y, 3, **QUICK).notes == []


def test_notes_are_in_the_file_the_repr_notebooks_the_report_and_the_terminal(tmp_path, capsys):
    X, y, _ = problem()
    X = X.assign(**{"<id>": [f"u{i}" for i in range(ROWS)]})
    selection = seqatt.select(X, y, 2, **QUICK)
    selection.save(tmp_path / "selection.json")
    assert seqatt.Selection.load(tmp_path / "selection.json").notes == selection.notes
    assert len(selection.notes) == 1
    assert "; notes: 1)" in repr(selection)
    html = "&lt;id&gt; looks like an identifier"
    assert html in selection._repr_html_()
    assert html in make_page(selection_facts(selection))
    show(selection, "y")
    assert "Note: <id> looks like an identifier" in capsys.readouterr().out


def test_notebooks_show_what_the_repr_says():
    rng = np.random.default_rng(0)
    noise = seqatt.select(rng.normal(size=(100, 4)), rng.integers(2, size=100), 2, epochs=2)
    for remark in noise.remarks():
        assert remark in repr(noise)
        assert remark in noise._repr_html_()
    assert len(noise.remarks()) > 1


def test_files_have_the_notes_of_tables(tmp_path):
    X, y, _ = problem()
    X = X.assign(id=[f"u{i}" for i in range(ROWS)], m=np.where(y == 1, np.nan, X.b))
    X.loc[:3, "c"] = -999.0
    X.assign(y=y).to_parquet(tmp_path / "a.parquet")
    notes = read_file_data(tmp_path / "a.parquet", "y", FileOptions(), 1 << 10).notes
    assert notes == notes_of(X, y)
    assert len(notes) == 3
