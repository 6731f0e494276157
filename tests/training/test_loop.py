"""The training loop; many of these tests are for bugs of other implementations."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.registry import get_method
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import MASKS, SoftmaxMask
from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")
QUICK = {"epochs": 5, "hidden": (8,)}


def make_state(trials: int = 1, features: int = 5, constant: tuple[int, ...] = ()) -> SelectionState:
    is_constant = np.zeros(features, dtype=bool)
    is_constant[list(constant)] = True
    return SelectionState(trials, is_constant, CPU)


@pytest.mark.parametrize("features_per_phase", range(1, 9))
@pytest.mark.parametrize("replacement", [0, 2])
def test_exactly_k_features_are_selected_for_any_features_per_phase(features_per_phase, replacement):
    X, y = linear_problem("binary", rows=50, features=12)
    selection = seqatt.select(
        X, y, 8, features_per_phase=features_per_phase, replacement=replacement, **QUICK
    )
    assert len(set(selection.indices.tolist())) == 8


@pytest.mark.slow
def test_the_first_feature_is_selected_from_trained_logits():
    X, y = linear_problem("regression")
    for seed in range(5):
        history = seqatt.select(X, y, 1, seed=seed).history
        scores = next(entry for entry in history if entry["taken"])["scores"]
        assert max(scores.values()) - min(scores.values()) > 0.01


def test_selected_features_have_weight_one():
    gate, state = AttentionGate(1, 5, SoftmaxMask(), 1e-2, CPU), make_state()
    state.take(np.array([[0.0, 3, 1, 2, 0]]), 2)
    gate.logits.copy_(torch.tensor([[9.0, 9, 9, 9, 9]]))
    gate.refresh(state)
    weights = gate.weights[0]
    assert weights[[1, 3]].tolist() == [1, 1]
    torch.testing.assert_close(weights[[0, 2, 4]].sum(), torch.tensor(1.0))


def test_a_feature_is_never_selected_twice_and_ties_go_to_the_lowest_index():
    state = make_state()
    for _ in range(5):
        state.take(np.zeros((1, 5)), 1)
    assert state.order == [[0, 1, 2, 3, 4]]


def test_constant_features_are_selected_only_when_no_others_are_left():
    state = make_state(constant=(0, 2))
    assert state.take(np.array([[9.0, 1, 8, 0, 0.5]]), 3) == [[1, 4, 3]]
    assert state.blocked[0, [0, 2]].tolist() == [0, 0]
    assert state.take(np.zeros((1, 5)), 2) == [[0, 2]]


def test_drop_removes_the_least_useful_feature():
    state = make_state()
    state.take(np.array([[5.0, 4, 3, 2, 1]]), 3)
    assert state.drop(np.array([[0.9, 0.1, 0.5]])) == [1]
    assert state.order == [[0, 2]]
    assert state.selected[0].tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("name", list(MASKS))
def test_resetting_the_logits_resets_the_optimizers_moments(name):
    gate, state = AttentionGate(1, 5, MASKS[name], 1e-2, CPU), make_state()
    fresh = copy.deepcopy(gate)
    grad = torch.tensor([[1.0, -1, 0.5, 0, 2]])
    for _ in range(7):
        gate.refresh(state)
        gate.update(grad, state)
    assert not torch.equal(gate.logits, fresh.logits)
    gate.reset()
    for one in (gate, fresh):
        one.refresh(state)
        one.update(grad, state)
    torch.testing.assert_close(gate.logits, fresh.logits, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MASKS))
def test_every_mask_finds_the_relevant_features(name):
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, mask=name).indices) == {1, 4}


def test_algorithm_1_as_printed_finds_the_relevant_features():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, 2, one_pass=False, epochs=300)
    assert set(selection.indices) == {1, 4}
    assert len({entry["steps"] for entry in selection.history}) == 1
    assert len(selection.history) == 2


def test_the_relevant_features_are_found_if_each_phase_resets_the_model():
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, reset_model=True).indices) == {1, 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [
        {"hidden": (32, 16)},
        {"activation": "gelu"},
        {"dropout": 0.2},
        {"batch_norm": True},
        {"hidden": ()},
        {"temperature": 0.5},
    ],
)
def test_the_built_in_network_can_be_configured(network):
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, **network).indices) == {1, 4}


class CustomModule(nn.Module):
    """A module with a branch, buffers, dropout and batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.inner = nn.Linear(8, 16)
        self.outer = nn.Linear(16, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x) if len(x) > 1 else x
        if x.mean() > 100:
            return self.outer(self.inner(x) * 0)
        return self.outer(self.drop(torch.relu(self.inner(x)))).squeeze(-1)


@pytest.mark.slow
def test_a_user_can_bring_a_module_a_loss_and_an_optimizer():
    X, y = linear_problem("regression")
    torch.manual_seed(0)
    selection = seqatt.select(
        X,
        y,
        2,
        model=CustomModule(),
        loss=lambda out, y: nn.functional.huber_loss(out, y, reduction="none"),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-3),
        epochs=80,
    )
    assert set(selection.indices) == {1, 4}
    assert selection.settings["model"] == "CustomModule"
    json.dumps(selection.settings)


def test_a_users_module_is_not_modified():
    X, y = linear_problem("regression")
    model = CustomModule()
    before = copy.deepcopy(model.state_dict())
    seqatt.select(X, y, 2, model=model, epochs=1)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])


def test_the_seed_determines_the_weights_of_a_module_made_by_a_function():
    X, y = linear_problem("multiclass")

    def make(columns: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(columns, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, outputs))

    torch.manual_seed(1)
    trials = seqatt.select_trials(X, y, 3, seeds=[0, 1], model=make, epochs=5)
    torch.manual_seed(2)
    alone = seqatt.select(X, y, 3, seed=1, model=make, epochs=5)
    assert trials[1].scores.tolist() == alone.scores.tolist()
    assert trials[0].scores.tolist() != alone.scores.tolist()


def test_a_model_of_a_binary_target_may_have_two_outputs(problem):
    torch.manual_seed(0)
    assert set(seqatt.select(*problem, 2, model=nn.Linear(8, 2), epochs=80).indices) == {1, 4}


MODELS_AND_LOSSES = [
    (nn.Linear(8, 1), nn.BCEWithLogitsLoss()),
    (nn.Linear(8, 1), nn.MSELoss()),
    (nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)), nn.BCEWithLogitsLoss()),
    (nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)), nn.MSELoss()),
    (nn.Linear(8, 2), nn.CrossEntropyLoss()),
    (None, nn.BCEWithLogitsLoss()),
    (None, nn.CrossEntropyLoss()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "loss"), MODELS_AND_LOSSES)
def test_a_loss_gets_targets_in_the_shape_of_the_outputs(problem, model, loss):
    torch.manual_seed(0)
    if model is not None:  # a model starts from the weights it has
        model.apply(lambda module: module.reset_parameters() if isinstance(module, nn.Linear) else None)
    selection = seqatt.select(*problem, 2, model=model, loss=loss, epochs=80)
    assert set(selection.indices) == {1, 4}
    assert selection.history[0]["loss"] > 0


def test_the_callers_random_state_and_number_of_threads_are_restored(problem):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    seqatt.select(*problem, 2, batch_norm=True, dropout=0.2, epochs=2)
    torch.testing.assert_close(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_different_seeds_give_different_scores():
    X, y = linear_problem("multiclass", rows=500)
    a, b = seqatt.select_trials(X, y, 4, seeds=[0, 1], **QUICK)
    assert a.scores.tolist() != b.scores.tolist()


def test_the_history_records_every_phase():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 4, replacement=1, warmup=0.2)
    steps = sum(entry["steps"] for entry in selection.history)
    assert steps == selection.settings["steps"]
    assert selection.history[0]["sees"] == "all"
    selected: list[str] = []
    for entry in selection.history:
        if entry["scores"] is not None:
            assert set(entry["scores"]) == set(selection.names) - set(selected)
            assert list(entry["scores"].values()) == sorted(entry["scores"].values(), reverse=True)
        selected = [f for f in selected if f not in entry["dropped"]] + entry["taken"]
        assert np.isfinite(entry["loss"])
        assert entry["seconds"] >= 0
    assert set(selected) == set(selection.features)  # which are then ordered by usefulness


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_relevant_features_are_found_on_cuda():
    for task in ("binary", "multiclass", "regression"):
        X, y = linear_problem(task)
        for selection in seqatt.select_trials(X, y, 2, seeds=range(3), device="cuda"):
            assert set(selection.indices) == {1, 4}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_cuda_the_order_of_a_table_in_memory_makes_no_difference():
    X, y = linear_problem("binary")
    data = read_table_data(X, y)
    columns = replace(data, columns=np.asfortranarray(data.columns))
    selected = []
    for table in (data, columns):
        request = SelectionRequest(table, 2, [0], AttentionOptions(), torch.device("cuda"))
        selected += get_method("sequential_attention").select(request, make_plan(request), print)
    assert selected[0].order == selected[1].order
    assert selected[0].importance == selected[1].importance


@pytest.mark.parametrize("replacement", [0, 3, None])
def test_every_phase_that_selects_has_a_step_however_short_the_training(replacement):
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 6, epochs=0.001, batch_size=300, warmup=0.5, replacement=replacement)
    assert all(entry["steps"] > 0 for entry in selection.history if entry["taken"])
    assert len(set(selection.indices.tolist())) == 6
