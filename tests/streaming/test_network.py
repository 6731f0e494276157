"""The step on files: written out it is what autograd says, whatever the threads, and an accelerator's too."""

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
def stream(tmp_path_factory) -> FileData:
    log = click_log(tmp_path_factory.mktemp("clicks"), 6_000, rows_per_file=3_000)
    return read_file_data(log.files, "click", StreamAttentionOptions(look=2_000, log1p=True), 1 << 10)


def batches(stream: FileData, size: int) -> list[FileBatch]:
    return list(make_loader(stream, StreamAttentionOptions(), size, 0))


def tensors(batch: FileBatch, device: torch.device = CPU) -> list[torch.Tensor]:
    rows = batch.rows
    return [torch.from_numpy(v).to(device) for v in (rows.numbers, rows.places, rows.target, rows.weights)]


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
def test_the_step_that_is_written_out_has_the_gradients_of_autograd(stream, activation):
    network = EmbeddingMLP(stream, (24, 12), activation, 1e-3, None, 0, CPU)
    numbers, places, target, row_weights = tensors(batches(stream, 600)[0])  # cut into slices
    weights = torch.rand(stream.features) + 0.5
    x = network.open(numbers, places)
    leaves = [t.clone().requires_grad_() for t in (x, weights, *network.adam.params)]
    loss = _plain_loss(network, activation, leaves, target, row_weights)
    loss.backward()
    with torch.no_grad():
        found, by_feature = network.differentiate(x, target, row_weights, weights)
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(by_feature, leaves[1].grad, rtol=1e-4, atol=1e-6)
    for grad, leaf in zip(network.grads, leaves[2:], strict=True):
        torch.testing.assert_close(grad, leaf.grad, rtol=1e-4, atol=1e-6)
    start = numbers.shape[1]
    for table, (rows, sums) in zip(network.tables, network.moved, strict=True):
        looked_up = places[:, table.positions] + table.starts
        flow = leaves[0].grad[:, start : start + table.columns].reshape(-1, table.width) * len(x)
        expected = torch.zeros_like(table.values).index_add_(0, looked_up.reshape(-1), flow)
        torch.testing.assert_close(torch.zeros_like(table.values).index_add_(0, rows, sums), expected)
        assert len(rows.unique()) == len(rows)
        start += table.columns


def _plain_loss(network, activation, leaves, target, row_weights):
    x, weights, *params = leaves
    plain = {"relu": torch.relu, "tanh": torch.tanh}.get(activation) or getattr(
        torch.nn.functional, activation
    )
    out = x * weights[network.feature_of]
    for i in range(0, len(params), 2):
        out = torch.nn.functional.linear(plain(out) if i else out, params[i], params[i + 1])
    return (autograd_loss("binary", out, target.unsqueeze(1)) * row_weights).mean()


def test_the_number_of_threads_changes_no_digit(stream):
    def trained(threads: int) -> list[torch.Tensor]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            with training_threads(1 << 40, CPU):
                walk = StreamTrial(
                    stream,
                    0,
                    StreamAttentionOptions(hidden=(64, 32)),
                    CPU,
                    METHOD.make_gate,
                    SINGLE_PROCESS,
                    1_024,
                )
                walk.enter()
                for batch in batches(stream, 1_024):
                    walk.step(METHOD.schedule(1, StreamAttentionOptions())[-1], batch)
        finally:
            torch.set_num_threads(before)
        return [
            tensor
            for member in walk.members
            for tensor in [
                *member.network.adam.params,
                *(table.values for table in member.network.tables),
                member.gate.weights,
            ]
        ]

    for one, other in zip(trained(1), trained(3), strict=True):
        assert torch.equal(one, other)


def test_memory_that_threads_share_is_made_before_they_start(stream, monkeypatch):
    """A cached property has no lock from Python 3.12 on."""
    made = []

    def embedded(room):
        made.append(threading.current_thread().name)
        time.sleep(0.05)
        return room.inputs.new_empty(room._rows, room._embedded)

    real = EmbeddingWorkspace.embedded
    slow = cached_property(embedded)
    slow.__set_name__(EmbeddingWorkspace, "embedded")
    monkeypatch.setattr(EmbeddingWorkspace, "embedded", slow)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with training_threads(1 << 40, CPU):
            network = EmbeddingMLP(stream, (24, 12), "relu", 1e-3, None, 0, CPU)
            numbers, places, target, row_weights = tensors(batches(stream, 600)[0])
            x = network.open(numbers, places)
            network.train(x, target, row_weights, torch.ones(stream.features))
    finally:
        torch.set_num_threads(before)
    assert isinstance(real, cached_property)
    assert made == [threading.current_thread().name]


def test_rows_that_are_looked_up_are_summed_alike_in_both_ways():
    looked_up = torch.from_numpy(np.random.default_rng(0).integers(50, size=400).astype(np.int32))
    rows, order, starts = embeddings._on_cpu(looked_up)
    padded, same_order, padded_starts = embeddings._at_once(looked_up)
    count = len(rows)
    assert torch.equal(padded[:count], rows)
    assert torch.equal(padded_starts[:count], starts)
    assert torch.equal(same_order, order)
    assert not padded[count:].any()  # what is over is row 0, and has nothing to sum
    assert (padded_starts[count:] == len(looked_up)).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_accelerator_replays_what_a_cpu_does(stream):
    def walked(device: torch.device) -> StreamTrial:
        with training_threads(1 << 40, device):
            options = StreamAttentionOptions(hidden=(64, 32))
            walk = StreamTrial(stream, 0, options, device, METHOD.make_gate, SINGLE_PROCESS, 512)
            for phase in METHOD.schedule(2, options):
                walk.enter()
                for batch in batches(stream, 512):  # the last one is smaller
                    walk.step(phase, batch)
                walk.leave(phase)
        return walk

    here, there = walked(CPU), walked(torch.device("cuda"))
    assert len(there._recorder._graphs) == 2  # with attention and without
    assert here.state.order[0][0] == there.state.order[0][0]  # later ones may be a matter of rounding
    for one, other in zip(here.records, there.records, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=2e-3)
    for one, other in zip(here.network.tables, there.network.tables, strict=True):
        torch.testing.assert_close(other.values.cpu(), one.values, rtol=0.05, atol=0.02)
