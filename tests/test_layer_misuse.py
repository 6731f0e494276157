"""Misuse of the layer ``SequentialAttention`` is reported, and what happens when training is cut short or resumed."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from tests.test_layer import data, network, train
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from seqatt import SequentialAttention


def loop(
    attention: SequentialAttention, parameters, steps: int, x=None, use: bool = True, advance: bool = True
) -> None:
    torch.manual_seed(0)
    inputs, y = data()
    x = inputs if x is None else x
    model = network()
    optimizer = torch.optim.Adam(parameters(model), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(attention(x) if use else x), y).backward()
        optimizer.step()
        if advance:
            attention.advance()


@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame])
def test_an_input_that_is_no_tensor_is_an_error(convert):
    with pytest.raises(TypeError, match=r"x: must be a tensor, got (ndarray|DataFrame); .*torch\.as_tensor"):
        SequentialAttention(8, k=5, total_steps=100)(convert(np.zeros((4, 8))))


def test_logits_in_no_optimizer_are_an_error_at_the_first_selection():
    attention = SequentialAttention(8, k=5, total_steps=100)
    with pytest.raises(RuntimeError, match=r"no optimizer .* attention\.parameters\(\)"):
        loop(attention, lambda model: model.parameters(), 100)
    assert attention.selected == []
    assert not attention.finished


def test_advance_without_training_is_an_error():
    attention = SequentialAttention(8, k=2, total_steps=20)
    for _ in range(10):
        attention.advance()
    with pytest.raises(RuntimeError, match="unchanged after 11 steps"):
        attention.advance()


def test_a_layer_that_the_loss_does_not_depend_on_is_warned_about():
    attention = SequentialAttention(8, k=2, total_steps=20, blend_rows=False)
    parameters = lambda model: [*model.parameters(), *attention.parameters()]  # noqa: E731
    with pytest.warns(UserWarning, match="Does the loss depend on the output of this layer") as caught:
        loop(attention, parameters, 20, use=False)
    assert caught[0].filename == __file__


def test_the_last_candidate_needs_no_training():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention = SequentialAttention(8, k=8, total_steps=100)
        train(attention, 100)
    assert sorted(attention.selected) == list(range(8))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("blend_rows", [None, True])
def test_inputs_that_are_not_finite_are_an_error_that_names_the_column(value, blend_rows):
    x = data()[0].clone()
    x[3, 5] = value
    attention = SequentialAttention(8, k=2, total_steps=100, blend_rows=blend_rows)
    with pytest.raises(ValueError, match=r"x: NaN or infinite values in column 5; .*Replace missing values"):
        loop(attention, lambda model: [*model.parameters(), *attention.parameters()], 100, x)


def test_nan_in_a_later_batch_is_an_error_at_the_next_selection():
    attention = SequentialAttention(8, k=2, total_steps=100)
    model = train(attention, 20)
    x = data()[0].clone()
    x[3, 5] = torch.nan
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model(x).sum().backward()
    optimizer.step()
    for _ in range(34):
        attention.advance()
    with pytest.raises(RuntimeError, match="logits: not finite at step 55"):
        attention.advance()


def test_a_loop_that_never_calls_advance_is_warned_about_when_the_first_selection_is_due():
    attention = SequentialAttention(8, k=2, total_steps=100)
    parameters = lambda model: [*model.parameters(), *attention.parameters()]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop(attention, parameters, 54, advance=False)
    with pytest.warns(UserWarning, match=r"55 steps and advance\(\) was never called") as caught:
        loop(attention, parameters, 200, advance=False)
    assert len(caught) == 1


def test_a_correct_loop_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention = SequentialAttention(8, k=3, total_steps=100)
        train(attention, 120)
    assert attention.finished


@pytest.mark.parametrize("total_steps", [60, 120])
def test_a_state_saved_with_other_total_steps_is_refused(total_steps):
    saved = SequentialAttention(8, k=3, total_steps=90)
    train(saved, 50)
    other = nn.Sequential(SequentialAttention(8, k=3, total_steps=total_steps), network())
    before = copy.deepcopy(other.state_dict())
    state = nn.Sequential(saved, network()).state_dict()
    message = (
        f"total_steps: the saved layer selects within 90 steps, this one within {total_steps}; create it with"
    )
    with pytest.raises(RuntimeError, match=message):
        other.load_state_dict(state)
    assert other[0].selected == []
    assert other[0].steps_done == before["0.steps_done"] == 0


@pytest.mark.parametrize("different", [{"warmup": 0.5}, {"features_per_phase": 2}])
def test_a_state_saved_with_another_schedule_is_refused(different):
    saved = SequentialAttention(8, k=3, total_steps=90)
    train(saved, 50)
    with pytest.raises(RuntimeError, match="the saved layer selects at other steps"):
        SequentialAttention(8, k=3, total_steps=90, **different).load_state_dict(saved.state_dict())


@pytest.mark.parametrize("steps", [0, 90])
def test_a_finished_or_an_untrained_state_loads_whatever_the_total_steps(steps):
    saved = SequentialAttention(8, k=3, total_steps=90)
    train(saved, steps)
    other = SequentialAttention(8, k=3, total_steps=40, features_per_phase=2)
    other.load_state_dict(saved.state_dict())
    assert other.finished == (steps == 90)
    assert other.selected == saved.selected
    train(other, 40)  # an untrained one selects within its own steps
    assert other.finished
    again = SequentialAttention(8, k=3, total_steps=40, features_per_phase=2)
    again.load_state_dict(other.state_dict())
    assert again.selected == other.selected


def test_finish_selects_the_missing_features_by_the_current_logits():
    attention = SequentialAttention(8, k=3, total_steps=300)
    train(attention, 170)
    selected = attention.selected
    assert len(selected) == 1
    logits = attention.logits.detach().clone()
    logits[selected] = -torch.inf
    attention.finish()
    assert attention.selected == selected + logits.argsort(descending=True)[:2].tolist()
    assert {1, 4} <= set(attention.selected)
    assert attention.finished
    train(attention, 200)  # going on changes nothing
    assert len(attention.selected) == 3
    assert attention.weights.sum() == 3


def test_finish_directly_after_a_selection_uses_the_scores_of_that_phase():
    attention = SequentialAttention(8, k=2, total_steps=200)
    train(attention, 110)
    assert len(attention.selected) == 1
    assert (attention.logits == 0).all()
    resumed = SequentialAttention(8, k=2, total_steps=200)
    resumed.load_state_dict(attention.state_dict())
    resumed.finish()
    assert set(resumed.selected) == {1, 4}


def test_finish_during_the_warmup_is_an_error():
    attention = SequentialAttention(8, k=2, total_steps=200)
    train(attention, 10)
    with pytest.raises(RuntimeError, match=r"finish: .* warm-up \(step 20 of 200, now at 10\)"):
        attention.finish()
