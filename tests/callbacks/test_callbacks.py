"""Callbacks see how far a selection is, can stop it, and never change what is selected."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_wine
from tests.support.problems import linear_problem

import seqatt
from seqatt.callbacks import Callback, EarlyStopping
from seqatt.datasets.synthetic import click_log

NAMES = [f"column {i}" for i in range(8)]
QUICK = {"epochs": 30, "ensemble": 2}


class Recorder(Callback):
    """Keeps all states, and stops when ``stops(state)``."""

    def __init__(self, stops_at_phase=lambda state: False, stops_at_batch=lambda state: False):
        self.phases, self.batches, self.ends = [], [], []
        self.stops_at_phase, self.stops_at_batch = stops_at_phase, stops_at_batch

    def on_phase_end(self, state):
        self.phases.append(state)
        if self.stops_at_phase(state):
            state.stop()

    def on_batch(self, state):
        self.batches.append(state)
        if self.stops_at_batch(state):
            state.stop()

    def on_end(self, selection):
        self.ends.append(selection)


@pytest.fixture
def frame():
    X, y = linear_problem("binary")
    return pd.DataFrame(X, columns=NAMES), y


def test_phases_tell_what_the_selection_tells_later(frame):
    recorder = Recorder()
    selection = seqatt.select(*frame, 2, callbacks=[recorder], **QUICK)
    assert [state.phase for state in recorder.phases] == list(range(1, len(selection.history) + 1))
    for state, entry in zip(recorder.phases, selection.history, strict=True):
        assert state.phases == len(selection.history)
        if entry["steps"]:
            assert state.loss == entry["loss"]
        if entry["taken"]:
            assert state.features[-1] == entry["taken"][-1]
            scores = dict(zip(state.names, state.scores, strict=True))
            assert all(
                scores[name] == pytest.approx(value, rel=1e-5) for name, value in entry["scores"].items()
            )
    last = recorder.phases[-1]
    assert (last.features, last.indices) == (selection.features, selection.indices.tolist())
    assert last.held_out_loss == selection.importance["loss"]
    assert (last.share, last.part, last.seed) == (1.0, "selection", 0)
    assert list(last.names) == NAMES
    assert recorder.ends == [selection]


def test_batches_come_in_order_until_all_is_done(frame):
    recorder = Recorder()
    seqatt.select(*frame, 2, callbacks=[recorder], **QUICK)
    shares = [state.share for state in recorder.batches]
    assert len(shares) >= len({state.phase for state in recorder.batches}) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all(state.seconds > 0 for state in recorder.batches)


class Meddler(Callback):
    """Does whatever a user may do."""

    def on_batch(self, state):
        torch.rand(3)
        np.random.default_rng().random()
        state.features.clear()
        state.indices.append(99)

    def on_phase_end(self, state):
        torch.manual_seed(state.phase)
        weight = torch.ones(2, requires_grad=True)
        (weight**2).sum().backward()  # gradients are on, as where the callback was written
        if state.scores is not None:
            with pytest.raises(ValueError, match="read-only"):
                state.scores[0] = 1e9


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "group_lasso"}, {"method": "forest", "epochs": None, "ensemble": None}, {"repeats": 2}],
    ids=str,
)
def test_callbacks_never_change_what_is_selected(frame, options):
    options = {name: value for name, value in (QUICK | options).items() if value is not None}
    if options.get("method") == "group_lasso":
        del options["ensemble"]
    without = seqatt.select(*frame, 3, **options)
    within = seqatt.select(*frame, 3, callbacks=[Meddler()], **options)
    np.testing.assert_array_equal(without.ranking, within.ranking)
    np.testing.assert_array_equal(without.scores, within.scores)
    assert [p["loss"] for p in without.history] == [p["loss"] for p in within.history]


@pytest.mark.parametrize("event", ["stops_at_phase", "stops_at_batch"])
def test_a_stop_returns_what_is_selected_so_far(frame, event):
    recorder = Recorder(**{event: lambda state: len(state.features) == 2})
    selection = seqatt.select(*frame, 4, callbacks=[recorder], **QUICK)
    assert selection.settings["partial"] == "stopped"
    assert "partial" in repr(selection)
    whole = Recorder()
    seqatt.select(*frame, 4, callbacks=[whole], **QUICK)
    assert selection.features == whole.phases[2].features  # a warm-up, then one feature per phase
    assert len(recorder.phases) == 3
    assert recorder.batches[-1].phase == (3 if event == "stops_at_phase" else 4)  # no step after the request
    assert recorder.ends == [selection]


def test_a_stopped_selection_never_has_more_than_k(frame):
    recorder = Recorder(stops_at_phase=lambda state: len(state.features) == 4)  # of a surplus
    assert len(seqatt.select(*frame, 2, callbacks=[recorder], **QUICK).features) == 2


def test_a_stop_when_all_is_selected_changes_nothing(frame):
    for k in (2, 4):  # with exchanges and without
        recorder = Recorder(stops_at_phase=lambda state: state.phase == state.phases)
        selection = seqatt.select(*frame, k, callbacks=[recorder], **QUICK)
        assert "partial" not in selection.settings
        assert selection.features == seqatt.select(*frame, k, **QUICK).features


def test_a_stop_before_the_exchanges_ends_them(frame):
    """They are the last phase."""
    recorder = Recorder(stops_at_phase=lambda state: state.phase == state.phases - 1)
    selection = seqatt.select(*frame, 2, callbacks=[recorder], **QUICK)
    assert selection.settings["partial"] == "stopped"
    assert selection.features == seqatt.select(*frame, 2, exchanges=0, **QUICK).features


def test_a_stop_in_the_test_against_chance_keeps_the_features(frame):
    X, _ = frame
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    recorder = Recorder(stops_at_batch=lambda state: state.part == "test fold 2 of 3")
    selection = seqatt.select(X, noise, 2, callbacks=[recorder], **QUICK)
    assert {state.part for state in recorder.batches} == {"selection", "test fold 1 of 3", "test fold 2 of 3"}
    assert len(selection.features) == 2
    assert selection.chance is None
    assert "partial" not in selection.settings


def test_a_stop_before_anything_is_selected_gives_an_empty_selection(frame, tmp_path):
    recorder = Recorder(stops_at_batch=lambda state: True)
    for options in ({}, {"method": "group_lasso"}, {"method": "forest"}, {"method": "greedy"}, {"fdr": 0.2}):
        options = options if "method" in options else QUICK | options
        selection = seqatt.select(*frame, 2, callbacks=[recorder], **options)
        assert (selection.features, selection.settings["partial"]) == ([], "stopped")
        selection.save(tmp_path / "selection.json")
        assert seqatt.Selection.load(tmp_path / "selection.json").features == []
        selection.report(tmp_path / "page.html")


def test_greedy_selection_has_phases_too(frame):
    recorder = Recorder(stops_at_phase=lambda state: state.phase == 2)
    selection = seqatt.select(*frame, 3, method="greedy", epochs=2, callbacks=[recorder])
    assert [state.phases for state in recorder.phases] == [3, 3]
    assert selection.features == recorder.phases[-1].features
    assert len(selection.features) == 2


def test_the_folds_of_auto_are_parts(frame):
    recorder = Recorder()
    selection = seqatt.select(*frame, "auto", max_k=3, callbacks=[recorder])
    parts = list(dict.fromkeys(state.part for state in recorder.phases))
    assert parts == ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3", "selection"]
    assert recorder.phases[-1].features == selection.features
    stopping = Recorder(stops_at_phase=lambda state: state.part == "fold 2 of 3")
    stopped = seqatt.select(*frame, "auto", max_k=3, forbid=NAMES[:1], callbacks=[stopping])
    assert (stopped.features, stopped.settings["partial"]) == ([], "stopped")
    assert stopped.settings["forbid"] == NAMES[:1]


def test_repeats_are_parts_and_the_finished_pairs_are_the_answer(frame):
    recorder = Recorder(stops_at_phase=lambda state: state.part == "repeat 4 of 6")
    selection = seqatt.select(*frame, 2, repeats=6, callbacks=[recorder], **QUICK)
    assert {state.part for state in recorder.phases} == {f"repeat {i} of 6" for i in (1, 2, 3, 4)}
    assert selection.stability["repeats"] == 2
    assert selection.settings["partial"] == "stopped"


def test_a_race_shows_features_and_no_knockoffs(frame):
    recorder = Recorder()
    seqatt.select(*frame, fdr=0.5, callbacks=[recorder], **QUICK)
    states = [state for state in recorder.phases if state.part == "features and knockoffs"]
    assert list(states[0].names) == NAMES
    assert all(set(state.features) <= set(NAMES) for state in states)
    assert {"column 1", "column 4"} <= set(states[-1].features)
    scores = next(state.scores for state in states if state.scores is not None)
    assert scores.shape == (8,)
    assert set(np.argsort(-scores)[:2]) == {1, 4}


@pytest.mark.parametrize("options", [{"k": 2}, {"k": "auto", "max_k": 2}, {"fdr": 0.5}], ids=str)
def test_positions_are_those_of_the_table_where_features_are_forbidden(frame, options):
    recorder = Recorder()
    selection = seqatt.select(*frame, forbid=NAMES[:2], callbacks=[recorder], **options, **QUICK)
    assert selection.indices.tolist() == [NAMES.index(name) for name in selection.features]
    for state in recorder.phases:
        assert list(state.names) == NAMES
        assert state.indices == [NAMES.index(name) for name in state.features]
        assert state.scores is None or np.isnan(state.scores).tolist() == [True] * 2 + [False] * 6


def test_every_seed_has_its_own_calls(frame):
    recorder = Recorder(stops_at_phase=lambda state: state.seed == 0 and len(state.features) == 1)
    one, two = seqatt.select_trials(*frame, 2, seeds=[0, 1], callbacks=[recorder], **QUICK)
    assert one.settings["partial"] == "stopped"
    assert two.features == seqatt.select(*frame, 2, seed=1, **QUICK).features
    assert [selection.seed for selection in recorder.ends] == [0, 1]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_000, rows_per_file=1_000)


STREAM = {"target": "click", "k": 3, "hidden": [8], "batch_size": 32, "log1p": True, "schema_rows": 500}


@pytest.mark.parametrize("event", ["stops_at_phase", "stops_at_batch"])
@pytest.mark.parametrize("memory", [0, "1GB"])
def test_a_stopped_run_continues_from_its_checkpoint_bit_for_bit(log, tmp_path, memory, event):
    options = STREAM | {"memory": memory, "epochs": 1}
    whole = seqatt.select(log.files, **options)
    recorder = Recorder(**{event: lambda state: len(state.features) == 2})
    folder = tmp_path / "checkpoint"
    stopped = seqatt.select(log.files, checkpoint=folder, callbacks=[recorder], **options)
    assert stopped.settings["partial"] == "stopped"
    assert 0 < recorder.batches[-1].share < 1
    again = Recorder()
    resumed = seqatt.select(log.files, checkpoint=folder, resume=True, callbacks=[again], **options)
    assert again.batches[0].share > recorder.batches[-1].share
    assert again.phases[0].phase == recorder.phases[-1].phase + 1
    np.testing.assert_array_equal(resumed.ranking, whole.ranking)
    assert [p["loss"] for p in resumed.history] == [p["loss"] for p in whole.history]


def test_sums_over_files_are_stopped_too(log):
    recorder = Recorder(stops_at_batch=lambda state: state.share > 0.2)
    options = {"target": "click", "k": 3, "memory": 0, "schema_rows": 500, "shuffle_rows": 256, "log1p": True}
    selection = seqatt.select(log.files, method="linear_omp", callbacks=[recorder], **options)
    assert (selection.features, selection.settings["partial"]) == ([], "stopped")
    assert 0.2 < recorder.batches[-1].share < 1


@pytest.mark.slow
def test_all_ranks_stop_where_a_callback_of_the_first_one_does(log, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import json, os, sys, torch
import seqatt
class Stop(seqatt.Callback):
    calls = 0
    def on_phase_end(self, state):
        Stop.calls += 1
        if len(state.features) == 2:
            state.stop()
torch.distributed.init_process_group("gloo")
found = seqatt.select({list(map(str, log.files))!r}, memory=0, epochs=1, callbacks=[Stop()], **{STREAM!r})
rank = int(os.environ["RANK"])
open(os.path.join({str(tmp_path)!r}, f"{{rank}}.json"), "w").write(
    json.dumps([found.features, found.settings["partial"], Stop.calls]))
torch.distributed.destroy_process_group()
""")
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first[:2] == second[:2]
    assert len(first[0]) == 2
    assert first[1] == "stopped"
    assert first[2] > 0
    assert second[2] == 0


def test_an_error_in_a_callback_names_it(frame):
    class Faulty(Callback):
        def on_phase_end(self, state):
            raise ZeroDivisionError("no")

    recorder = Recorder()
    with pytest.raises(ZeroDivisionError, match="no") as caught:
        seqatt.select(*frame, 2, callbacks=[recorder, Faulty()], **QUICK)
    assert "Faulty.on_phase_end" in caught.value.__notes__[0]
    assert recorder.ends == [None]


def test_ctrl_c_is_still_an_interruption(frame):
    class CtrlC(Callback):
        def on_batch(self, state):
            if state.features:
                raise KeyboardInterrupt

    with pytest.raises(seqatt.SelectionInterrupted, match="after 1 of 2 features"):
        seqatt.select(*frame, 2, callbacks=[CtrlC()], **QUICK)


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (EarlyStopping(), "callbacks: must be a list of seqatt.Callback"),
        ([EarlyStopping], r"callbacks: must be instances .* call it: EarlyStopping\(\)"),
        ([print], "callbacks: must be instances"),
        (None, "callbacks: must be a list"),
    ],
)
def test_what_is_no_callback_is_refused(frame, callbacks, message):
    with pytest.raises(TypeError, match=message):
        seqatt.select(*frame, 2, callbacks=callbacks)


def test_several_seeds_with_a_checkpoint_are_refused(frame, tmp_path):
    with pytest.raises(ValueError, match="callbacks: with a checkpoint they need a single seed"):
        seqatt.select_trials(*frame, 2, seeds=[0, 1], callbacks=[Recorder()], checkpoint=tmp_path / "c")


def test_early_stopping_waits_for_an_improvement(frame):
    def select(patience):
        return seqatt.select(*frame, 4, callbacks=[EarlyStopping(patience, min_delta=10.0)], **QUICK)

    selection = select(patience=2)
    assert (selection.settings["partial"], len(selection.features)) == ("stopped", 3)  # the first is the best
    assert "partial" not in select(patience=3).settings  # with the fourth, there are as many as requested


def test_early_stopping_does_not_compare_with_the_warm_up_on_all_features():
    recorder = Recorder()
    wine = load_wine(return_X_y=True)
    selection = seqatt.select(*wine, 4, callbacks=[EarlyStopping(patience=1, min_delta=1e-3), recorder])
    warm_up, first = recorder.phases[0].loss, recorder.phases[1].loss
    assert warm_up < first
    assert len(selection.features) > 1


def test_early_stopping_leaves_folds_and_repeats_alone(frame):
    callbacks = [EarlyStopping(patience=1, min_delta=10.0)]
    assert "partial" not in seqatt.select(*frame, 3, repeats=2, callbacks=callbacks, **QUICK).settings
    curve = seqatt.select(*frame, "auto", max_k=4, callbacks=callbacks).curve
    assert curve["sizes"][-1] == 4


@pytest.mark.parametrize("options", [{"patience": 0}, {"min_delta": -1.0}])
def test_early_stopping_checks_its_arguments(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        EarlyStopping(**options)


def test_selectors_have_callbacks_that_survive_clone_and_set_params(frame):
    recorder = Recorder()
    selector = seqatt.SequentialAttentionSelector(2, epochs=2, callbacks=[recorder])
    copy = clone(selector)
    assert copy.callbacks[0] is not recorder
    copy.fit(*frame)
    assert recorder.ends == []
    assert copy.callbacks[0].ends == [copy.selection_]
    copy.set_params(callbacks=[Recorder(stops_at_phase=lambda state: len(state.features) == 1)]).fit(*frame)
    assert copy.selection_.settings["partial"] == "stopped"
    early = seqatt.FeatureSelector(
        2, method="forest", callbacks=[Recorder(stops_at_batch=lambda state: True)]
    )
    with pytest.raises(ValueError, match="callbacks: one of them stopped before a feature was selected"):
        early.fit(*frame).transform(frame[0])


def test_importing_callbacks_imports_no_torch():
    code = (
        "import sys, seqatt; seqatt.Callback, seqatt.callbacks.EarlyStopping(); "
        "print({'torch', 'numpy', 'mlflow', 'tensorboard'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
