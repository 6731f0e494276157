"""The first j of the selected features are a selection of j: the order is that of usefulness on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.training.trial_group import TrialGroup


@pytest.fixture
def orders(monkeypatch):
    """The order of selection, recorded before features are ordered by usefulness."""
    recorded = []
    order_by_usefulness = TrialGroup._order_by_usefulness

    def record(group, pool):
        recorded.append([list(order) for order in group.state.order])
        order_by_usefulness(group, pool)

    monkeypatch.setattr(TrialGroup, "_order_by_usefulness", record)
    return recorded


def test_the_useful_features_come_first_whatever_k_is():
    X, y = linear_problem("regression", features=12)
    for k in (2, 4, 8, 12):
        assert sorted(seqatt.select(X, y, k, epochs=40).indices[:2].tolist()) == [1, 4]


def test_the_order_changes_neither_the_set_nor_the_ranks_of_the_other_features(orders):
    X, y = linear_problem("binary", features=12)
    selection = seqatt.select(X, y, 6, epochs=40)
    ((selected,),) = orders
    assert sorted(selection.indices.tolist()) == sorted(selected)
    assert selection.ranking[selection.indices].tolist() == [1, 2, 3, 4, 5, 6]
    assert len(selection.scores) == 6
    assert np.isfinite(selection.scores).all()


@pytest.mark.parametrize("options", [{"recipe": "paper"}, {"recipe": "algorithm_1"}, {"ensemble": 1}])
def test_without_held_out_rows_and_in_the_paper_features_are_in_the_order_of_selection(orders, options):
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 3, epochs=20, **options)
    assert not orders
    if "recipe" in options:
        assert selection.features == [name for phase in selection.history for name in phase["taken"]]


def test_constant_features_come_last():
    X, y = linear_problem("regression")
    X[:, [0, 3]] = 1.0
    assert set(seqatt.select(X, y, 8, epochs=20).indices[6:].tolist()) == {0, 3}


def test_the_order_does_not_depend_on_the_number_of_threads():
    X, y = linear_problem("binary")
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(seqatt.select(X, y, 6, epochs=20).features)
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]
