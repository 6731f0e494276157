"""The training step on files: its gradients are autograd's, on any number of threads and on a GPU."""

from __future__ import annotations

import threading
import time
from functools import cached_property

import numpy as np
import pytest
import torch

from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.loader import FileBatch, make_loader
from seqatt.datasets.synthetic import click_log
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.streaming import embeddings
from seqatt.streaming.network import EmbeddingMLP, EmbeddingWorkspace
from seqatt.streaming.options import StreamAttentionOptions
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import StreamTrial
from seqatt.training.backend.threads import training_threads
from seqatt.training.models.losses import autograd_loss

CPU = torch.device("cpu")
METHOD = STREAMED_METHODS["sequential_attention"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> FileData:
    log = click_log(tmp_path_factory.mktemp("clicks"), 6_000, rows_per_file=3_000)
    return read_file_data(log.files, "click", StreamAttentionOptions(schema_rows=2_000, log1p=True), 1 << 10)


def batches(data: FileData, size: int) -> list[FileBatch]:
    return list(make_loader(data, StreamAttentionOptions(), size, 0))


def tensors(batch: FileBatch, device: torch.device = CPU) -> list[torch.Tensor]:
    rows = batch.rows
    return [torch.from_numpy(v).to(device) for v in (rows.numbers, rows.codes, rows.target, rows.weights)]


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
def test_the_gradients_are_those_of_autograd(data, activation):
    network = EmbeddingMLP(data, (24, 12), activation, 1e-3, None, 0, CPU)
    numbers, codes, target, row_weights = tensors(batches(data, 600)[0])  # large enough for two slices
    weights = torch.rand(data.features) + 0.5
    x = network.gather_inputs(numbers, codes)
    leaves = [t.clone().requires_grad_() for t in (x, weights, *network.adam.params)]
    loss = _autograd_loss(network, activation, leaves, target, row_weights)
    loss.backward()
    with torch.no_grad():
        found, weights_grad = network.differentiate(x, target, row_weights, weights)
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(weights_grad, leaves[1].grad, rtol=1e-4, atol=1e-6)
    for grad, leaf in zip(network.grads, leaves[2:], strict=True):
        torch.testing.assert_close(grad, leaf.grad, rtol=1e-4, atol=1e-6)
    start = numbers.shape[1]
    for table, (rows, sums) in zip(network.tables, network.table_grads, strict=True):
        looked_up = codes[:, table.positions] + table.starts
        input_grad = leaves[0].grad[:, start : start + table.columns].reshape(-1, table.width) * len(x)
        expected = torch.zeros_like(table.values).index_add_(0, looked_up.reshape(-1), input_grad)
        torch.testing.assert_close(torch.zeros_like(table.values).index_add_(0, rows, sums), expected)
        assert len(rows.unique()) == len(rows)
        start += table.columns


def _autograd_loss(network, activation, leaves, target, row_weights):
    x, weights, *params = leaves
    function = {"relu": torch.relu, "tanh": torch.tanh}.get(activation) or getattr(
        torch.nn.functional, activation
    )
    out = x * weights[network.feature_of]
    for i in range(0, len(params), 2):
        out = torch.nn.functional.linear(function(out) if i else out, params[i], params[i + 1])
    return (autograd_loss("binary", out, target.unsqueeze(1)) * row_weights).mean()


def test_the_number_of_threads_does_not_change_the_result(data):
    def trained(threads: int) -> list[torch.Tensor]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            with training_threads(1 << 40, CPU):
                trial = StreamTrial(
                    data,
                    0,
                    StreamAttentionOptions(hidden=(64, 32)),
                    CPU,
                    METHOD.make_gate,
                    SINGLE_PROCESS,
                    1_024,
                )
                trial.start_phase()
                for batch in batches(data, 1_024):
                    trial.step(METHOD.schedule(1, StreamAttentionOptions())[-1], batch)
        finally:
            torch.set_num_threads(before)
        return [
            tensor
            for member in trial.members
            for tensor in [
                *member.network.adam.params,
                *(table.values for table in member.network.tables),
                member.gate.weights,
            ]
        ]

    for one, other in zip(trained(1), trained(3), strict=True):
        assert torch.equal(one, other)


def test_memory_that_threads_share_is_allocated_before_they_start(data, monkeypatch):
    """A cached property has no lock from Python 3.12 on."""
    allocated = []

    def embedded(workspace):
        allocated.append(threading.current_thread().name)
        time.sleep(0.05)
        return workspace.inputs.new_empty(workspace._rows, workspace._embedded)

    real = EmbeddingWorkspace.embedded
    slow = cached_property(embedded)
    slow.__set_name__(EmbeddingWorkspace, "embedded")
    monkeypatch.setattr(EmbeddingWorkspace, "embedded", slow)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with training_threads(1 << 40, CPU):
            network = EmbeddingMLP(data, (24, 12), "relu", 1e-3, None, 0, CPU)
            numbers, codes, target, row_weights = tensors(batches(data, 600)[0])
            x = network.gather_inputs(numbers, codes)
            network.train_step(x, target, row_weights, torch.ones(data.features))
    finally:
        torch.set_num_threads(before)
    assert isinstance(real, cached_property)
    assert allocated == [threading.current_thread().name]


def test_both_ways_to_sort_looked_up_rows_agree():
    looked_up = torch.from_numpy(np.random.default_rng(0).integers(50, size=400).astype(np.int32))
    rows, order, starts = embeddings._sort_distinct(looked_up)
    padded, same_order, padded_starts = embeddings._sort_padded(looked_up)
    count = len(rows)
    assert torch.equal(padded[:count], rows)
    assert torch.equal(padded_starts[:count], starts)
    assert torch.equal(same_order, order)
    assert not padded[count:].any()  # the padding is row 0 with empty sums
    assert (padded_starts[count:] == len(looked_up)).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_replays_the_steps_of_a_cpu(data):
    def train(device: torch.device) -> StreamTrial:
        with training_threads(1 << 40, device):
            options = StreamAttentionOptions(hidden=(64, 32))
            trial = StreamTrial(data, 0, options, device, METHOD.make_gate, SINGLE_PROCESS, 512)
            for phase in METHOD.schedule(2, options):
                trial.start_phase()
                for batch in batches(data, 512):  # the last one is smaller
                    trial.step(phase, batch)
                trial.end_phase(phase)
        return trial

    on_cpu, on_gpu = train(CPU), train(torch.device("cuda"))
    assert all(len(member._recorder._graphs) == 2 for member in on_gpu.members)  # with attention and without
    assert on_cpu.state.order[0][0] == on_gpu.state.order[0][0]  # later ones may depend on rounding
    for one, other in zip(on_cpu.records, on_gpu.records, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=2e-3)
    networks = [
        (one.network, other.network) for one, other in zip(on_cpu.members, on_gpu.members, strict=True)
    ]
    for one, other in (pair for a, b in networks for pair in zip(a.tables, b.tables, strict=True)):
        torch.testing.assert_close(other.values.cpu(), one.values, rtol=0.05, atol=0.02)
