"""Threads change how long a selection takes, never what it is."""

import threading
import time

import numpy as np
import pytest
import torch

import seqatt
from seqatt.training import loop as engine
from seqatt.training.backend.matmul import MAX_TERMS, matmul
from seqatt.training.backend.threads import (
    PROBE_EVERY,
    PROBE_STEPS,
    ThreadTuner,
    run_concurrently,
    training_threads,
)


@pytest.fixture(autouse=True)
def _threads_as_they_were():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def large_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 700)).astype(np.float32)
    return X, (X[:, :3].sum(1) + 0.3 * rng.normal(size=600) > 0).astype(int)


def scores_of(selection):
    return [entry["scores"] for entry in selection.history]


def test_the_number_of_threads_changes_no_bit_of_a_selection():
    X, y = large_problem()
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(seqatt.select(X, y, 4, batch_size=128, epochs=12))
    assert found[0].indices.tolist() == found[1].indices.tolist() == found[2].indices.tolist()
    assert scores_of(found[0]) == scores_of(found[1]) == scores_of(found[2])


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": (401,)},
        {"hidden": (40, 30), "activation": "silu"},
        {"hidden": (512,), "activation": "gelu"},
        {"mask": "l2_normalised"},
        {"batch_size": 600},
    ],
)
def test_nor_with_other_networks_masks_and_batches(options):
    X, y = large_problem()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        chosen = seqatt.select_trials(X, y, 2, seeds=range(2), **{"batch_size": 128, "epochs": 3} | options)
        found.append([scores_of(trial) for trial in chosen])
    torch.set_num_threads(2)
    alone = seqatt.select(X, y, 2, seed=1, **{"batch_size": 128, "epochs": 3} | options)
    assert found[1][1] == scores_of(alone)
    if options.get("activation") != "gelu":  # a tensor long enough for threads to divide
        assert found[0] == found[1]


def test_trials_side_by_side_find_what_each_finds_alone():
    X, y = large_problem()
    torch.set_num_threads(3)
    together = seqatt.select_trials(X, y, 3, seeds=range(4), batch_size=128, epochs=8)
    for seed, trial in enumerate(together):
        alone = seqatt.select(X, y, 3, seed=seed, batch_size=128, epochs=8)
        assert scores_of(alone) == scores_of(trial)
    assert torch.get_num_threads() == 3


def test_long_trainings_side_by_side_count_their_steps_right():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = X[:, 0] > 0
    torch.set_num_threads(4)
    together = seqatt.select_trials(X, y, 1, seeds=range(6), epochs=1200, batch_size=30)
    assert scores_of(together[5]) == scores_of(seqatt.select(X, y, 1, seed=5, epochs=1200, batch_size=30))


@pytest.mark.parametrize("length", [5, MAX_TERMS, MAX_TERMS + 1, 3 * MAX_TERMS + 7])
def test_a_product_in_pieces_is_the_product(length):
    a, b = torch.randn(2, 6, length, dtype=torch.float64), torch.randn(2, length, 9, dtype=torch.float64)
    torch.testing.assert_close(matmul(a, b, torch.empty(2, 6, 9, dtype=torch.float64)), a @ b)


@pytest.mark.parametrize(("columns", "width", "rows"), [(784, 67, 256), (3000, 67, 128), (1500, 256, 64)])
def test_the_number_of_threads_changes_no_bit_of_a_product(columns, width, rows):
    a, b = torch.randn(1, width, columns), torch.randn(1, rows, columns).mT
    answers = []
    for threads in (1, 2, 4, 8):
        torch.set_num_threads(threads)
        answers.append(matmul(a, b, torch.empty(1, width, rows)))
    assert all(torch.equal(answers[0], other) for other in answers[1:])


def paced(seconds_of, stretches, monkeypatch):
    """The threads used in each stretch, on a clock that says what ``seconds_of`` says."""
    now, used = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    pace = ThreadTuner(4)
    for i in range(stretches):
        steps = pace.max_steps or 64

        def work(i=i, steps=steps):
            now[0] += steps * seconds_of(i, used[-1])

        pace.run(work, steps)
    return used


def test_more_threads_are_used_where_they_help(monkeypatch):
    used = paced(lambda i, threads: 1.0 if threads == 4 else 3.0, 60, monkeypatch)
    assert used[:3] == [4, 4, 1]
    assert used[3:].count(1) <= 60 // PROBE_EVERY
    assert used.count(4) > 50


def test_a_core_taken_by_another_process_is_noticed_and_its_return_too(monkeypatch):
    def seconds_of(i, threads):
        busy = 20 <= i < 200
        return (30.0 if busy else 1.0) if threads == 4 else 2.0

    used = paced(seconds_of, 400, monkeypatch)
    assert used[21 + PROBE_EVERY : 200].count(4) <= 5  # noticed at once; looked at less and less often
    assert used[300:].count(4) > 80  # found again


def test_looks_at_the_other_number_of_threads_are_short():
    assert ThreadTuner(2).max_steps == PROBE_STEPS
    assert ThreadTuner(1).max_steps is None


def test_walks_share_the_workers_and_report_their_average():
    seen: dict[str, set[str]] = {}

    def walk(name):
        for _ in range(30):
            seen.setdefault(name, set()).add(threading.current_thread().name)
            assert not torch.is_grad_enabled()
            assert torch.get_num_threads() == 1
            time.sleep(0.001)
            yield 2

    told: list[int] = []
    run_concurrently([walk(n) for n in "abcde"], 2, told.append)
    assert sum(told) == 60
    assert set(seen) == set("abcde")
    assert len(set.union(*seen.values())) == 2


def test_a_walk_that_fails_stops_the_others():
    steps = []

    def endless():
        while True:
            steps.append(1)
            time.sleep(0.001)
            yield 1

    def failing():
        yield 1
        raise ValueError("as it should")

    with pytest.raises(ValueError, match="as it should"):
        run_concurrently([endless(), failing()], 2, lambda steps: None)
    count = len(steps)
    time.sleep(0.05)
    assert len(steps) == count


def test_small_problems_use_one_thread_and_leave_the_setting_as_it_was():
    torch.set_num_threads(2)
    with training_threads(1000, torch.device("cpu")) as threads:
        assert torch.get_num_threads() == 1
        assert threads == 2
    assert torch.get_num_threads() == 2


def test_a_trial_that_diverges_beside_others_is_reported(monkeypatch):
    X, y = large_problem()
    torch.set_num_threads(2)
    monkeypatch.setattr(engine.TrialGroup, "look", lambda group: group.sound.fill(False))
    with pytest.raises(seqatt.TrainingDiverged, match="no longer a finite number") as caught:
        seqatt.select_trials(X, y, 3, seeds=range(3), epochs=2)
    for selection in caught.value.selections:
        taken = [name for entry in selection.history for name in entry["taken"]]
        assert set(selection.features) <= set(taken)


def test_a_callers_inference_mode_does_no_harm():
    X, y = large_problem()
    torch.set_num_threads(2)
    with torch.inference_mode():
        trials = seqatt.select_trials(X, y, 2, seeds=range(2), epochs=2)
    alone = seqatt.select(X, y, 2, seed=1, epochs=2)
    assert scores_of(trials[1]) == scores_of(alone)
