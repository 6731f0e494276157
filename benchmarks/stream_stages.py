"""Stages of a selection from files: the rate of each alone, the costs per row, and the profile of a step."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from timing import in_turns, synchronize
from torch.profiler import ProfilerActivity, profile

from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import read_row_group
from seqatt.data.files.loader import FileBatch, make_loader
from seqatt.data.files.prefetch import reader_threads
from seqatt.data.files.encoding.rows import concatenate
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.streaming.device_transfer import DeviceTransfer
from seqatt.streaming.network import EmbeddingMLP
from seqatt.streaming.options import StreamAttentionOptions
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import StreamTrial

TIMED_ROWS = 1 << 18  # rows on which the stages are timed, at least
PROFILED_STEPS = 30  # at most


def stage_rates(
    data: FileData, options: StreamAttentionOptions, size: int, device: torch.device
) -> dict[str, float]:
    """Rows per second of every stage: the first three on one thread, reading on all its threads."""
    count = 0
    row_groups = []
    for row_group in data.files.row_groups:
        row_groups.append(row_group)
        count += row_group.rows or 0
        if count >= TIMED_ROWS:
            break
    read, seconds = _timed(
        lambda: [batch for group in row_groups for batch, _ in read_row_group(group, data.types, data.kinds)]
    )
    rates = {"read": count / seconds}
    encoded, seconds = _timed(lambda: [data.encode(batch) for batch in read])
    rates["decode"] = count / seconds
    order = torch.randperm(count).numpy()
    shuffled, seconds = _timed(lambda: concatenate(encoded).take(order))
    rates["shuffle"] = count / seconds
    batches = [shuffled.take(slice(i, i + size)) for i in range(0, count - size + 1, size)]
    transfer = DeviceTransfer(device)
    transfer.transfer(batches[0])
    _, seconds = _timed(lambda: deque((transfer.transfer(rows) for rows in batches), maxlen=0))
    rates["copy"] = len(batches) * size / seconds
    _, seconds = _timed(lambda: deque(make_loader(data, options, size, 0), maxlen=0))
    rates["reading, all threads"] = data.expected_rows / seconds
    rates["bare products"] = 1 / _product_seconds(data, options, size, device)
    return rates


def _timed(work: Any) -> tuple[Any, float]:
    synchronize()
    started = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - started


def _network(data: FileData, options: StreamAttentionOptions, device: torch.device) -> EmbeddingMLP:
    shape = options.hidden, options.activation, options.learning_rate, options.embedding_dim
    return EmbeddingMLP(data, *shape, 0, device)


def _product_seconds(
    data: FileData, options: StreamAttentionOptions, size: int, device: torch.device
) -> float:
    """Seconds per row of the matrix products of a step alone: a lower bound of the step.

    On a CPU they are measured on one thread and divided by the number of threads.
    """
    network = _network(data, options, device)
    pairs = []
    for matrix, _ in network.layers:
        outs, ins = matrix.shape
        x, delta = torch.randn(size, ins, device=device), torch.randn(size, outs, device=device)
        pairs += [(x, matrix.t()), (delta.t(), x), (delta, matrix)]
    outs = [torch.empty(a.shape[0], b.shape[1], device=device) for a, b in pairs]

    def work() -> None:
        for (a, b), out in zip(pairs, outs, strict=True):
            torch.mm(a, b, out=out)

    with _one_thread() as threads:
        share = threads if device.type == "cpu" else 1
        return min(in_turns([work], 5, 3)[0]) / size / share


@contextmanager
def _one_thread() -> Iterator[int]:
    """Set torch to one thread and restore the previous number at the end; yields that number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def costs_per_row(data: FileData, options: StreamAttentionOptions, device: torch.device) -> dict[str, float]:
    """Bytes, lookups and Mflop per row, the size of the embedding tables, and the number of reader threads."""
    network = _network(data, options, device)
    weights = sum(matrix.numel() for matrix, _ in network.layers)
    tables = sum(table.values.numel() + table.squares.numel() for table in network.tables)
    numbers = sum(n.width for n in data.numbers)
    return {
        "bytes_on_disk": sum({p.path: p.path.stat().st_size for p in data.files.row_groups}.values())
        / data.expected_rows,
        "bytes_decoded": 4.0 * (numbers + len(data.categories) + 2),
        "rows_of_tables": len(data.categories),
        "megaflop": 6 * weights / 1e6,
        "mib_of_tables": 4 * tables / 2**20,
        "readers": reader_threads(),
    }


def profile_step(
    data: FileData, options: StreamAttentionOptions, batches: list[FileBatch], device: torch.device
) -> list[dict[str, Any]]:
    """Microseconds per step of each kernel (on a CPU: each operation, on one thread), the longest first."""
    method = STREAMED_METHODS["sequential_attention"]
    trial = StreamTrial(data, 0, options, device, method.make_gate, SINGLE_PROCESS, batches[0].rows.count)
    phase = method.schedule(2, options)[-1]
    trial.start_phase()
    on_gpu = device.type == "cuda"
    steps = batches[: min(PROFILED_STEPS, len(batches) - 1)]
    with _one_thread():  # the profiler does not see other threads
        for batch in steps[:4]:
            trial.step(phase, batch)
        synchronize()
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiled:
            for batch in steps:
                trial.step(phase, batch)
            synchronize()
    spent = []
    for event in profiled.key_averages():
        microseconds = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if microseconds and not (on_gpu and event.key.startswith(("cuda", "Activity"))):
            spent.append((microseconds / len(steps), event.count / len(steps), event.key[:80]))
    return [
        {"name": name, "microseconds": microseconds, "calls": calls}
        for microseconds, calls, name in sorted(spent, reverse=True)[:25]
    ]


def bottleneck(rates: dict[str, float], memory_rate: float) -> str:
    """The stage that limits the rate of the selection, in words."""
    if memory_rate <= rates["reading, all threads"]:
        share = memory_rate / rates["bare products"]
        return f"the training step ({share:.0%} of the rate of its bare matrix products)"
    slowest = min(("read", "decode", "shuffle"), key=lambda stage: rates[stage])
    return f"reading, and most of it: {slowest}"
