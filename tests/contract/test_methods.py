"""What every method promises. A new method is tested here without further work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.options import names_of

METHODS = seqatt.methods()
INFORMED = [name for name in METHODS if name != "random"]
UNIVARIATE = ("mutual_information", "f_test")  # a copy of a feature has the score of the original
PENALISED = [name for name in METHODS if "penalty" in names_of(all_methods()[name].options)]
TASKS = ["binary", "multiclass", "multilabel", "regression", "multi-output"]


def quick(method: str, **more) -> dict:
    """Those of some options that the method has, for a fast run whose selection does not matter."""
    options = {"epochs": 2, "hidden": (8,), "n_estimators": 20, "max_iter": 5} | more
    return {name: options[name] for name in names_of(all_methods()[method].options) if name in options}


def assert_valid(selection: seqatt.Selection, k: int, features: int) -> None:
    assert len(selection.indices) == len(set(selection.indices.tolist())) == k
    assert selection.support.sum() == k
    assert selection.support[selection.indices].all()
    assert sorted(selection.ranking.tolist()) == list(range(1, features + 1))
    assert selection.ranking[selection.indices].tolist() == list(range(1, k + 1))
    assert [selection.names[i] for i in selection.indices] == selection.features
    assert len(selection.scores) == k


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("k", [1, 8])
def test_exactly_k_distinct_features_are_selected(method, task, k):
    X, y = linear_problem(task, rows=60)
    assert_valid(seqatt.select(X, y, k, method=method, **quick(method)), k, 8)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_can_be_a_single_row(method):
    X, y = linear_problem("binary", rows=30)
    assert_valid(seqatt.select(X, y, 3, method=method, **quick(method, batch_size=1)), 3, 8)


@pytest.mark.parametrize("method", METHODS)
def test_constant_features_come_last(method):
    X, y = linear_problem("binary", rows=60)
    X[:, [0, 5]] = 3.25
    selection = seqatt.select(X, y, 7, method=method, **quick(method))
    assert_valid(selection, 7, 8)
    assert set(selection.indices[:6]) == {1, 2, 3, 4, 6, 7}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_selection(method, task):
    X, y = linear_problem(task, rows=60)
    once, again = (seqatt.select(X, y, 4, method=method, seed=3, **quick(method)) for _ in range(2))
    assert once.indices.tolist() == again.indices.tolist()
    assert once.scores.tolist() == again.scores.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_columns_does_not_change_the_selected_names(method):
    X, y = linear_problem("multiclass", rows=100)
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    shuffled = frame[list("cahbgdfe")]
    a, b = (seqatt.select(f, y, 5, method=method, **quick(method)) for f in (frame, shuffled))
    assert a.features == b.features
    np.testing.assert_array_equal(a.scores, b.scores)
    assert [frame.columns[i] for i in a.indices] == [shuffled.columns[i] for i in b.indices]


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_gives_the_same_selection_alone_and_beside_others(method):
    X, y = linear_problem("multiclass", rows=500)
    trials = seqatt.select_trials(X, y, 4, seeds=[5, 0, 9], method=method, **quick(method))
    alone = seqatt.select(X, y, 4, seed=0, method=method, **quick(method))
    assert trials[1].indices.tolist() == alone.indices.tolist()
    assert trials[1].scores.tolist() == alone.scores.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", INFORMED)
@pytest.mark.parametrize("task", TASKS)
def test_the_relevant_features_are_found(method, task):
    X, y = linear_problem(task)
    options = {"epochs": 150} if method in PENALISED else {}  # instead of their default of about 850
    assert set(seqatt.select(X, y, 2, method=method, **options).indices) == {1, 4}


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in INFORMED if name not in UNIVARIATE])
def test_a_duplicated_column_is_not_selected_before_another_relevant_one(method):
    X, y = linear_problem("regression")
    X[:, 0] = X[:, 1]
    selected = set(seqatt.select(X, y, 2, method=method).indices.tolist())
    assert 4 in selected
    assert len(selected & {0, 1}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_the_summary_is_one_line(method):
    summary = all_methods()[method].summary
    assert 20 < len(summary) < 80
    assert "\n" not in summary


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_option_is_an_error(method, problem):
    with pytest.raises(TypeError, match="no option 'epoch'"):
        seqatt.select(*problem, 2, method=method, epoch=3)
