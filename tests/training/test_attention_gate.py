"""The gate of Sequential Attention, one step at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import MASKS, UNNORMALISED_DECAY, make_mask
from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")


def make_gate(mask: str, lr: float = 1e-2) -> tuple[AttentionGate, SelectionState]:
    state = SelectionState(1, np.zeros(4, dtype=bool), CPU)
    gate = AttentionGate(1, 4, MASKS[mask], lr, CPU)
    gate.refresh(state)
    return gate, state


@pytest.mark.parametrize("mask", list(MASKS))
def test_the_next_step_sees_the_weights_of_the_updated_logits(mask):
    gate, state = make_gate(mask)
    before = gate.weights.clone()
    gate.update(torch.tensor([[-1.0, 1.0, 0.5, 0.0]]), state)
    after = gate.weights.clone()
    assert after[0, 0] > before[0, 0]  # a larger weight would have made the loss smaller
    assert after[0, 1] < before[0, 1]
    gate.refresh(state)
    assert torch.equal(gate.weights, after)


@pytest.mark.parametrize("mask", list(MASKS))
def test_only_the_logits_of_unnormalised_masks_decay(mask):
    gate, state = make_gate(mask)
    for _ in range(10):
        gate.update(torch.zeros(1, 4), state)
    decay = UNNORMALISED_DECAY if mask in ("l1", "l2") else 0.0
    expected = MASKS[mask].initial * (1 - decay * 1e-2) ** 10
    torch.testing.assert_close(gate.logits, torch.full((1, 4), expected))


@pytest.mark.parametrize("mask", [name for name in MASKS if name != "softmax"])
def test_a_negative_logit_scores_by_its_size_as_its_weight_does(mask):
    gate, state = make_gate(mask)
    gate.logits.copy_(torch.tensor([[0.1, -0.9, 0.5, 0.2]]))
    gate.refresh(state)
    assert gate.scores().argmax() == gate.weights.argmax() == 1
    assert gate.scores().argsort().tolist() == gate.weights.argsort().tolist()


def test_logits_of_selected_features_get_no_gradient():
    gate, state = make_gate("softmax")
    state.take(np.array([[0.0, 1, 0, 0]]), 1)
    gate.refresh(state)
    gate.update(torch.tensor([[0.3, -9.0, 0.1, -0.2]]), state)
    assert gate.logits[0, 1] == 0
    assert gate.weights[0, 1] == 1


def test_the_temperature_that_is_given_is_that_of_the_mask():
    X, y = linear_problem("regression", rows=80)
    logits = torch.tensor([[1.0, 0.0]])
    shares = [make_mask("softmax", t).weights(logits, torch.zeros(1, 2))[0, 0] for t in (0.5, 1.0, 2.0)]
    expected = [1 / (1 + math.exp(-1 / t)) for t in (0.5, 1.0, 2.0)]
    assert shares == pytest.approx(expected)
    with pytest.raises(ValueError, match="temperature: only the softmax mask has one"):
        make_mask("l1", 0.5)
    scores = [seqatt.select(X, y, 2, recipe="paper", epochs=400, temperature=t).scores for t in (1.0, 4.0)]
    assert not np.allclose(*scores, rtol=0.1)
