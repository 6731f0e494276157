"""The target may be a column of the table, given by name, in every function that takes a target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem

import seqatt

OPTIONS = {"method": "linear_omp"}


def frame() -> pd.DataFrame:
    X, y = linear_problem("binary")
    return pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y)


def test_select_takes_the_named_target_out_of_the_features():
    table = frame()
    for selection in (
        seqatt.select(table, target="y", k=2, **OPTIONS),
        seqatt.select(table, "y", k=2, **OPTIONS),
        seqatt.select_trials(table, target="y", k=2, seeds=[0], **OPTIONS)[0],
    ):
        assert set(selection.features) == {"b", "e"}
        assert "y" not in selection.names


@pytest.mark.parametrize("target", [["y", "z"], "y,z", "y, z"])
@pytest.mark.parametrize("files", [False, True])
def test_several_columns_are_named_by_a_list_or_with_commas(target, files, tmp_path):
    table = frame().assign(z=lambda table: table["a"] > 0)
    if files:
        table.to_parquet(tmp_path / "data.parquet")
    selection = seqatt.select(
        tmp_path / "data.parquet" if files else table, target=target, k=3, method="f_test"
    )
    assert selection.settings["task"] == "multilabel"
    assert len(selection.names) == 8
    with pytest.raises(ValueError, match="target: no column 'w'"):
        seqatt.select(table, target=["y", "w"], k=2, **OPTIONS)
    with pytest.raises(ValueError, match="target: must name columns without commas"):
        seqatt.select(table, target=[], k=2, **OPTIONS)


def test_a_numbered_column_can_be_the_target():
    table = frame()
    table.columns = range(9)
    selection = seqatt.select(table, target=8, k=2, **OPTIONS)
    assert set(selection.features) == {1, 4}


def test_evaluate_takes_a_named_target():
    table = frame()
    named = seqatt.evaluate(table[::2], X_test=table[1::2], target="y", indices=["b", "e"], seeds=[0])
    X, y = table.drop(columns="y"), table.y
    given = seqatt.evaluate(X[::2], y[::2], X[1::2], y[1::2], ["b", "e"], seeds=[0])
    assert named["accuracy"] == given["accuracy"]
    with pytest.raises(TypeError, match="target: names the column to predict; pass either target or y_train"):
        seqatt.evaluate(table, y, table, target="y")
    with pytest.raises(TypeError, match="X_test: test rows are needed"):
        seqatt.evaluate(table, target="y")


def test_marginal_gains_takes_a_named_target():
    table = frame()
    named = seqatt.marginal_gains(table, target="y", candidates=["b", "c"], epochs=2)
    given = seqatt.marginal_gains(table.drop(columns="y"), table.y, candidates=["b", "c"], epochs=2)
    np.testing.assert_array_equal(named, given)


def test_compare_takes_a_named_target():
    comparison = seqatt.compare(frame(), target="y", k=2, methods=["linear_omp"], seeds=[0])
    assert set(comparison.runs[0].features) == {"b", "e"}
    with pytest.raises(TypeError, match="k: the number of features"):
        seqatt.compare(frame(), target="y")


def test_a_selector_says_why_it_takes_no_name():
    with pytest.raises(TypeError, match=r"y: must be the values.*X\.drop\(columns='y'\)"):
        seqatt.OMPSelector(2).fit(frame(), "y")
    X, y = frame().drop(columns="y"), frame()["y"]
    for name in ("sample_weight", "groups_of_rows", "time"):
        with pytest.raises(TypeError, match=rf"^{name}: must be the values.*X\.drop\(columns='a'\)"):
            seqatt.OMPSelector(2).fit(X, y, **{name: "a"})


def test_errors_name_the_argument_that_was_given():
    with pytest.raises(ValueError, match="target: no column 'z'; the columns are a, b, c, d, e, f, g, h, y"):
        seqatt.select(frame(), target="z", k=2)
    with pytest.raises(TypeError, match="target: names a column of X to predict; pass either target or y"):
        seqatt.select(frame(), [0, 1], target="y", k=2)
