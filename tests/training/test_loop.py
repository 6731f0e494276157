"""The training loop's promises, most of them named after bugs of other implementations."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.masks import MASKS, SoftmaxMask
from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")
QUICK = {"epochs": 5, "hidden": (8,)}


def state(trials: int = 1, features: int = 5, constant: tuple[int, ...] = ()) -> SelectionState:
    mask = np.zeros(features, dtype=bool)
    mask[list(constant)] = True
    return SelectionState(trials, mask, CPU)


@pytest.mark.parametrize("features_per_phase", range(1, 9))
@pytest.mark.parametrize("replacement", [0, 2])
def test_taking_p_a_phase_gives_exactly_k_for_every_p(features_per_phase, replacement):
    X, y = linear_problem("binary", rows=50, features=12)
    selection = seqatt.select(
        X, y, 8, features_per_phase=features_per_phase, replacement=replacement, **QUICK
    )
    assert len(set(selection.indices.tolist())) == 8


def test_the_first_choice_comes_from_trained_logits():
    X, y = linear_problem("regression")
    for seed in range(5):
        first = seqatt.select(X, y, 1, seed=seed).history
        scores = next(entry for entry in first if entry["taken"])["scores"]
        assert max(scores.values()) - min(scores.values()) > 0.01


def test_kept_features_weigh_one_and_never_more():
    gate, chosen = AttentionGate(1, 5, SoftmaxMask(), 1e-2, CPU), state()
    chosen.take(np.array([[0.0, 3, 1, 2, 0]]), 2)
    gate.logits.copy_(torch.tensor([[9.0, 9, 9, 9, 9]]))
    gate.refresh(chosen)
    weights = gate.weights[0]
    assert weights[[1, 3]].tolist() == [1, 1]
    torch.testing.assert_close(weights[[0, 2, 4]].sum(), torch.tensor(1.0))


def test_a_feature_is_never_chosen_twice_and_ties_go_to_the_lowest_index():
    chosen = state()
    for _ in range(5):
        chosen.take(np.zeros((1, 5)), 1)
    assert chosen.order == [[0, 1, 2, 3, 4]]


def test_constant_features_wait_until_nothing_else_is_left():
    chosen = state(constant=(0, 2))
    assert chosen.take(np.array([[9.0, 1, 8, 0, 0.5]]), 3) == [[1, 4, 3]]
    assert chosen.blocked[0, [0, 2]].tolist() == [0, 0]
    assert chosen.take(np.zeros((1, 5)), 2) == [[0, 2]]


def test_drop_lets_go_of_the_least_harmful():
    chosen = state()
    chosen.take(np.array([[5.0, 4, 3, 2, 1]]), 3)
    assert chosen.drop(np.array([[0.9, 0.1, 0.5]]), 1) == [[1]]
    assert chosen.order == [[0, 2]]
    assert chosen.selected[0].tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("name", list(MASKS))
def test_resetting_the_logits_resets_the_optimizers_moments(name):
    gate, chosen = AttentionGate(1, 5, MASKS[name], 1e-2, CPU), state()
    fresh = copy.deepcopy(gate)
    grad = torch.tensor([[1.0, -1, 0.5, 0, 2]])
    for _ in range(7):
        gate.refresh(chosen)
        gate.update(grad, chosen)
    assert not torch.equal(gate.logits, fresh.logits)
    gate.reset()
    for one in (gate, fresh):
        one.refresh(chosen)
        one.update(grad, chosen)
    torch.testing.assert_close(gate.logits, fresh.logits, rtol=0, atol=0)


@pytest.mark.parametrize("name", list(MASKS))
def test_every_mask_finds_the_planted_features(name):
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, mask=name).indices) == {1, 4}


def test_algorithm_1_as_printed_finds_them_too():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, 2, one_pass=False, epochs=300)
    assert set(selection.indices) == {1, 4}
    assert len({entry["steps"] for entry in selection.history}) == 1
    assert len(selection.history) == 2


def test_the_models_weights_may_start_afresh_too():
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, reset_model=True).indices) == {1, 4}


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
def test_the_built_in_network_can_be_shaped(network):
    X, y = linear_problem("regression")
    assert set(seqatt.select(X, y, 2, **network).indices) == {1, 4}


class Gated(nn.Module):
    """A module with branches, buffers, dropout and a batch norm inside."""

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


def test_any_module_loss_and_optimizer():
    X, y = linear_problem("regression")
    torch.manual_seed(0)
    selection = seqatt.select(
        X,
        y,
        2,
        model=Gated(),
        loss=lambda out, y: nn.functional.huber_loss(out, y, reduction="none"),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-3),
    )
    assert set(selection.indices) == {1, 4}
    assert selection.settings["model"] == "Gated"
    json.dumps(selection.settings)


def test_a_users_module_is_left_as_it_was():
    X, y = linear_problem("regression")
    model = Gated()
    before = copy.deepcopy(model.state_dict())
    seqatt.select(X, y, 2, model=model, epochs=1)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])


def test_a_function_may_make_the_module_and_the_seed_rules_it():
    X, y = linear_problem("multiclass")

    def make(columns: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(columns, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, outputs))

    torch.manual_seed(1)
    company = seqatt.select_trials(X, y, 3, seeds=[0, 1], model=make, epochs=5)
    torch.manual_seed(2)
    alone = seqatt.select(X, y, 3, seed=1, model=make, epochs=5)
    assert company[1].scores.tolist() == alone.scores.tolist()
    assert company[0].scores.tolist() != alone.scores.tolist()


def test_two_outputs_serve_a_binary_target(problem):
    assert set(seqatt.select(*problem, 2, model=nn.Linear(8, 2)).indices) == {1, 4}


FITTING = [
    (nn.Linear(8, 1), nn.BCEWithLogitsLoss()),
    (nn.Linear(8, 1), nn.MSELoss()),
    (nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)), nn.BCEWithLogitsLoss()),
    (nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)), nn.MSELoss()),
    (nn.Linear(8, 2), nn.CrossEntropyLoss()),
    (None, nn.BCEWithLogitsLoss()),
    (None, nn.CrossEntropyLoss()),
]


@pytest.mark.parametrize(("model", "loss"), FITTING)
def test_targets_come_in_the_shape_of_the_outputs(problem, model, loss):
    selection = seqatt.select(*problem, 2, model=model, loss=loss)
    assert set(selection.indices) == {1, 4}
    assert selection.history[0]["loss"] > 0


def test_the_callers_randomness_and_threads_are_left_alone(problem):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    seqatt.select(*problem, 2, batch_norm=True, dropout=0.2, epochs=2)
    torch.testing.assert_close(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_seeds_matter():
    X, y = linear_problem("multiclass", rows=500)
    a, b = seqatt.select_trials(X, y, 4, seeds=[0, 1], **QUICK)
    assert a.scores.tolist() != b.scores.tolist()


def test_history_tells_every_phase():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 4, replacement=1, warmup=0.2)
    steps = sum(entry["steps"] for entry in selection.history)
    assert steps == selection.settings["steps"]
    assert selection.history[0]["sees"] == "all"
    held: list[str] = []
    for entry in selection.history:
        if entry["scores"] is not None:
            assert set(entry["scores"]) == set(selection.names) - set(held)
            assert list(entry["scores"].values()) == sorted(entry["scores"].values(), reverse=True)
        held = [f for f in held if f not in entry["dropped"]] + entry["taken"]
        assert np.isfinite(entry["loss"])
        assert entry["seconds"] >= 0
    assert held == selection.features


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_finds_what_the_cpu_finds():
    for task in ("binary", "multiclass", "regression"):
        X, y = linear_problem(task)
        for selection in seqatt.select_trials(X, y, 2, seeds=range(3), device="cuda"):
            assert set(selection.indices) == {1, 4}


@pytest.mark.parametrize("replacement", [0, 3, None])
def test_every_choice_has_a_step_however_short_the_training(replacement):
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 6, epochs=0.001, batch_size=300, warmup=0.5, replacement=replacement)
    assert all(entry["steps"] > 0 for entry in selection.history if entry["taken"])
    assert len(set(selection.indices.tolist())) == 6
