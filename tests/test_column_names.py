"""Names come back as they were given, and ``Selection.transform`` takes the selected columns of any container."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from tests.support.problems import linear_problem

import seqatt

NUMBERED = [10, 3, 5, 7, 1, 0, 6, 2]


def numbered_frame() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = linear_problem("binary")
    return pd.DataFrame(X, columns=NUMBERED), y


def select(X, y, k=2, **options) -> seqatt.Selection:
    return seqatt.select(X, y, k, method="linear_omp", **options)


def test_whole_numbers_come_back_as_the_names_of_columns():
    X, y = numbered_frame()
    selection = select(X, y)
    assert set(selection.features) == {3, 1}
    assert all(type(name) is int for name in selection.names)
    assert selection.names == selection.input_names == NUMBERED
    assert X[selection.features].shape == (300, 2)


def test_names_in_the_history_are_those_of_the_features():
    X, y = numbered_frame()
    selection = seqatt.select(X, y, 2, epochs=2)
    scores = [phase["scores"] for phase in selection.history if phase["scores"]]
    assert scores
    assert all(set(each) <= set(NUMBERED) for each in scores)
    assert {name for phase in selection.history for name in phase["taken"]} <= set(NUMBERED)


def test_tuples_of_a_multi_index_come_back():
    X, y = linear_problem("binary")
    names = [("a", i) for i in range(8)]
    frame = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples(names))
    selection = select(frame, y)
    assert set(selection.features) == {("a", 1), ("a", 4)}
    assert frame[selection.features].shape == (300, 2)


@pytest.mark.parametrize("names", [NUMBERED, [("a", i) for i in range(8)], [0.5 * i for i in range(8)]])
def test_names_of_every_type_are_saved_and_loaded(names, tmp_path):
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(names)
    selection = seqatt.select(frame, y, 2, epochs=2)
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert loaded.to_dict() == selection.to_dict()
    assert loaded.features == selection.features
    assert loaded.history == selection.history
    assert "Selection(2 of 8 features" in repr(loaded)


def test_names_that_json_does_not_have_are_saved_as_text(tmp_path):
    X, y = linear_problem("binary")
    days = pd.date_range("2024-01-01", periods=8)
    selection = select(pd.DataFrame(X, columns=days), y)
    assert set(selection.features) == {days[1], days[4]}
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert set(loaded.features) == {str(days[1]), str(days[4])}


def test_with_groups_column_names_are_the_columns_of_the_frame():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    selection = select(frame, y, 1, groups={"pair": ["b", "e"]})
    assert selection.features == ["pair"]
    assert selection.column_names == ["b", "e"]
    assert frame[selection.column_names].shape == (300, 2)


def test_names_of_groups_come_back_as_given():
    X, y = linear_problem("binary")
    assert select(X, y, 1, groups={7: [1, 4]}).features == [7]
    numbered = pd.DataFrame(X, columns=range(8))
    assert select(numbered, y, 1, groups={"4": [1, 4]}).features == ["4"]


def test_whole_numbers_are_names_in_every_option():
    X, y = numbered_frame()
    selection = select(X, y, ignore=[3], log1p=[5], column_types={7: "numeric"})
    assert 3 not in selection.names
    for array in (np.array([3, 1]), X.columns[[1, 4]]):
        assert set(select(X, y, ignore=array).features).isdisjoint({3, 1})
    X = X.assign(**{"0": 1.0 + np.arange(300) // 10}).rename(columns={"0": 20})
    weighted = select(X, y, sample_weight=20)
    assert 20 not in weighted.names
    assert weighted.settings["sample_weight"]
    assert 20 not in select(X, y, time=20).names
    assert 20 not in select(X, y, groups_of_rows=np.int64(20)).names


NAMES = {
    "whole numbers, also positions": NUMBERED,
    "whole numbers from 1 on": range(1, 9),
    "numbers of NumPy": np.arange(8)[::-1],
    "numbers and text": ["a", 1, "b", 0, 2, "c", "d", 3],
    "fractions": [0.5 * i for i in range(8)],
    "dates": pd.date_range("2026-11-18", periods=8),
    "tuples": pd.MultiIndex.from_product([["u", "v"], np.arange(4)]),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
def test_names_of_every_type_are_names_in_every_option_about_features(names):
    X, y = linear_problem("binary")  # columns 1 and 4 say what y is
    frame = pd.DataFrame(X, columns=names)
    first, second, other = (frame.columns[i] for i in (1, 4, 2))
    assert first not in select(frame, y, ignore=[first]).names
    assert select(frame, y, log1p=[first], column_types={second: "numeric"}).features
    assert set(select(frame, y, candidates=[first, other]).features) == {first, other}
    assert set(select(frame, y, forbid=[first]).features).isdisjoint({first})
    assert other in seqatt.select(frame, y, 3, keep=[other], epochs=1).features
    quotas = {"q": {"features": [first, second], "most": 1}}
    assert len({first, second} & set(select(frame, y, quotas=quotas).features)) == 1
    assert select(frame, y, 1, groups={"g": [first, second]}).features == ["g"]
    costs = {first: 1, second: 1} | {name: 9 for name in frame.columns if name not in (first, second)}
    cheap = select(frame, y, None, costs=costs, budget=2)
    assert set(cheap.features) <= {first, second}
    shared = {"panel": {"cost": 9, "features": [first]}}
    assert first not in select(frame, y, None, costs=shared, budget=2).features


def test_a_number_that_is_no_name_is_answered_with_the_names():
    X, y = numbered_frame()
    with pytest.raises(ValueError, match=r"keep: 4 is not a feature of X, .*; the features are 10, 3, 5"):
        seqatt.select(X, y, 2, keep=[4])
    with pytest.raises(ValueError, match="keep: 3 is a column of the group 'g'"):
        seqatt.select(X, y, 2, keep=[3], groups={"g": [3, 5]})


@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        sp.csr_matrix,
        sp.coo_matrix,
        torch.tensor,
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=list("abcdefgh")),
        lambda X: pl.DataFrame(X, schema=list("abcdefgh")),
        lambda X: pa.table({name: X[:, i] for i, name in enumerate("abcdefgh")}),
    ],
    ids=["array", "csr", "coo", "tensor", "lists", "pandas", "polars", "arrow"],
)
def test_transform_returns_the_selected_columns_of_any_container(container):
    X, y = linear_problem("binary")
    table = container(X)
    selection = select(np.asarray(X) if isinstance(table, torch.Tensor) else table, y)
    taken = selection.transform(table)
    assert isinstance(taken, type(table)) or not hasattr(table, "columns")
    dense = taken.toarray() if sp.issparse(taken) else np.asarray(taken)
    np.testing.assert_array_equal(dense, X[:, selection.columns])


def test_transform_finds_the_columns_of_a_frame_by_name():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    selection = select(frame, y)
    other = frame[list("hgfedcba")].assign(more=1)
    pd.testing.assert_frame_equal(selection.transform(other), frame[selection.features])
    numbered, y = numbered_frame()
    pd.testing.assert_frame_equal(
        select(numbered, y).transform(numbered), numbered[select(numbered, y).features]
    )
    with pytest.raises(ValueError, match="X: column 'b' is missing"):
        selection.transform(frame.drop(columns="b"))


def test_transform_of_a_frame_by_a_selection_from_an_array_goes_by_position():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    assert set(select(X, y).transform(frame).columns) == {"b", "e"}


def test_transform_refuses_what_is_not_the_same_table():
    X, y = linear_problem("binary")
    selection = select(X, y)
    with pytest.raises(ValueError, match="X: must have rows and the 8 columns"):
        selection.transform(X[:, :3])
    with pytest.raises(TypeError, match="X: must be a table"):
        selection.transform("data.csv")


def test_a_selection_of_numbered_columns_is_evaluated_by_name():
    X, y = numbered_frame()
    selection = select(X, y)
    reordered = X[sorted(NUMBERED)]
    result = seqatt.evaluate(reordered, y, reordered, y, selection, seeds=[0])
    assert result["accuracy"][0] > 0.9


def test_a_number_that_may_be_a_name_or_a_position_is_refused():
    X, y = numbered_frame()
    with pytest.raises(
        ValueError, match=r"indices: 3 may be the name of a column of X_train or its position; .* such as '3'"
    ):
        seqatt.evaluate(X, y, X, y, [3, 1])
    assert len(seqatt.evaluate(X, y, X, y, ["3", "1"], seeds=[0], epochs=1)["accuracy"]) == 1
    gains = seqatt.marginal_gains(X, y, candidates=[10], epochs=1)  # no position
    assert np.flatnonzero(~np.isnan(gains)).tolist() == [0]
    plain = pd.DataFrame(X.to_numpy())  # columns 0, 1, ...: names and positions are the same
    assert len(seqatt.evaluate(plain, y, plain, y, [1, 4], seeds=[0], epochs=1)["accuracy"]) == 1
