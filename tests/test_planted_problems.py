"""What the docs promise of the default, on small generated problems whose useful features are known."""

import warnings

import numpy as np
import pytest
from experiments.planted_problems import KINDS, make_problem
from sklearn.datasets import load_breast_cancer

import seqatt


def found(kind, seed, **options):
    problem = make_problem(kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = seqatt.select(problem.X, problem.y, problem.k, seed=seed, task=problem.task, **options)
    return problem.count_found(selection.indices.tolist()), problem.k


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["near copies", "exact copies"])
def test_copies_of_a_selected_feature_are_not_selected(kind):
    counts, signals = zip(*(found(kind, seed) for seed in range(2)), strict=True)
    assert sum(counts) >= sum(signals) - 1  # 53 of 54 in nine draws of near copies


@pytest.mark.slow
def test_redundant_copies_of_real_columns_are_not_selected():
    X, y = load_breast_cancer(return_X_y=True)
    for seed in range(3):
        copied = [27, 20, 21]
        selection = seqatt.select(np.column_stack([X, X[:, copied], -X[:, copied]]), y, 6, seed=seed)
        originals = [copied[(i - 30) % 3] if i >= 30 else i for i in selection.indices.tolist()]
        assert len(set(originals)) == 6


@pytest.mark.slow
def test_features_are_preferred_to_columns_that_stand_for_their_sum():
    count, k = found("proxies", 1)
    assert count == k


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["xor", "wide interactions", "parity of three", "suppressor", "copies and an interaction"]
)
def test_features_that_matter_only_together_are_found(kind):
    count, k = found(kind, 0)
    assert count == k


@pytest.mark.slow
def test_features_of_even_functions_are_found():
    count, k = found("even functions", 1)
    assert count == k


def test_features_are_found_in_two_dozen_rows():
    count, k = found("few rows", 0)
    assert count == k


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_the_same_for_the_same_seed_and_its_signals_are_columns(kind):
    problem, again = make_problem(kind, 1), make_problem(kind, 1)
    np.testing.assert_array_equal(np.asarray(problem.X), np.asarray(again.X))
    np.testing.assert_array_equal(problem.y, again.y)
    columns = [column for signal in problem.signals for column in signal]
    assert len(set(columns)) == len(columns)
    assert max(columns) < problem.X.shape[1]
    assert problem.count_found(columns) == problem.k


def test_a_signal_counts_once_however_many_of_its_copies_are_selected():
    problem = make_problem("near copies", 0)
    assert problem.count_found(sorted(problem.signals[0])[:6]) == 1
