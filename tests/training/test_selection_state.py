"""The selected features: what the models of each trial may see, and what happens to constant features."""

from __future__ import annotations

import json

import numpy as np
import torch

from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")


def make_state(trials: int = 1, constant: tuple[int, ...] = (), repeats: int = 1) -> SelectionState:
    is_constant = np.zeros(5, dtype=bool)
    is_constant[list(constant)] = True
    return SelectionState(trials, is_constant, CPU, repeats)


def test_constant_features_get_no_attention():
    state = make_state(constant=(0, 2))
    assert state.blocked.tolist() == [[-np.inf, 0, -np.inf, 0, 0]]
    state.take(np.array([[0.0, 0, 0, 1, 0]]), 1)
    assert state.blocked.tolist() == [[-np.inf, 0, -np.inf, -np.inf, 0]]


def test_constant_features_are_dropped_before_useful_ones_and_before_useless_ones():
    state = make_state(constant=(0, 2))
    state.take(np.zeros((1, 5)), 5)
    usefulness = {1: 0.3, 3: 0.1, 4: 0.2, 0: 9.0, 2: 9.0}
    dropped = [state.drop(np.array([[usefulness[f] for f in state.order[0]]]))[0] for _ in range(3)]
    assert dropped == [0, 2, 3]
    assert state.order == [[1, 4]]


def test_trials_that_see_different_rows_have_constant_features_of_their_own():
    constant = np.array([[True, False, False, False, False], [False, False, False, False, True]])
    state = SelectionState(2, constant, CPU, 2)
    assert torch.isinf(state.blocked).float().argmax(1).tolist() == [0, 0, 4, 4]
    scores = np.array([[5.0, 4, 3, 2, 1], [1, 2, 3, 4, 5]])
    assert state.take(scores, 2) == [[1, 2], [3, 2]]
    assert [state.rank_unselected(trial, scores[trial])[-1] for trial in range(2)] == [0, 4]
    state.take(scores, 3)
    assert [order[-1] for order in state.order] == [0, 4]
    assert state.drop(np.full((2, 5), 9.0)) == [0, 4]


def test_the_models_of_a_trial_are_next_to_each_other_and_see_its_features():
    state = make_state(trials=2, repeats=3)
    state.take(np.array([[0.0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]), 1)
    assert state.selected.argmax(1).tolist() == [1, 1, 1, 3, 3, 3]
    assert torch.isinf(state.blocked).float().argmax(1).tolist() == [1, 1, 1, 3, 3, 3]


def test_views_of_some_models_change_with_the_selection():
    state = make_state(trials=2)
    second = state.of_models(slice(1, 2))
    state.take(np.array([[1.0, 0, 0, 0, 0], [0, 0, 1, 0, 0]]), 1)
    assert second.selected.tolist() == [[0, 0, 1, 0, 0]]


def test_a_saved_state_is_restored_with_its_tensors():
    state = make_state(trials=2, constant=(4,))
    state.take(np.array([[0.0, 3, 2, 1, 0], [1, 0, 2, 3, 0]]), 3)
    state.drop(np.array([[0.2, 0.1, 0.3], [0.1, 0.2, 0.3]]))
    restored = make_state(trials=2, constant=(4,))
    restored.load_dict(json.loads(json.dumps(state.to_dict())))
    assert restored.order == state.order
    assert torch.equal(restored.selected, state.selected)
    assert torch.equal(restored.blocked, state.blocked)
    scores = np.zeros(5)
    for trial in range(2):
        assert restored.rank_unselected(trial, scores) == state.rank_unselected(trial, scores)


def test_a_saved_state_does_not_change_when_training_continues():
    state = make_state()
    saved = state.to_dict()
    state.take(np.zeros((1, 5)), 2)
    assert saved == {"order": [[]], "dropped": [[]]}
