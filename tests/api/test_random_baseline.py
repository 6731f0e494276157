"""A fixed number of features is compared with random features where none is related to the target by itself."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.command import run
from tests.support.problems import linear_problem

import seqatt
from seqatt.api.confidence import random_baseline
from seqatt.api.confidence.random_baseline import _compare
from seqatt.losses.loss import Score
from seqatt.trace import Trace
from seqatt.training.loop import Diverged

FAST = {"epochs": 40}


def noise(seed: int, rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 12)), rng.integers(0, 2, rows)


def pair(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two features that say nothing alone and everything together."""
    X = np.random.default_rng(seed).normal(size=(400, 12))
    return X, (X[:, 2] * X[:, 7] > 0).astype(int)


def test_a_selection_from_noise_is_marked_as_no_better_than_chance():
    marked = 0
    for seed in range(5):
        selection = seqatt.select(*noise(seed), 3, epochs=4)
        assert len(selection.features) == 3
        marked += not selection.chance["better"]
        assert ("no better than chance" in repr(selection)) == (not selection.chance["better"])
    assert marked >= 4  # about one in fifty is not


def test_features_that_matter_only_together_are_better_than_chance():
    selection = seqatt.select(*pair(0), 3, epochs=60)
    assert {"x2", "x7"} <= set(selection.features)
    assert selection.chance["better"]
    assert selection.chance["score"] > selection.chance["random_features"] + 0.1
    assert selection.chance["folds"] < 3  # the first fold that is clear ends the test
    assert "chance" not in repr(selection)


def test_the_folds_select_with_one_model_unless_an_ensemble_was_asked_for(monkeypatch):
    trained = []

    def select(method, request, fold, number):
        trained.append(
            method.plan(random_baseline._with_one_model(method, replace(request, data=fold.train))).settings
        )
        return [[0, 1]]

    monkeypatch.setattr(random_baseline, "_select", select)
    for given in (None, 2):
        selection = seqatt.select(*noise(0), 2, ensemble=given, epochs=100)
        assert selection.settings["ensemble"] == (given or 4)
    default, requested = trained[0], trained[-1]
    assert (default["ensemble"], requested["ensemble"]) == (1, 2)
    assert default["epochs"] == pytest.approx(30)
    assert requested["epochs"] > 90


@pytest.mark.parametrize(("k", "share"), [(4, 0.15), (10, 0.18), (20, 0.3)])
def test_the_folds_of_a_wide_table_take_half_of_the_steps_unless_phases_get_too_short(monkeypatch, k, share):
    plans = []

    def select(method, request, fold, number):
        full = method.plan(replace(request, options=replace(request.options, ensemble=1), data=fold.train))
        plans.append(
            (full, method.plan(random_baseline._with_one_model(method, replace(request, data=fold.train))))
        )
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    monkeypatch.setattr(random_baseline, "_select", select)
    trained = Trace(list(range(k)), list(range(k, 2100)), [])
    monkeypatch.setattr("seqatt.algorithms.neural.sequential_attention.train", lambda *_: [trained])
    with pytest.raises(seqatt.SelectionInterrupted):
        seqatt.select(rng.normal(size=(100, 2100)), rng.integers(0, 2, 100), k)
    ((full, fold),) = plans
    assert fold.settings["epochs"] / full.settings["epochs"] == pytest.approx(share, rel=0.03)
    assert min(phase.steps for phase in fold.schedule if phase.take) >= 18


def test_one_fold_that_is_far_better_is_enough_and_a_little_better_is_not():
    random = [[Score(0.5, 0.03)] * 3] * 5
    found = [Score(0.85, 0.03), Score(0.46, 0.03), Score(0.44, 0.03)]
    assert _compare(0.5, [0.0] * 3, found, *random)["better"]
    assert not _compare(0.5, [0.0] * 3, [Score(0.55, 0.03), Score(0.5, 0.03), Score(0.5, 0.03)], *random)[
        "better"
    ]


def test_the_test_ends_for_each_seed_with_the_first_clear_fold(monkeypatch):
    folds_of = {0: [], 1: []}

    def select(method, request, fold, number):
        for seed in request.seeds:
            folds_of[seed].append(number)
        return [[2, 7, 0] if seed == 1 and number == 2 else [0, 1, 3] for seed in request.seeds]

    monkeypatch.setattr("seqatt.api.confidence.random_baseline._select", select)
    unclear, clear = seqatt.select_trials(*pair(0), 3, seeds=[0, 1], epochs=1)
    assert folds_of == {0: [1, 2, 3], 1: [1, 2]}
    assert (unclear.chance["better"], unclear.chance["folds"]) == (False, 3)
    assert (clear.chance["better"], clear.chance["folds"]) == (True, 2)


@pytest.fixture
def side_by_side(monkeypatch):
    """Folds of small tables select at the same time too, on two threads."""
    before = torch.get_num_threads()
    monkeypatch.setattr(random_baseline, "SERIAL_WORK", 0)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_folds_that_select_at_the_same_time_answer_as_one_after_another(side_by_side, monkeypatch):
    threads, real = set(), random_baseline._select

    def select(*arguments):
        threads.add(threading.get_ident())
        return real(*arguments)

    monkeypatch.setattr(random_baseline, "_select", select)
    together = [seqatt.select(X, y, 3, epochs=20).chance for X, y in (noise(0), noise(1), pair(0))]
    assert len(threads) > 1
    torch.set_num_threads(1)
    assert together == [seqatt.select(X, y, 3, epochs=20).chance for X, y in (noise(0), noise(1), pair(0))]


def test_a_fold_beside_a_clear_one_does_not_count(side_by_side, monkeypatch):
    def select(method, request, fold, number):
        if number == 3:
            raise Diverged([Trace([], [], [])])
        return [[2, 7, 0] if number == 2 else [0, 1, 3] for _ in request.seeds]

    monkeypatch.setattr(random_baseline, "_select", select)
    clear = seqatt.select(*pair(0), 3, epochs=1).chance
    assert (clear["better"], clear["folds"]) == (True, 2)


def test_a_fold_that_diverges_and_counts_is_warned_about(side_by_side, monkeypatch):
    def select(method, request, fold, number):
        if number == 3:
            raise Diverged([Trace([], [], [])])
        return [[0, 1, 3] for _ in request.seeds]

    monkeypatch.setattr(random_baseline, "_select", select)
    with pytest.warns(UserWarning, match="how sure that is could not be measured"):
        assert seqatt.select(*pair(0), 3, epochs=1).chance is None


def test_folds_that_are_interrupted_while_they_select_stop(side_by_side, monkeypatch):
    stopped, real = [], random_baseline._select

    def select(method, request, fold, number):
        if number == 2:
            raise KeyboardInterrupt
        if number == 3:
            monitor = request.hook.part.monitor
            while not monitor.stop_requested:
                time.sleep(0.001)
            stopped.append(number)
        return real(method, request, fold, number)

    monkeypatch.setattr(random_baseline, "_select", select)
    with pytest.raises(seqatt.SelectionInterrupted):
        seqatt.select(*noise(0), 3, epochs=1)
    assert stopped == [3]


def test_callbacks_are_called_by_one_thread(side_by_side):
    threads = set()

    class Watch(seqatt.Callback):
        def on_phase_end(self, state):
            threads.add(threading.get_ident())

    seqatt.select(*noise(0), 3, epochs=1, callbacks=[Watch()])
    assert threads == {threading.get_ident()}


def test_random_features_are_not_tested_against_random_features():
    X = np.random.default_rng(0).normal(size=(200, 6))
    assert seqatt.select(X, np.arange(200) % 2, 2, method="random").chance is None


def test_as_good_as_random_features_is_no_better_than_chance_unless_all_are_selected():
    scores = [Score(0.8, 0.01)] * 3
    assert not _compare(0.5, [0.0] * 3, scores, *[scores] * 5)["better"]
    everything = _compare(0.5, [0.0] * 3, scores)
    assert everything["better"]
    assert everything["random_features"] is None


@pytest.mark.parametrize("rare", [1, 2, 3, 4])
def test_noise_whose_target_has_a_rare_class_is_no_better_than_chance(rare):
    rng = np.random.default_rng(rare)
    better = []
    for _ in range(6):
        X, y = rng.normal(size=(150, 10)), rng.permutation(np.arange(150) < rare).astype(int)
        chance = seqatt.select(X, y, 3, method="f_test").chance
        better.append(chance is not None and chance["better"])
    assert sum(better) <= 1


def test_tables_with_a_feature_that_stands_out_are_not_tested():
    selection = seqatt.select(*linear_problem("binary"), 2, **FAST)
    assert selection.chance is None
    assert "examine" not in selection.timings


def test_methods_without_a_test_of_their_own_are_marked_too():
    selection = seqatt.select(*noise(0), 3, method="f_test")
    assert not selection.chance["better"]
    assert seqatt.select(*linear_problem("binary"), 2, method="f_test").chance is None


def test_seeds_together_are_tested_as_each_alone():
    X, y = noise(1)
    together = seqatt.select_trials(X, y, 3, seeds=[0, 1], epochs=2)
    assert together[1].chance == seqatt.select(X, y, 3, seed=1, epochs=2).chance


def test_too_few_rows_to_test_keep_the_note():
    selection = seqatt.select(*noise(0, rows=80), 3, epochs=1)
    assert selection.chance is None
    assert "no feature is significant by itself" in repr(selection)


def test_an_interrupted_test_leaves_the_selection(monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("seqatt.api.confidence.random_baseline._select", interrupt)
    with pytest.raises(seqatt.SelectionInterrupted) as error:
        seqatt.select(*noise(0), 3, epochs=1)
    assert len(error.value.selections[0].features) == 3


def test_the_command_line_says_so_and_files_are_checked(tmp_path):
    X, y = noise(0)
    pd.DataFrame(X).add_prefix("f").assign(label=y).to_csv(tmp_path / "noise.csv", index=False)
    done = run("select", tmp_path / "noise.csv", "-t", "label", "-k", 3, "--epochs", 2, "--out", tmp_path)
    assert "No better than chance: AUC " in done.stdout
    raw = json.loads((tmp_path / "selection.json").read_text())
    assert not raw["chance"]["better"]
    (tmp_path / "other.json").write_text(json.dumps(raw | {"chance": raw["chance"] | {"better": "no"}}))
    with pytest.raises(ValueError, match="'chance' must say whether"):
        seqatt.Selection.load(tmp_path / "other.json")
