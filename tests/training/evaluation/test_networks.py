"""Networks that train together: each is the network trained alone, and the one that torch would train."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.training.backend.threads import training_threads
from seqatt.training.evaluation import train_networks as module
from seqatt.training.evaluation.batches import Network, SeedBatches
from seqatt.training.evaluation.networks import ALIGNMENT, Networks, aligned_zeros, padded_rows, padded_width
from seqatt.training.evaluation.train_networks import NetworkTraining, divide, train_networks
from seqatt.training.models.architecture import MLPShape
from seqatt.training.options import TrainingOptions

CPU = torch.device("cpu")


def mixed_table(rows: int) -> TableData:
    """Numbers, a category of few values, and two of many values, which are embedded; rows have weights."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    X["few"] = rng.choice(list("xyz"), rows)
    for name in ("many", "more"):
        X[name] = rng.choice([f"v{i}" for i in range(30)], rows)
    return read_table_data(
        X, X["a"] > 0, categories="mixed", sample_weight=rng.uniform(1, 2, rows), by_name=False
    )


def numeric_table(task: str, rows: int) -> TableData:
    return read_table_data(*linear_problem(task, rows=rows, features=20))


TABLES = {
    "one batch": lambda: numeric_table("multiclass", 101),
    "batches": lambda: numeric_table("regression", 400),
    "one output": lambda: numeric_table("binary", 300),
    "categories and weights": lambda: mixed_table(300),
}


def network(data: TableData, features: list[int], seed: int) -> Network:
    columns, coded = (np.flatnonzero(np.isin(of, features)) for of in (data.feature_of, data.coded_features))
    return Network(tuple(columns.tolist()), tuple(coded.tolist()), seed)


def outputs(data: TableData, networks: list[Network], training: NetworkTraining, threads: int = 1) -> list:
    """The outputs of each network on the training rows."""
    found = [np.empty(0)] * len(networks)
    with training_threads(0, CPU):
        for group in train_networks(data, networks, training, threads, lambda steps: None):
            assert all(group.finite())
            for position, own in zip(group.positions, group.predict(data.columns, data.codes), strict=True):
                found[position] = own
    return found


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
@pytest.mark.parametrize("hidden", [(67,), (64, 10)])
@pytest.mark.parametrize("table", TABLES)
def test_a_network_is_the_same_alone_beside_others_and_on_any_number_of_threads(
    table, activation, hidden, monkeypatch
):
    data = TABLES[table]()
    last = data.features - 1
    sets = [[0], [1, last], [0, 1, 2], [1, 2, 3], list(range(data.features))]
    networks = [network(data, features, seed) for features in sets for seed in (0, 7)]
    options = TrainingOptions(hidden=hidden, activation=activation, input_dropout=0.2)
    training = NetworkTraining(options, 64 if data.rows > 256 else data.rows, 40)
    together = outputs(data, networks, training)
    monkeypatch.setattr(module, "MIN_WORK", 1)  # so that groups are divided among threads
    for other in (outputs(data, networks, training, 3), outputs(data, networks[::-1], training, 2)[::-1]):
        assert all(np.array_equal(a, b) for a, b in zip(together, other, strict=True))
    for number in (0, 3, 5, 9):
        assert np.array_equal(outputs(data, [networks[number]], training)[0], together[number])
    assert not np.array_equal(together[0], together[1])


def test_few_networks_train_at_a_time_where_memory_would_not_hold_them(monkeypatch):
    data = numeric_table("binary", 200)
    networks = [network(data, [seed % 3, 5], seed) for seed in range(6)]
    training = NetworkTraining(TrainingOptions(), 64, 5)
    assert [len(group) for group in divide(networks, data, training, 1)] == [6]
    monkeypatch.setattr(module, "MAX_BYTES", 1)
    assert [len(group) for group in divide(networks, data, training, 1)] == [1] * 6


def test_work_is_divided_among_threads_unless_there_is_little_of_it():
    data = numeric_table("binary", 200)
    networks = [network(data, list(range(20)), seed) for seed in range(4)]
    large = NetworkTraining(TrainingOptions(hidden=(512,)), 200, 5)
    assert [len(group) for group in divide(networks, data, large, 2)] == [2, 2]
    assert len(divide(networks, data, NetworkTraining(TrainingOptions(), 64, 5), 2)) == 1


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_a_step_is_that_of_torch(task):
    """The same weights, trained by autograd and torch.optim.Adam."""
    rng = torch.Generator().manual_seed(0)
    rows, columns, smoothing = 33, 5, 0.1 if task == "multiclass" else 0.0
    outs = 3 if task == "multiclass" else 1
    x = torch.randn(rows, columns, generator=rng)
    y = torch.arange(rows) % 3 if task == "multiclass" else (torch.arange(rows) % 2).float()[:, None]
    shape = MLPShape(padded_width(columns), (6, 4), outs, "tanh", label_smoothing=smoothing)
    trained = Networks(shape, [columns], task, [torch.Generator().manual_seed(3)], 0.01, None)
    reference = torch.nn.Sequential(
        torch.nn.Linear(columns, 6), torch.nn.Tanh(), torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, outs)
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for layer in reference[::2]:
            bound = layer.in_features**-0.5
            layer.weight.uniform_(-bound, bound, generator=generator)
            layer.bias.uniform_(-bound, bound, generator=generator)
    losses = {
        "multiclass": torch.nn.CrossEntropyLoss(label_smoothing=smoothing),
        "binary": torch.nn.BCEWithLogitsLoss(),
        "regression": torch.nn.MSELoss(),
    }
    adam = torch.optim.Adam(reference.parameters(), 0.01)
    inputs = trained.inputs(rows)
    inputs[0, :rows, :columns], inputs[0, :, -1] = x, 1
    for _ in range(20):
        adam.zero_grad()
        losses[task](reference(x), y).backward()
        adam.step()
        with torch.no_grad():
            trained.train_step(rows, y[None], None, None)
    with torch.no_grad():
        torch.testing.assert_close(trained.predict(rows, None)[0], reference(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (33, 67), (64, 32), (3, 5)])
def test_the_matrices_of_every_network_are_aligned_and_have_a_gap(rows, columns):
    matrices = aligned_zeros(3, rows, columns)
    assert matrices.stride(0) % ALIGNMENT == 0
    assert matrices.stride(0) > rows * columns
    width = padded_width(columns)
    assert width > columns
    assert padded_rows(rows, width) * width % ALIGNMENT == 0
    assert padded_rows(rows, width) >= rows


def test_a_pass_uses_every_row_once_and_each_seed_has_its_own_order():
    orders = [SeedBatches(seed, 12, 4) for seed in (0, 1, 0)]
    passes = [torch.cat([order.next(None)[0] for _ in range(3)]).tolist() for order in orders]
    assert sorted(passes[0]) == list(range(12))
    assert passes[0] == passes[2] != passes[1]
