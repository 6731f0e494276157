"""Tests of the concrete autoencoder alone; tests/contract has those of every method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural.concrete_autoencoder import (
    ConcreteAutoencoder,
    assign_features,
)
from seqatt.algorithms.neural.options import AutoencoderOptions
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.loaders.batch import DeviceTable

CPU = torch.device("cpu")


def test_nodes_that_prefer_the_same_feature_get_distinct_features():
    log_probabilities = np.log(np.array([[0.9, 0.06, 0.04], [0.95, 0.01, 0.04], [0.5, 0.3, 0.2]]))
    assert assign_features(log_probabilities) == [0, 1, 2]  # of the second, third and first node


def test_k_features_are_assigned_if_all_nodes_prefer_the_same():
    log_probabilities = np.full((4, 6), -50.0)
    log_probabilities[:, 3] = 0.0
    order = assign_features(log_probabilities)
    assert order[0] == 3
    assert len(set(order)) == 4


def test_k_distinct_features_are_selected_if_all_nodes_end_alike():
    X, y = linear_problem("binary", rows=60)
    data = read_table_data(X, y)
    autoencoder = ConcreteAutoencoder(
        data, DeviceTable.of_data(data, CPU), 3, 60, 10, [0], AutoencoderOptions(), CPU
    )
    autoencoder.logits[:, :, 5] += 100.0
    trace = autoencoder.traces()[0]
    assert trace.order[0] == 5
    assert len(set(trace.order)) == 3
    assert sorted(trace.order + trace.rest) == list(range(8))


@pytest.mark.parametrize("reconstruct", [False, True])
def test_the_gradients_are_those_of_autograd(reconstruct):
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 50))
    frame = pd.DataFrame({"a": a, "b": rng.choice(list("xyz"), 50), "c": c})
    y = (frame["a"] > 0).astype(int)
    data = read_table_data(frame, y)
    options = AutoencoderOptions(hidden=(7,), reconstruct=reconstruct)
    autoencoder = ConcreteAutoencoder(
        data, DeviceTable.of_data(data, CPU), 2, data.rows, 10, [0], options, CPU
    )
    grads = []
    autoencoder._logit_adam.step = grads.extend
    autoencoder._adam.step = grads.extend
    autoencoder._loader.load(1)
    with torch.no_grad():
        autoencoder._train_chunk(1)
    logits = autoencoder.logits[0].clone().requires_grad_()
    first_layer = autoencoder._first_layer[0].clone().requires_grad_()
    upper, bias, last = (param[0] for param in autoencoder.layers.params)
    noise = autoencoder._noise_bank[: logits.numel()].view_as(logits)
    mixture = torch.softmax((logits + noise) / 10.0, 1)
    x = torch.from_numpy(data.columns)
    channels = [0, 0, 1, 2, 0]  # of each column: features a and c have one column, b has three
    inputs = torch.zeros(50, 2, 3)
    for column, (feature, channel) in enumerate(zip(data.feature_of, channels, strict=True)):
        inputs[:, :, channel] = inputs[:, :, channel] + x[:, column, None] * mixture[:, feature]
    out = torch.relu(inputs.flatten(1) @ first_layer.T + bias) @ upper.T + last
    if reconstruct:
        loss = torch.nn.functional.mse_loss(out, x)
    else:
        target = torch.from_numpy(data.target.values)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, target)
    loss.backward()
    torch.testing.assert_close(grads[0][0], logits.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(grads[1][0], first_layer.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_reconstruction_selects_what_represents_the_table_and_ignores_the_target():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(300, 2))
    X = factors.repeat(4, axis=1) + 0.1 * rng.normal(size=(300, 8))
    options = {"method": "concrete_autoencoder", "reconstruct": True}
    targets = rng.integers(0, 2, size=(2, 300))
    selected = [seqatt.select(X, y, 2, **options).indices.tolist() for y in targets]
    assert selected[0] == selected[1]
    assert {index // 4 for index in selected[0]} == {0, 1}


@pytest.mark.parametrize("pair", [(1, 10), (10, 0), 3, (1, 2, 3)])
def test_temperatures_must_fall(problem, pair):
    with pytest.raises(ValueError, match="temperatures: must be two numbers above 0, falling"):
        seqatt.select(*problem, 2, method="concrete_autoencoder", temperatures=pair)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_selects_the_features_that_a_cpu_selects():
    X, y = linear_problem("multiclass", rows=600, features=20)
    trials = seqatt.select_trials(X, y, 2, seeds=range(3), method="concrete_autoencoder", device="cuda")
    for seed, trial in enumerate(trials):
        assert set(trial.indices) == {1, 4}
        on_cpu = seqatt.select(X, y, 2, seed=seed, method="concrete_autoencoder", device="cpu")
        assert set(trial.indices) == set(on_cpu.indices)


def test_a_loss_that_is_not_finite_stops_training_with_nothing_selected(problem):
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select(*problem, 2, method="concrete_autoencoder", learning_rate=1e30)
    assert caught.value.selections[0].features == []
