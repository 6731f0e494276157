"""Every method keeps every promise. A new row in METHODS is tested here by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms import registry

METHODS = seqatt.methods()
CHOOSERS = [name for name in METHODS if name != "random"]
JUDGE_EACH_ALONE = ("mutual_information", "f_test")  # to whom a copy is worth what the original is
PENALISED = [name for name in METHODS if "penalty" in registry.METHODS[name].options.__dataclass_fields__]
TASKS = ["binary", "multiclass", "multilabel", "regression", "multi-output"]


def quick(method: str, **more) -> dict:
    """Options that make a method fast where its answer is not what is tested, if it has them."""
    own = registry.METHODS[method].options.__dataclass_fields__
    short = {"epochs": 2, "hidden": (8,), "trees": 20, "iterations": 5}
    return {name: value for name, value in (short | more).items() if name in own}


def check(selection: seqatt.Selection, k: int, features: int) -> None:
    assert len(selection.indices) == len(set(selection.indices.tolist())) == k
    assert selection.support.sum() == k
    assert selection.support[selection.indices].all()
    assert sorted(selection.ranking.tolist()) == list(range(1, features + 1))
    assert selection.ranking[selection.indices].tolist() == list(range(1, k + 1))
    assert [selection.names[i] for i in selection.indices] == selection.features
    assert len(selection.scores) == k


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("k", [1, 8])
def test_exactly_k_distinct_features(method, task, k):
    X, y = linear_problem(task, rows=60)
    check(seqatt.select(X, y, k, method=method, **quick(method)), k, 8)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_of_one_row(method):
    X, y = linear_problem("binary", rows=30)
    check(seqatt.select(X, y, 3, method=method, **quick(method, batch_size=1)), 3, 8)


@pytest.mark.parametrize("method", METHODS)
def test_constant_features_come_last(method):
    X, y = linear_problem("binary", rows=60)
    X[:, [0, 5]] = 3.25
    selection = seqatt.select(X, y, 7, method=method, **quick(method))
    check(selection, 7, 8)
    assert set(selection.indices[:6]) == {1, 2, 3, 4, 6, 7}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
def test_one_seed_gives_one_answer(method, task):
    X, y = linear_problem(task, rows=60)
    once, again = (seqatt.select(X, y, 4, method=method, seed=3, **quick(method)) for _ in range(2))
    assert once.indices.tolist() == again.indices.tolist()
    assert once.scores.tolist() == again.scores.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_columns_give_the_same_named_answer(method):
    X, y = linear_problem("multiclass", rows=100)
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    shuffled = frame[list("cahbgdfe")]
    a, b = (seqatt.select(f, y, 5, method=method, **quick(method)) for f in (frame, shuffled))
    assert a.features == b.features
    np.testing.assert_array_equal(a.scores, b.scores)
    assert [frame.columns[i] for i in a.indices] == [shuffled.columns[i] for i in b.indices]


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_alone_and_in_company_are_the_same(method):
    X, y = linear_problem("multiclass", rows=500)
    company = seqatt.select_trials(X, y, 4, seeds=[5, 0, 9], method=method, **quick(method))
    alone = seqatt.select(X, y, 4, seed=0, method=method, **quick(method))
    assert company[1].indices.tolist() == alone.indices.tolist()
    assert company[1].scores.tolist() == alone.scores.tolist()


@pytest.mark.parametrize("method", CHOOSERS)
@pytest.mark.parametrize("task", TASKS)
def test_planted_support_is_found(method, task):
    X, y = linear_problem(task)
    enough = {"epochs": 150} if method in PENALISED else {}  # of their default of some 850
    assert set(seqatt.select(X, y, 2, method=method, **enough).indices) == {1, 4}


@pytest.mark.parametrize("method", [name for name in CHOOSERS if name not in JUDGE_EACH_ALONE])
def test_a_duplicated_column_is_not_chosen_before_the_other_signal(method):
    X, y = linear_problem("regression")
    X[:, 0] = X[:, 1]
    chosen = set(seqatt.select(X, y, 2, method=method).indices.tolist())
    assert 4 in chosen
    assert len(chosen & {0, 1}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_one_line_says_what_it_does(method):
    summary = registry.METHODS[method].summary
    assert 20 < len(summary) < 80
    assert "\n" not in summary


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_option_is_an_error(method, problem):
    with pytest.raises(TypeError, match="no option 'epoch'"):
        seqatt.select(*problem, 2, method=method, epoch=3)
