"""Working sets: on a wide table few features train at a time, and none that is needed is lost."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

import seqatt
from seqatt.data.tables.encoding import SparseColumns
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.defaults import default_working_set
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.schedule import Phase
from seqatt.training.screening import working_set
from seqatt.training.screening.working_set import WorkingSet
from seqatt.training.trainer import Trainer
from seqatt.training.trial_group import TrialGroup

CPU = torch.device("cpu")
QUICK = {"hidden": (8,), "epochs": 20}


def wide_problem(rows: int = 120, columns: int = 2100, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)).astype(np.float32)
    y = (X[:, 7] + X[:, 1500] - X[:, 2000] > 0).astype(int)
    return X, y


@pytest.fixture
def widths(monkeypatch):
    """The numbers of columns that train, in order."""
    seen: list[int] = []
    real = Trainer.use_features

    def use_features(self, state, columns, rows, in_table):
        real(self, state, columns, rows, in_table)
        seen.append(self.model.first_layer().shape[2])

    monkeypatch.setattr(Trainer, "use_features", use_features)
    return seen


def make_set(features: int = 4096, size: int = 512) -> WorkingSet:
    table = DeviceTable(torch.zeros(3, features), torch.zeros(3), None)
    return WorkingSet(table, torch.arange(features), np.zeros(features, dtype=bool), size)


def test_a_wide_table_trains_on_few_features_after_the_first_phase(widths):
    X, y = wide_problem(columns=5000)
    selection = seqatt.select(X, y, k=3, device="cpu", **QUICK)
    assert selection.settings["working_set"] == 1024
    assert widths[0] == 5000 // 4
    assert set(widths[4:]) - {len(selection.indices)} == {1024}
    assert set(selection.indices) == {7, 1500, 2000}


def test_all_features_train_in_the_warm_up_and_a_short_phase_alone(monkeypatch):
    X, y = wide_problem(columns=5000)
    steps: dict[int, int] = {}
    real = MLP.train_step

    def train_step(self, batch, weights, **options):
        columns = weights.shape[1]
        steps[columns] = steps.get(columns, 0) + 1
        return real(self, batch, weights, **options)

    monkeypatch.setattr(MLP, "train_step", train_step)
    selection = seqatt.select(X, y, k=3, device="cpu")
    warmup, narrowing, first = (phase["steps"] for phase in selection.history[:3])
    assert (warmup, narrowing) == (100, round(first / 4))
    assert 4 * (narrowing + 17) <= steps[5000] < 4 * (narrowing + 50)
    assert steps[1250] == 4 * first


def test_a_model_that_fits_its_rows_ends_the_warm_up_as_after_all_of_its_steps(monkeypatch):
    X, y = wide_problem()
    after_warmup: dict[bool, list[torch.Tensor]] = {}
    stops_converged, real_init, real_end = True, Trainer.__init__, TrialGroup.end_phase

    def init(self, *arguments, **options):
        real_init(self, *arguments, **options | {"stops_converged": stops_converged})

    def end_phase(self, phase, pool):
        if phase.sees == "all":
            first_layers = [trainer.model.first_layer().clone() for trainer in self.trainers]
            after_warmup[stops_converged] = first_layers
        real_end(self, phase, pool)

    monkeypatch.setattr(Trainer, "__init__", init)
    monkeypatch.setattr(TrialGroup, "end_phase", end_phase)
    for stops_converged in (True, False):  # noqa: B007 (read above)
        seqatt.select(X, y, k=2, device="cpu")
    for at_once, one_by_one in zip(after_warmup[True], after_warmup[False], strict=True):
        assert not torch.equal(at_once, one_by_one)
        assert (at_once - one_by_one).norm() < 0.02 * one_by_one.norm()


def test_a_phase_that_sees_the_selected_features_alone_trains_no_others():
    some = make_set(512, size=128)
    selected_alone, attended = Phase(5, drop=1, sees="selected"), Phase(5, take=1)
    assert some.for_phase(selected_alone, [9, 3]) is None  # all features still train
    some.use(np.arange(128))
    assert some.for_phase(attended, [9, 3]) is None
    for selected in ([9, 3, 7], [9, 3]):
        features = some.for_phase(selected_alone, selected)
        assert features.tolist() == sorted(selected)
        some.use(features)
        resumed = make_set(512, size=128)
        resumed.use(resumed.load_dict(some.to_dict()))
        assert resumed.to_dict() == some.to_dict()
    assert some.for_phase(attended, [9, 3]).tolist() == list(range(128))


def test_the_models_have_the_columns_of_the_selected_features_alone_while_they_drop_some(widths):
    X, y = wide_problem()
    seqatt.select(X, y, k=2, device="cpu", surplus=3, **QUICK | {"epochs": 60})
    assert min(widths) < 10
    assert widths[-1] < 10


@pytest.mark.parametrize("options", [{"recipe": "paper"}, {"reset_logits": False}, {"recipe": "algorithm_1"}])
def test_as_published_all_features_train(widths, options):
    X, y = wide_problem()
    selection = seqatt.select(X, y, k=2, device="cpu", **QUICK | options)
    assert selection.settings["working_set"] == 0
    assert not widths


def test_narrow_tables_have_no_working_set():
    assert default_working_set(100, 2047, 10) == 0
    assert default_working_set(100, 2048, 10) == 1024
    assert default_working_set(100, 2048, 200) == 0
    assert default_working_set(100, 10_000, 200) == 1600


def test_a_table_whose_columns_would_be_a_large_copy_has_no_working_set():
    assert default_working_set(100_000, 5_000, 10) == 1024
    assert default_working_set(1_000_000, 5_000, 10) == 0


def test_every_feature_is_ranked_and_those_outside_come_last(monkeypatch):
    sets = []
    real = WorkingSet.use
    monkeypatch.setattr(
        WorkingSet, "use", lambda self, features: sets.append(features) or real(self, features)
    )
    X, y = wide_problem()
    selection = seqatt.select(X, y, k=3, device="cpu", **QUICK)
    outside = np.setdiff1d(np.arange(2100), sets[-1])
    assert selection.ranking[sets[-1]].max() < selection.ranking[outside].min()
    assert np.isfinite(selection.scores).all()


def test_a_sparse_wide_table_has_a_working_set_too(monkeypatch, widths):
    X, _ = wide_problem(rows=300)
    X[np.abs(X) < 1] = 0
    y = (X[:, 7] + X[:, 1500] - X[:, 2000] > 0).astype(int)
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 1)
    selection = seqatt.select(scipy.sparse.csr_array(X), y, k=3, device="cpu", **QUICK)
    assert max(widths) == 1024
    assert set(selection.indices) == {7, 1500, 2000}


def test_some_columns_of_a_sparse_table_become_dense_only_if_they_are_few(monkeypatch):
    X = scipy.sparse.random_array((50, 30), density=0.3, random_state=0, format="csr", dtype=np.float32)
    sparse = SparseColumns(X, np.full(30, 0.5), np.full(30, 2.0))
    table = DeviceTable(sparse, torch.zeros(50), None)
    columns, rows = torch.tensor([2, 3, 29]), torch.arange(50)
    assert table.select_columns(columns).x is not None
    monkeypatch.setattr("seqatt.training.loaders.batch.SMALL_TABLE_CELLS", 100)
    some = table.select_columns(columns)
    assert some.x is None
    assert torch.equal(some.gather(rows), table.gather(rows)[:, columns])


def test_threads_do_not_change_the_selection_of_a_wide_table():
    X, y = wide_problem()
    before, selections = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            selections.append(seqatt.select(X, y, k=4, device="cpu", **QUICK))
    finally:
        torch.set_num_threads(before)
    assert selections[0].features == selections[1].features
    assert [p["loss"] for p in selections[0].history] == [p["loss"] for p in selections[1].history]


def test_a_set_shrinks_to_a_quarter_and_keeps_the_best_and_the_selected():
    chooser = make_set()
    scores = np.arange(4096.0)
    first = chooser.choose(scores, None, [3])
    assert len(first) == 1024
    assert first.tolist() == [3, *range(4096 - 1023, 4096)]


def test_a_quarter_of_a_set_comes_back_from_outside():
    chooser = make_set()
    chooser.use(np.arange(1024))
    chosen = chooser.choose(np.arange(4096.0), -np.arange(4096.0), [3])
    assert len(chosen) == 512
    assert chosen.tolist() == [3, *range(1024 - 383, 1024), *range(1024, 1024 + 128)]


def test_constant_features_are_never_in_a_working_set():
    constant = np.arange(4096) % 2 == 0
    table = DeviceTable(torch.zeros(3, 4096), torch.zeros(3), None)
    chooser = WorkingSet(table, torch.arange(4096), constant, 512)
    assert not constant[chooser.choose(np.zeros(4096), None, [])].any()


def test_the_columns_of_a_feature_stay_together():
    feature_of = torch.arange(6000) // 2
    table = DeviceTable(torch.arange(6000.0).repeat(4, 1), torch.zeros(4), None)
    chooser = WorkingSet(table, feature_of, np.zeros(3000, dtype=bool), 512)
    used = chooser.use(np.array([1, 7, 2999]))
    assert used.in_table.tolist() == [2, 3, 14, 15, 5998, 5999]
    assert used.rows.x[0].tolist() == [2, 3, 14, 15, 5998, 5999]
    assert used.columns.to_columns(torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [[1, 1, 2, 2, 3, 3]]


def test_a_feature_outside_that_matters_beside_a_selected_one_has_the_largest_score():
    """The target is the sign of a product, of which only the first factor is inside."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 50, generator=generator)
    y = (x[:, 0] * x[:, 30] > 0).float().unsqueeze(1)
    chooser = WorkingSet(DeviceTable(x, y, None), torch.arange(50), np.zeros(50, dtype=bool), 5)
    inside = chooser.use(np.arange(5))
    model = MLP(MLPShape(50, (32,), 1), "binary", [generator], 1e-2, CPU)
    model.use_columns(inside.in_table)
    weights = torch.tensor([[1.0, 0, 0, 0, 0]])

    def hidden_gradient(rows):
        return model.hidden_gradient(inside.rows.batch(rows[None]), weights)

    with torch.no_grad():
        scores = chooser.outside_scores([hidden_gradient], [0], WorkerPool(1))
    assert scores is not None
    assert scores[5:].argmax() == 25


def test_columns_that_leave_and_return_have_their_weights_and_moments():
    generator = torch.Generator().manual_seed(0)
    model = MLP(MLPShape(6, (4,), 1), "binary", [generator], 1e-2, CPU)
    x, y = torch.randn(1, 9, 6, generator=generator), torch.ones(1, 9, 1)
    with torch.no_grad():
        model.train_step(Batch(x, y, None), torch.ones(1, 6))
        before = [t.clone() for t in (model.weights[0], model._adam.exp_avg[0], model._adam.exp_avg_sq[0])]
        model.use_columns(torch.tensor([0, 2, 5]))
        model.train_step(Batch(x[:, :, [0, 2, 5]], y, None), torch.ones(1, 3))
        trained = model.weights[0].clone()
        model.use_columns(torch.tensor([1, 2, 3, 4]))
    after = [model.weights[0], model._adam.exp_avg[0], model._adam.exp_avg_sq[0]]
    for old, new in zip(before, after, strict=True):
        assert torch.equal(old[:, :, [1, 3, 4]], new[:, :, [0, 2, 3]])
    assert torch.equal(trained[:, :, 1], model.weights[0][:, :, 1])


def test_some_columns_train_as_a_network_of_these_columns_does():
    shape, columns = MLPShape(6, (4,), 1), torch.tensor([1, 3, 4])
    wide = MLP(shape, "binary", [torch.Generator().manual_seed(0)], 1e-2, CPU)
    narrow = MLP(MLPShape(3, (4,), 1), "binary", [torch.Generator().manual_seed(1)], 1e-2, CPU)
    generator = torch.Generator().manual_seed(2)
    x, y, weights = torch.randn(1, 9, 3, generator=generator), torch.ones(1, 9, 1), torch.rand(1, 3)
    with torch.no_grad():
        narrow.weights[0].copy_(wide.weights[0][:, :, columns])
        for own, other in zip(
            narrow.weights[1:] + narrow.biases, wide.weights[1:] + wide.biases, strict=True
        ):
            own.copy_(other)
        wide.use_columns(columns)
        for _ in range(5):
            grads = [model.train_step(Batch(x, y, None), weights).clone() for model in (wide, narrow)]
            torch.testing.assert_close(*grads)
    torch.testing.assert_close(wide.weights[0], narrow.weights[0])


def test_a_run_on_a_wide_table_that_was_stopped_resumes_to_the_same_selection(tmp_path, monkeypatch):
    X, y = wide_problem()
    options = {"k": 2, "surplus": 3, "device": "cpu", **QUICK, "epochs": 60}
    whole = seqatt.select(X, y, **options)
    for stop_at in (1, 2, 5):
        folder, calls = tmp_path / str(stop_at), []
        real = WorkingSet.use

        def stop(self, features, calls=calls, real=real, stop_at=stop_at):
            calls.append(1)
            if len(calls) == stop_at:
                raise ArithmeticError("stopped")
            return real(self, features)

        with monkeypatch.context() as patch:
            patch.setattr(working_set.WorkingSet, "use", stop)
            with pytest.raises(ArithmeticError):
                seqatt.select(X, y, checkpoint=folder, checkpoint_every=1e-6, **options)
        resumed = seqatt.select(X, y, checkpoint=folder, resume=True, **options)
        assert resumed.features == whole.features
        assert [p["loss"] for p in resumed.history] == [p["loss"] for p in whole.history]


def test_threads_do_not_change_what_is_recorded_of_a_warm_up_that_ends_early():
    X, y = wide_problem(columns=3000)
    histories = []
    for threads in (1, 2):  # chunks of other sizes: with two threads, the first ones are measurements
        torch.set_num_threads(threads)
        histories.append(
            [phase["loss"] for phase in seqatt.select(X, y, k=2, ensemble=1, device="cpu").history]
        )
    assert histories[0] == histories[1]


@pytest.mark.parametrize(
    "stopped_at", [4, 9, 14]
)  # in the warm-up, after it, and in the first phase that selects
def test_a_run_stopped_while_its_models_are_converged_resumes_bit_for_bit(tmp_path, monkeypatch, stopped_at):
    X, y = wide_problem(columns=4000)
    options = {"k": 2, "device": "cpu"}
    whole = seqatt.select(X, y, **options)
    chunks, real = [], Trainer.train_chunk

    def stop(self, steps):
        if len(chunks) == stopped_at:  # every model has one chunk after the other
            raise ArithmeticError("stopped")
        real(self, steps)
        chunks.append(self._steps_left)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_chunk", stop)
        with pytest.raises(ArithmeticError):
            seqatt.select(X, y, checkpoint=tmp_path, checkpoint_every=1e-6, **options)
    assert 0 in chunks
    resumed = seqatt.select(X, y, checkpoint=tmp_path, resume=True, **options)
    assert resumed.features == whole.features
    assert np.array_equal(resumed.scores, whole.scores)
    assert [p["loss"] for p in resumed.history] == [p["loss"] for p in whole.history]
