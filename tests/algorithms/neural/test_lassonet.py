"""Tests of LassoNet alone; tests/contract has those of every method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural import lassonet
from seqatt.algorithms.neural.lassonet import LassoNetPath
from seqatt.algorithms.neural.options import LassoNetOptions
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.defaults import default_batch_size
from seqatt.training.loaders.batch import DeviceTable

CPU = torch.device("cpu")


def make_path(X, y, k=2, steps=40, **options) -> LassoNetPath:
    data = read_table_data(X, y)
    table = DeviceTable.of_data(data, CPU)
    batch_size = default_batch_size(data.rows)
    return LassoNetPath(data, table, k, batch_size, steps, [3], LassoNetOptions(**options), CPU)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_without_a_penalty_it_trains_a_plain_network_with_a_skip_connection(monkeypatch, task, activation):
    monkeypatch.setattr(lassonet, "DENSE_SHARE", 1.0)
    X, y = linear_problem(task, rows=80)
    path = make_path(X, y, hidden=(6, 5), activation=activation)
    data = read_table_data(X, y)
    outputs = data.target.outputs
    layers = [torch.nn.Linear(8, 6), torch.nn.Linear(6, 5), torch.nn.Linear(5, outputs)]
    skip = torch.nn.Linear(8, outputs, bias=False)
    matrices, biases = path.layers.params[:2], path.layers.params[2:]
    for layer, matrix, bias in zip(layers, [path.first[:, :6], *matrices], biases, strict=True):
        layer.weight.data, layer.bias.data = matrix[0].clone(), bias[0].clone()
    skip.weight.data = path.first[0, 6:].clone()
    params = [p for module in (*layers, skip) for p in module.parameters()]
    optimizer = torch.optim.Adam(params, lr=3e-3)
    with torch.no_grad():
        done = next(path.train())
    activate = torch.relu if activation == "relu" else torch.tanh
    x, target = torch.from_numpy(data.columns), torch.from_numpy(data.target.values)
    for _ in range(done):
        out = layers[2](activate(layers[1](activate(layers[0](x))))) + skip(x)
        if task == "multiclass":
            loss = torch.nn.functional.cross_entropy(out, target)
        elif task == "regression":
            loss = torch.nn.functional.mse_loss(out, target)
        else:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert done == 39
    torch.testing.assert_close(path.first[0, :6], layers[0].weight.data, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(path.first[0, 6:], skip.weight.data, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(matrices[1][0], layers[2].weight.data, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_at_the_end_of_the_path_at_most_k_features_are_left():
    X, y = linear_problem("multiclass", rows=400, features=30)
    path = make_path(X, y, k=4, steps=3000)
    with torch.no_grad():
        for _ in path.train():
            pass
    skip_norms = path._skip_norms[0]
    assert 1 <= int((skip_norms > 0).sum()) <= 4
    largest_weights = path.first[0, :67].abs().amax(0)
    assert (largest_weights <= 10 * skip_norms * 1.0001 + 1e-7).all()
    assert set(path.traces()[0].order[:2]) == {1, 4}


def test_all_columns_of_a_category_leave_together():
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcd"), 300)
    frame = pd.DataFrame({f"noise {i}": rng.normal(size=300) for i in range(5)} | {"kind": kind})
    y = np.isin(kind, ["a", "d"]).astype(int)
    data = read_table_data(frame, y)
    table, batch_size = DeviceTable.of_data(data, CPU), default_batch_size(data.rows)
    path = LassoNetPath(data, table, 1, batch_size, 2000, [0], LassoNetOptions(), CPU)
    with torch.no_grad():
        for _ in path.train():
            pass
    assert data.names[path.traces()[0].order[0]] == "kind"
    removed = path._skip_norms[0] == 0
    removed_columns = removed[torch.from_numpy(data.feature_of)]
    assert removed_columns.any()
    assert not path.first[0][:, removed_columns].any()


def test_a_network_without_a_hidden_layer_is_an_error(problem):
    with pytest.raises(ValueError, match="hidden: lassonet needs a hidden layer"):
        seqatt.select(*problem, 2, method="lassonet", hidden=())


def test_its_settings_are_recorded(problem):
    settings = seqatt.select(*problem, 2, method="lassonet", epochs=20).settings
    assert settings["hierarchy"] == 10
    assert settings["steps"] > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_selects_the_features_that_a_cpu_selects():
    X, y = linear_problem("multiclass", rows=600, features=20)
    trials = seqatt.select_trials(X, y, 2, seeds=range(3), method="lassonet", device="cuda")
    for seed, trial in enumerate(trials):
        assert set(trial.indices) == {1, 4}
        on_cpu = seqatt.select(X, y, 2, seed=seed, method="lassonet", device="cpu")
        assert set(trial.indices) == set(on_cpu.indices)


def test_a_loss_that_is_not_finite_stops_training_with_nothing_selected(problem):
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select(*problem, 2, method="lassonet", learning_rate=1e30)
    assert caught.value.selections[0].features == []


def test_an_outlier_row_does_not_make_training_diverge():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    X[::2000, 2:4] = 300.0
    y = X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(2000)
    selection = seqatt.select(X, y, 2, method="lassonet", epochs=100)
    assert set(selection.indices) == {0, 1}


@pytest.mark.parametrize(("factor", "enters"), [(1.5, False), (0.5, True)])
def test_a_feature_enters_once_its_gradient_exceeds_the_penalty(monkeypatch, factor, enters):
    """Momentum makes a persistent gradient count 1 / (1 - 0.98) = 50 times, and the proximal step as often."""
    monkeypatch.setattr(LassoNetPath, "_update_penalty", lambda path: None)
    path = make_path(*linear_problem("regression", rows=200), steps=400)
    with torch.no_grad():
        path.first.zero_()
        path._start_path()
        path._penalty.mul_(
            factor / lassonet.START_PENALTY
        )  # of the penalty at which the first feature enters
        for _ in range(6):
            path._loader.load(50)
            path._train_path(50)
    assert bool((path._skip_norms > 0).any()) == enters
