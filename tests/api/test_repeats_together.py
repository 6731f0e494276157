"""Repeats as trials of one group, each of which sees rows of its own: what a GPU does, forced on a CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.registry import get_method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability import repeats
from seqatt.callbacks import Callback
from seqatt.data.tables.table_data import constant_within, read_table_data, take_rows
from seqatt.training import group_factory
from seqatt.training.group_factory import make_trial_groups
from seqatt.training.screening import row_sample
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.trial_group import TrialGroup

CPU = torch.device("cpu")
ATTENTION = get_method("sequential_attention")


def force(monkeypatch):
    for module in (group_factory, repeats):
        monkeypatch.setattr(module, "share_a_tensor", lambda options, device: options.built_in)


@pytest.fixture
def together(monkeypatch):
    force(monkeypatch)


def planted(rows=240, columns=12):
    """Three signals that every half shows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 1] - X[:, 4] + X[:, 7] + 0.3 * rng.normal(size=rows)


def halves(rows):
    """Numbers of every second row, and the others."""
    return np.arange(0, rows, 2), np.arange(1, rows, 2)


def request_on_halves(data, k=3, **options):
    subsets = halves(data.rows)
    return SelectionRequest(data, k, [5, 6], AttentionOptions(**options), CPU, subsets=subsets)


def select_on_halves(data, k=3, **options):
    request = request_on_halves(data, k, **options)
    return ATTENTION.select(request, ATTENTION.plan(request), print)


TABLES = {
    "numbers": {},
    "weights": {"sample_weight": np.random.default_rng(1).uniform(0.5, 1, size=240)},
    "groups of rows": {"groups_of_rows": np.arange(240) // 7},
    "times": {"time": np.arange(240)},
    "one model": {"ensemble": 1},
    "one model, groups of rows": {"ensemble": 1, "groups_of_rows": np.arange(240) // 7},
    "dropped inputs": {"input_dropout": 0.2},
    "the paper": {"recipe": "paper"},
    "more columns than rows": {"asinh_inputs": True},
    "a gate": {"method": "omp"},
    "strengths of a penalty": {"method": "group_lasso"},
}


@pytest.mark.parametrize("name", TABLES)
def test_repeats_that_train_together_choose_what_they_choose_one_after_another(name, monkeypatch):
    X, y = planted()
    alone = seqatt.select(X, y, 3, repeats=4, epochs=100, **TABLES[name])
    force(monkeypatch)
    joint = seqatt.select(X, y, 3, repeats=4, epochs=100, **TABLES[name])
    assert set(joint.indices) == set(alone.indices) == {1, 4, 7}
    np.testing.assert_allclose(joint.frequency, alone.frequency, atol=0.26)
    assert joint.stability["rows"] == alone.stability["rows"]
    assert joint.settings["repeats"] == alone.settings["repeats"] == 4


@pytest.mark.usefixtures("together")
def test_categories_and_classes_train_together():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 6))).add_prefix("c")
    many = rng.integers(40, size=300)
    frame["many"] = np.char.add("v", many.astype(str))
    frame["few"] = np.char.add("v", rng.integers(3, size=300).astype(str))
    y = np.digitize(frame["c2"] + (many % 2) * 2, [0.5, 1.5])
    selection = seqatt.select(frame, y, 2, repeats=4, epochs=100)
    assert set(selection.features) == {"c2", "many"}


def test_the_repeats_are_the_trials_of_one_group(monkeypatch, together):
    trials = []
    whole = TrialGroup.__init__
    monkeypatch.setattr(
        TrialGroup, "__init__", lambda self, *a: whole(self, *a) or trials.append(len(self.state.order))
    )
    X, y = planted()
    selection = seqatt.select(X, y, 3, repeats=20, epochs=20, importance=False)
    assert trials == [20]
    assert selection.stability["repeats"] == selection.settings["repeats"] == 20


def test_one_after_another_on_a_cpu_for_your_own_model_and_for_methods_without_the_loop(monkeypatch):
    data = read_table_data(*planted())
    X, y = planted()

    def count(method="sequential_attention", columns=1, **options):
        found = get_method(method)
        request = SelectionRequest(data, 3, [0], found.options(**options), CPU)
        plan = found.plan(request)
        many = replace(data, feature_of=np.tile(data.feature_of, columns))
        return repeats._count_together(found, replace(request, data=many), plan)

    assert count() == 1
    force(monkeypatch)
    assert count() == 20
    assert count("f_test") == 1
    assert count(batch_norm=True) == 1
    wide = count(columns=4_000)  # 48,000 columns
    assert wide in range(2, 20, 2)
    assert count(columns=20_000) == 2
    monkeypatch.setattr(repeats, "AT_ONCE", 2)
    assert seqatt.select(X, y, 3, repeats=4, epochs=20).stability["repeats"] == 4


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("units", [None, "groups_of_rows", "time"])
def test_a_trial_trains_and_is_evaluated_on_rows_of_its_subset_alone(members, units):
    own = {} if units is None else {units: np.arange(240) // 7}
    data = read_table_data(*planted(), **own)
    request = request_on_halves(data, ensemble=members, batch_size=16)
    plan = ATTENTION.plan(request)
    (group,) = make_trial_groups(
        data, request.seeds, request.options, CPU, plan.setup, subsets=request.subsets
    )
    (trainer,) = group.trainers
    assert trainer.models == 2 * members
    trained = [set() for _ in range(trainer.models)]
    for _ in range(3):
        trainer._loader.load(60)
        for model, rows in enumerate(trainer._loader._index[:60].transpose(0, 1)):
            trained[model] |= set(rows.flatten().tolist())
    (batch,) = trainer._loader.validation_batches(1000)
    for model, (rows, held_out) in enumerate(zip(trained, batch.index.tolist(), strict=True)):
        subset = set(request.subsets[model // members].tolist())
        assert rows < subset if members > 1 else rows <= subset
        assert set(held_out) <= subset
        assert members == 1 or not rows & set(held_out)
        if members > 1 and units is not None:
            assert not {row // 7 for row in rows} & {row // 7 for row in held_out}
        assert len(rows) > 60


@pytest.mark.usefixtures("together")
def test_subsets_of_different_sizes_are_cut_to_the_rows_that_all_have():
    data = read_table_data(*planted(), groups_of_rows=np.arange(240) // 7)
    subsets = np.arange(100), np.arange(100, 240)
    request = replace(request_on_halves(data), subsets=subsets)
    assert request.rows == 100
    traces = ATTENTION.select(request, ATTENTION.plan(request), print)
    assert [set(trace.order) for trace in traces] == [{1, 4, 7}] * 2


@pytest.mark.usefixtures("together")
def test_a_feature_that_is_constant_within_a_subset_is_not_selected_there():
    X, y = planted()
    X[::2, 4] = 0.5
    data = read_table_data(X, y)
    constant, other = (constant_within(data, rows) for rows in halves(240))
    assert np.flatnonzero(constant).tolist() == [4]
    assert not other.any()
    first, second = select_on_halves(data, epochs=100)
    assert 4 not in first.order
    assert first.rest[-1] == 4
    assert set(second.order) == {1, 4, 7}
    assert all(4 not in phase.taken for phase in first.phases)


def test_few_rows_show_what_varies_and_all_are_looked_at_for_what_does_not(monkeypatch):
    X, y = planted()
    X[:, 2] = 0
    X[200:, 2] = 1
    data = read_table_data(X, y)
    monkeypatch.setattr("seqatt.data.tables.table_data.FEW_ROWS", 4)
    for rows in (np.arange(200), np.arange(202), np.arange(0, 240, 2), np.arange(200, 240)):
        np.testing.assert_array_equal(constant_within(data, rows), take_rows(data, rows).constant)


@pytest.mark.usefixtures("together")
def test_each_trial_is_tested_on_its_own_rows():
    X, y = planted()
    y[::2] = np.random.default_rng(1).normal(size=120)  # nothing to find in the first half
    data = read_table_data(X, y)
    traces = select_on_halves(data, epochs=20)
    for trace, rows in zip(traces, halves(240), strict=True):
        own = SelectionRequest(take_rows(data, rows), 3, [5], AttentionOptions(epochs=20), CPU)
        (alone,) = ATTENTION.select(own, ATTENTION.plan(own), print)
        assert trace.settings == alone.settings
    assert traces[0].settings["min_q_value"] > 0.01 > 1e-6 > traces[1].settings["min_q_value"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_the_sample_of_a_subset_is_that_of_a_table_of_its_rows(monkeypatch, weighted, few):
    if few:
        monkeypatch.setattr(row_sample, "MIN_ROWS", 50)
        monkeypatch.setattr(row_sample, "MAX_CELLS", 10)
    X, y = planted()
    X[1::2, 3] = 0.5  # constant in the subset
    frame = pd.DataFrame(X).add_prefix("c").assign(many=[f"v{i % 40}" for i in range(240)])
    weights = np.random.default_rng(1).uniform(0.5, 1, size=240) if weighted else None
    data = read_table_data(frame, y, sample_weight=weights, categories="mixed")
    rows = halves(240)[1]
    own, alone = draw_sample(data, rows), draw_sample(take_rows(data, rows))
    np.testing.assert_allclose(own.weights, alone.weights)
    assert len(own.weights) == (50 if few else 120)
    assert own.data.constant.sum() == 1
    np.testing.assert_array_equal(own.data.constant, alone.data.constant)
    np.testing.assert_array_equal(own.data.feature_of, alone.data.feature_of)
    np.testing.assert_allclose(
        own.centred_columns(slice(None)), alone.centred_columns(slice(None)), atol=1e-12
    )
    np.testing.assert_array_equal(own.data.target.values[own.rows], alone.data.target.values[alone.rows])


class Recorder(Callback):
    """Remembers the parts it saw, and requests to stop, or interrupts, when so many features are selected."""

    def __init__(self, size=99, error=None):
        self.parts, self._size, self._error = set(), size, error

    def on_phase_end(self, state):
        self.parts.add((state.part, state.k))
        if len(state.features) >= self._size:
            if self._error is not None:
                raise self._error
            state.stop()


@pytest.mark.usefixtures("together")
def test_a_stop_gives_what_the_repeats_have_selected_so_far_and_callbacks_see_one_part():
    recorder = Recorder(2)
    selection = seqatt.select(*planted(), 3, repeats=4, epochs=100, callbacks=[recorder])
    assert recorder.parts == {("repeats 1 to 4 of 4", 3)}
    assert set(selection.features) < {"x1", "x4", "x7"}
    assert len(selection.features) == 2
    assert selection.stability["repeats"] == 4
    assert selection.frequency.sum() == pytest.approx(2.0)
    assert selection.settings["partial"] == "stopped"


@pytest.mark.usefixtures("together")
def test_ctrl_c_carries_what_the_repeats_have_selected_so_far():
    callbacks = [Recorder(5, KeyboardInterrupt())]  # of a surplus: six features
    with pytest.raises(seqatt.SelectionInterrupted, match="after 3 of 3 features were selected") as caught:
        seqatt.select(*planted(), 3, repeats=4, epochs=100, callbacks=callbacks)
    (selection,) = caught.value.selections
    assert set(selection.indices) == {1, 4, 7}
    assert selection.stability["repeats"] == 4


@pytest.mark.usefixtures("together")
def test_ctrl_c_before_the_first_feature_carries_nothing():
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select(*planted(), 3, repeats=4, epochs=100, callbacks=[Recorder(0, KeyboardInterrupt())])
    assert caught.value.selections == []


def test_after_the_first_group_ctrl_c_carries_the_finished_repeats(monkeypatch, together):
    monkeypatch.setattr(repeats, "AT_ONCE", 2)
    selected = []

    def interrupt_later(request, *arguments):
        selected.append(request.seeds)
        if len(selected) == 3:
            raise KeyboardInterrupt
        return select(request, *arguments)

    select = ATTENTION.select
    monkeypatch.setattr(type(ATTENTION), "select", property(lambda self: interrupt_later))
    with pytest.raises(seqatt.SelectionInterrupted, match="interrupted after 4 of 6 repeats") as caught:
        seqatt.select(*planted(), 3, repeats=6, epochs=20)
    assert caught.value.selections[0].stability["repeats"] == 4
    assert [len(set(seeds)) for seeds in selected] == [2, 2, 2]
    assert len({seed for seeds in selected for seed in seeds}) == 6


@pytest.mark.usefixtures("together")
def test_progress_counts_all_repeats_of_a_group():
    counted = []
    data = read_table_data(*planted())
    request = SelectionRequest(data, 3, [0], AttentionOptions(epochs=20), CPU)
    monitor = request.hook.part.monitor
    monitor.bar = lambda steps, *others: counted.append((steps, *others[:2]))
    plan = ATTENTION.plan(request)
    repeats.select_repeatedly(ATTENTION, 6, request, plan, monitor.advance)
    assert counted[0] == (0, "Sequential Attention, 6 repeats", 6)
    steps = [steps for steps, *_ in counted[1:]]
    assert sum(steps) == pytest.approx(6)
    assert 0 < max(steps) < 3  # it moves while they train


@pytest.mark.usefixtures("together")
def test_the_seconds_of_repeats_that_train_together_count_once():
    X, y = planted()
    selection = seqatt.select(X, y, 3, repeats=20, epochs=100, importance=False)
    assert selection.history[0]["seconds"] < selection.timings["select"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("options", [{}, {"method": "omp"}, {"groups_of_rows": np.arange(240) // 7}])
def test_repeats_on_cuda_choose_what_they_choose_on_a_cpu(options):
    X, y = planted()
    on_cpu, on_cuda = (
        seqatt.select(X, y, 3, repeats=20, device=device, **options) for device in ("cpu", "cuda")
    )
    assert set(on_cuda.indices) == set(on_cpu.indices) == {1, 4, 7}
    np.testing.assert_allclose(on_cuda.frequency, on_cpu.frequency, atol=0.11)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_cuda_a_feature_that_is_constant_within_a_half_is_not_selected_there():
    X, y = planted()
    X[::2, 4] = 0.5
    request = replace(request_on_halves(read_table_data(X, y)), device=torch.device("cuda"))
    first, second = ATTENTION.select(request, ATTENTION.plan(request), print)
    assert 4 not in first.order
    assert set(second.order) == {1, 4, 7}
