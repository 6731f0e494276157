"""Ctrl-C during a selection carries what was selected until then."""

from __future__ import annotations

import pickle
import threading

import pytest
import torch

import seqatt


class PressCtrlC:
    """A loss that raises KeyboardInterrupt in call number ``call``."""

    def __init__(self, call: int) -> None:
        self.call, self.calls = call, 0

    def __call__(self, out, y):
        self.calls += 1
        if self.calls == self.call:
            raise KeyboardInterrupt
        return torch.nn.functional.binary_cross_entropy_with_logits(out, y)


OPTIONS = {"epochs": 2000, "warmup": 0, "replacement": 0, "batch_size": 300, "ensemble": 1, "surplus": 1}


def test_an_interruption_carries_the_features_selected_so_far(problem):
    with pytest.raises(seqatt.SelectionInterrupted, match="interrupted after 2 of 4 features") as caught:
        seqatt.select(*problem, 4, loss=PressCtrlC(1100), **OPTIONS)
    (selection,) = caught.value.selections
    assert set(selection.features) == {"x1", "x4"}
    assert selection.settings["partial"] == "interrupted"
    assert "partial" in repr(selection)
    assert len(selection.history) == 2


def test_an_interruption_is_a_keyboard_interrupt(problem):
    with pytest.raises(KeyboardInterrupt):
        seqatt.select(*problem, 4, loss=PressCtrlC(50), **OPTIONS)


def test_an_interruption_never_carries_more_than_k(problem):
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select(*problem, 2, loss=PressCtrlC(1700), **OPTIONS | {"surplus": 3})
    assert len(caught.value.selections[0].features) == 2


def test_before_training_it_is_python_s_own_interruption(problem, monkeypatch):
    def read(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("seqatt.api.read_data.read_table", read)
    with pytest.raises(KeyboardInterrupt) as caught:
        seqatt.select(*problem, 2)
    assert not isinstance(caught.value, seqatt.SelectionInterrupted)


def test_trials_that_were_finished_are_carried_with_their_seeds(problem, tmp_path):
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select_trials(
            *problem, 2, seeds=[7, 3], loss=PressCtrlC(2300), checkpoint=tmp_path / "c", **OPTIONS
        )
    assert [selection.seed for selection in caught.value.selections] == [7, 3]
    assert [len(selection.features) for selection in caught.value.selections] == [2, 0]


def test_with_several_strengths_of_a_penalty_none_is_carried(problem):
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select(*problem, 2, method="group_lasso", loss=PressCtrlC(100), epochs=200)
    assert caught.value.selections == []


def test_a_partial_selection_is_saved_and_loaded(problem, tmp_path):
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select(*problem, 4, loss=PressCtrlC(1100), **OPTIONS)
    caught.value.selections[0].save(tmp_path / "s.json")
    assert seqatt.Selection.load(tmp_path / "s.json").settings["partial"] == "interrupted"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.selections[0].features == caught.value.selections[0].features


def test_no_thread_is_left_behind(problem):
    before = threading.active_count()
    with pytest.raises(seqatt.SelectionInterrupted):
        seqatt.select(*problem, 2, loss=PressCtrlC(300), **OPTIONS)
    assert threading.active_count() <= before
