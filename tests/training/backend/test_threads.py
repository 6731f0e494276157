"""The number of threads changes the time of a selection, never its result."""

import threading
import time

import numpy as np
import pytest
import torch

import seqatt
from seqatt.training.backend.matmul import MAX_TERMS, matmul
from seqatt.training.backend.threads import (
    MIN_PROBE_INTERVAL,
    PROBE_STEPS,
    ThreadTuner,
    WorkerPool,
    run_concurrently,
    training_threads,
)
from seqatt.training.loop import TrialGroup


@pytest.fixture(autouse=True)
def _restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def large_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 700)).astype(np.float32)
    return X, (X[:, :3].sum(1) + 0.3 * rng.normal(size=600) > 0).astype(int)


def scores_of(selection):
    return [entry["scores"] for entry in selection.history]


def test_a_selection_is_bit_identical_for_any_number_of_threads():
    X, y = large_problem()
    selections = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        selections.append(seqatt.select(X, y, 4, batch_size=128, epochs=12))
    one, two, five = selections
    assert one.indices.tolist() == two.indices.tolist() == five.indices.tolist()
    assert scores_of(one) == scores_of(two) == scores_of(five)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"hidden": (401,)},
        {"hidden": (40, 30), "activation": "silu"},
        {"hidden": (512,), "activation": "gelu", "epochs": 1, "ensemble": 1},
        {"mask": "l2_normalised"},
        {"batch_size": 600},
    ],
)
def test_trials_are_bit_identical_for_other_networks_masks_and_batches(options):
    X, y = large_problem()
    options = {"batch_size": 128, "epochs": 3} | options
    scores = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        scores[threads] = [
            scores_of(trial) for trial in seqatt.select_trials(X, y, 2, seeds=range(2), **options)
        ]
    torch.set_num_threads(2)
    alone = seqatt.select(X, y, 2, seed=1, **options)
    assert scores[2][1] == scores_of(alone)
    if options.get("activation") != "gelu":  # its tensors are large enough to be divided among threads
        assert scores[1] == scores[2]


def test_concurrent_trials_give_the_scores_of_each_trial_alone():
    X, y = large_problem()
    torch.set_num_threads(3)
    trials = seqatt.select_trials(X, y, 3, seeds=range(4), batch_size=128, epochs=8)
    for seed, trial in enumerate(trials):
        alone = seqatt.select(X, y, 3, seed=seed, batch_size=128, epochs=8)
        assert scores_of(alone) == scores_of(trial)
    assert torch.get_num_threads() == 3


@pytest.mark.slow
def test_long_concurrent_trials_give_the_scores_of_each_trial_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = X[:, 0] > 0
    torch.set_num_threads(4)
    trials = seqatt.select_trials(X, y, 1, seeds=range(6), epochs=1200, batch_size=30)
    assert scores_of(trials[5]) == scores_of(seqatt.select(X, y, 1, seed=5, epochs=1200, batch_size=30))


@pytest.mark.parametrize("length", [5, MAX_TERMS, MAX_TERMS + 1, 3 * MAX_TERMS + 7])
def test_a_product_summed_in_blocks_is_the_product(length):
    a, b = torch.randn(2, 6, length, dtype=torch.float64), torch.randn(2, length, 9, dtype=torch.float64)
    torch.testing.assert_close(matmul(a, b, torch.empty(2, 6, 9, dtype=torch.float64)), a @ b)


@pytest.mark.parametrize(("columns", "width", "rows"), [(784, 67, 256), (3000, 67, 128), (1500, 256, 64)])
def test_a_product_is_bit_identical_for_any_number_of_threads(columns, width, rows):
    a, b = torch.randn(1, width, columns), torch.randn(1, rows, columns).mT
    products = []
    for threads in (1, 2, 4, 8):
        torch.set_num_threads(threads)
        products.append(matmul(a, b, torch.empty(1, width, rows)))
    assert all(torch.equal(products[0], other) for other in products[1:])


def tuned_threads(seconds_per_step, chunks, monkeypatch):
    """The threads used in each chunk, if a step of chunk i takes ``seconds_per_step(i, threads)``."""
    now, used = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    tuner = ThreadTuner(4)
    for i in range(chunks):
        steps = tuner.max_steps or 64
        with tuner.measure(steps):
            now[0] += steps * seconds_per_step(i, used[-1])
    return used


def test_several_threads_are_used_if_they_are_faster(monkeypatch):
    used = tuned_threads(lambda i, threads: 1.0 if threads == 4 else 3.0, 60, monkeypatch)
    assert used[:3] == [4, 4, 1]
    assert used[3:].count(1) <= 60 // MIN_PROBE_INTERVAL
    assert used.count(4) > 50


def test_the_number_of_threads_follows_the_load_of_other_processes(monkeypatch):
    def seconds_per_step(i, threads):
        busy = 20 <= i < 200
        return (30.0 if busy else 1.0) if threads == 4 else 2.0

    used = tuned_threads(seconds_per_step, 400, monkeypatch)
    assert used[21 + MIN_PROBE_INTERVAL : 200].count(4) <= 5  # measured again at growing intervals
    assert used[300:].count(4) > 80


def test_a_measurement_of_the_other_number_of_threads_is_short():
    assert ThreadTuner(2).max_steps == PROBE_STEPS
    assert ThreadTuner(1).max_steps is None


def test_concurrent_trainings_share_the_workers_and_report_their_mean_progress():
    workers: dict[str, set[str]] = {}

    def training(name):
        for _ in range(30):
            workers.setdefault(name, set()).add(threading.current_thread().name)
            assert not torch.is_grad_enabled()
            assert torch.get_num_threads() == 1
            time.sleep(0.001)
            yield 2

    progress: list[int] = []
    run_concurrently([training(name) for name in "abcde"], 2, progress.append)
    assert sum(progress) == 60
    assert set(workers) == set("abcde")
    assert len(set.union(*workers.values())) == 2


def test_a_training_that_fails_stops_the_others():
    steps = []

    def endless():
        while True:
            steps.append(1)
            time.sleep(0.001)
            yield 1

    def failing():
        yield 1
        raise ValueError("failed on purpose")

    with pytest.raises(ValueError, match="failed on purpose"):
        run_concurrently([endless(), failing()], 2, lambda steps: None)
    count = len(steps)
    time.sleep(0.05)
    assert len(steps) == count


def test_small_problems_use_one_thread_and_restore_the_number_of_threads():
    torch.set_num_threads(2)
    with training_threads(1000, torch.device("cpu")) as threads:
        assert torch.get_num_threads() == 1
        assert threads == 2
    assert torch.get_num_threads() == 2


def test_an_error_reports_what_concurrent_trials_had_selected(monkeypatch):
    X, y = large_problem()
    torch.set_num_threads(2)
    monkeypatch.setattr(TrialGroup, "check_finite", lambda group: group.finite.fill(False))
    with pytest.raises(seqatt.TrainingDiverged, match="no longer a finite number") as caught:
        seqatt.select_trials(X, y, 3, seeds=range(3), epochs=2)
    for selection in caught.value.selections:
        taken = [name for entry in selection.history for name in entry["taken"]]
        assert set(selection.features) <= set(taken)


def test_selection_works_within_inference_mode():
    X, y = large_problem()
    torch.set_num_threads(2)
    with torch.inference_mode():
        trials = seqatt.select_trials(X, y, 2, seeds=range(2), epochs=2)
    alone = seqatt.select(X, y, 2, seed=1, epochs=2)
    assert scores_of(trials[1]) == scores_of(alone)


def test_an_own_model_trains_within_inference_mode_on_the_whole_table_as_a_batch():
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    with torch.inference_mode():
        selection = seqatt.select(X, y, 2, model=module, batch_size=40, epochs=40)
    assert len(selection.features) == 2


def test_threads_that_start_after_a_pool_have_as_many_torch_threads_as_before():
    torch.set_num_threads(2)
    with WorkerPool(2) as pool:
        assert pool.run([torch.get_num_threads] * 2) == [1, 1]
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [2]
