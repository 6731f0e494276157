"""LassoNet's own promises; those of every method are in tests/contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural import lassonet
from seqatt.algorithms.neural.lassonet import LassoNetPath
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.batch import DeviceTable
from seqatt.algorithms.neural.lassonet import LassoNetOptions

CPU = torch.device("cpu")


def make_path(X, y, k=2, steps=40, **options) -> LassoNetPath:
    source = read_table_data(X, y)
    return LassoNetPath(source, DeviceTable(source, CPU), k, steps, [3], LassoNetOptions(**options), CPU)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_without_a_penalty_it_is_the_plain_network_with_a_skip_connection(monkeypatch, task, activation):
    monkeypatch.setattr(lassonet, "DENSE", 1.0)
    X, y = linear_problem(task, rows=80)
    path = make_path(X, y, hidden=(6, 5), activation=activation)
    source = read_table_data(X, y)
    outputs = source.target.outputs
    layers = [torch.nn.Linear(8, 6), torch.nn.Linear(6, 5), torch.nn.Linear(5, outputs)]
    skip = torch.nn.Linear(8, outputs, bias=False)
    matrices, biases = path.layers.params[:2], path.layers.params[2:]
    for layer, matrix, bias in zip(layers, [path.first[:, :6], *matrices], biases, strict=True):
        layer.weight.data, layer.bias.data = matrix[0].clone(), bias[0].clone()
    skip.weight.data = path.first[0, 6:].clone()
    params = [p for module in (*layers, skip) for p in module.parameters()]
    optimizer = torch.optim.Adam(params, lr=3e-3)
    with torch.no_grad():
        done = next(path.steps())
    bend = torch.relu if activation == "relu" else torch.tanh
    x, truth = torch.from_numpy(source.columns), torch.from_numpy(source.target.values)
    for _ in range(done):
        out = layers[2](bend(layers[1](bend(layers[0](x))))) + skip(x)
        if task == "multiclass":
            loss = torch.nn.functional.cross_entropy(out, truth)
        elif task == "regression":
            loss = torch.nn.functional.mse_loss(out, truth)
        else:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert done == 39
    torch.testing.assert_close(path.first[0, :6], layers[0].weight.data, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(path.first[0, 6:], skip.weight.data, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(matrices[1][0], layers[2].weight.data, rtol=1e-3, atol=1e-5)


def test_the_path_ends_with_no_more_features_than_asked_for():
    X, y = linear_problem("multiclass", rows=400, features=30)
    path = make_path(X, y, k=4, steps=3000)
    with torch.no_grad():
        for _ in path.steps():
            pass
    lengths = path._lengths[0]
    assert 1 <= int((lengths > 0).sum()) <= 4
    layer = path.first[0, :67].abs().amax(0)
    assert (layer <= 10 * lengths * 1.0001 + 1e-7).all()
    assert set(path.traces()[0].order[:2]) == {1, 4}


def test_a_category_leaves_with_all_its_columns():
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcd"), 300)
    frame = pd.DataFrame({f"noise {i}": rng.normal(size=300) for i in range(5)} | {"kind": kind})
    y = np.isin(kind, ["a", "d"]).astype(int)
    source = read_table_data(frame, y)
    path = LassoNetPath(source, DeviceTable(source, CPU), 1, 2000, [0], LassoNetOptions(), CPU)
    with torch.no_grad():
        for _ in path.steps():
            pass
    assert source.names[path.traces()[0].order[0]] == "kind"
    out = path._lengths[0] == 0
    columns = out[torch.from_numpy(source.feature_of)]
    assert columns.any()
    assert not path.first[0][:, columns].any()


def test_a_network_without_a_hidden_layer_is_refused(problem):
    with pytest.raises(ValueError, match="hidden: lassonet needs a hidden layer"):
        seqatt.select(*problem, 2, method="lassonet", hidden=())


def test_its_settings_are_recorded(problem):
    settings = seqatt.select(*problem, 2, method="lassonet", epochs=20).settings
    assert settings["hierarchy"] == 10
    assert settings["steps"] > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_what_a_cpu_finds():
    X, y = linear_problem("multiclass", rows=600, features=20)
    for seed, found in enumerate(
        seqatt.select_trials(X, y, 2, seeds=range(3), method="lassonet", device="cuda")
    ):
        assert set(found.indices) == {1, 4}
        alone = seqatt.select(X, y, 2, seed=seed, method="lassonet", device="cpu")
        assert set(found.indices) == set(alone.indices)


def test_a_loss_that_is_no_number_stops_with_nothing_chosen(problem):
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select(*problem, 2, method="lassonet", learning_rate=1e30)
    assert caught.value.selections[0].features == []


def test_a_row_far_out_does_not_end_the_training():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    X[::2000, 2:4] = 300.0
    y = X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(2000)
    result = seqatt.select(X, y, 2, method="lassonet", epochs=100)
    assert set(result.indices) == {0, 1}
