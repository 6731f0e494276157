"""The concrete autoencoder's own promises; those of every method are in tests/contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural.concrete_autoencoder import ConcreteAutoencoder, assign
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.batch import DeviceTable
from seqatt.algorithms.neural.concrete_autoencoder import AutoencoderOptions

CPU = torch.device("cpu")


def test_nodes_that_agree_still_get_distinct_features():
    chances = np.log(np.array([[0.9, 0.06, 0.04], [0.95, 0.01, 0.04], [0.5, 0.3, 0.2]]))
    assert assign(chances) == [0, 1, 2]  # 0 to the surest node; 1 to the third, which wants it most


def test_every_node_on_the_same_feature_still_gives_k():
    chances = np.full((4, 6), -50.0)
    chances[:, 3] = 0.0
    order = assign(chances)
    assert order[0] == 3
    assert len(set(order)) == 4


def test_an_end_with_all_nodes_alike_returns_k_distinct_features():
    X, y = linear_problem("binary", rows=60)
    source = read_table_data(X, y)
    selector = ConcreteAutoencoder(source, DeviceTable(source, CPU), 3, 10, [0], AutoencoderOptions(), CPU)
    selector.logits[:, :, 5] += 100.0
    trace = selector.traces()[0]
    assert trace.order[0] == 5
    assert len(set(trace.order)) == 3
    assert sorted(trace.order + trace.rest) == list(range(8))


@pytest.mark.parametrize("reconstruct", [False, True])
def test_the_written_out_gradient_is_autograds(reconstruct):
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 50))
    frame = pd.DataFrame({"a": a, "b": rng.choice(list("xyz"), 50), "c": c})
    y = (frame["a"] > 0).astype(int)
    source = read_table_data(frame, y)
    options = AutoencoderOptions(hidden=(7,), reconstruct=reconstruct)
    selector = ConcreteAutoencoder(source, DeviceTable(source, CPU), 2, 10, [0], options, CPU)
    seen = []
    selector._logit_adam.step = seen.extend
    selector._adam.step = seen.extend
    selector._loader.load(1)
    with torch.no_grad():
        selector._train(1)
    logits = selector.logits[0].clone().requires_grad_()
    matrix = selector._matrix[0].clone().requires_grad_()
    upper, bias, last = (param[0] for param in selector.layers.params)
    noise = selector._bank[: logits.numel()].view_as(logits)
    mixture = torch.softmax((logits + noise) / 10.0, 1)
    x = torch.from_numpy(source.columns)
    slot = {0: 0, 1: 0, 2: 1, 3: 2, 4: 0}
    passed = torch.zeros(50, 2, 3)
    for column, feature in enumerate(source.feature_of):
        passed[:, :, slot[column]] = passed[:, :, slot[column]] + x[:, column, None] * mixture[:, feature]
    out = torch.relu(passed.flatten(1) @ matrix.T + bias) @ upper.T + last
    if reconstruct:
        loss = torch.nn.functional.mse_loss(out, x)
    else:
        truth = torch.from_numpy(source.target.values)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, truth)
    loss.backward()
    torch.testing.assert_close(seen[0][0], logits.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(seen[1][0], matrix.grad, rtol=1e-4, atol=1e-6)


def test_reconstruction_keeps_what_the_table_is_made_of_and_ignores_the_target():
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(300, 2))
    X = parts.repeat(4, axis=1) + 0.1 * rng.normal(size=(300, 8))
    options = {"method": "concrete_autoencoder", "reconstruct": True}
    targets = rng.integers(0, 2, size=(2, 300))
    answers = [seqatt.select(X, y, 2, **options).indices.tolist() for y in targets]
    assert answers[0] == answers[1]
    assert {index // 4 for index in answers[0]} == {0, 1}


@pytest.mark.parametrize("pair", [(1, 10), (10, 0), 3, (1, 2, 3)])
def test_temperatures_must_fall(problem, pair):
    with pytest.raises(ValueError, match="temperatures: must be two numbers above 0, falling"):
        seqatt.select(*problem, 2, method="concrete_autoencoder", temperatures=pair)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_what_a_cpu_finds():
    X, y = linear_problem("multiclass", rows=600, features=20)
    for seed, found in enumerate(
        seqatt.select_trials(X, y, 2, seeds=range(3), method="concrete_autoencoder", device="cuda")
    ):
        assert set(found.indices) == {1, 4}
        alone = seqatt.select(X, y, 2, seed=seed, method="concrete_autoencoder", device="cpu")
        assert set(found.indices) == set(alone.indices)


def test_a_loss_that_is_no_number_stops_with_nothing_chosen(problem):
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select(*problem, 2, method="concrete_autoencoder", learning_rate=1e30)
    assert caught.value.selections[0].features == []
