"""Where the time of a selection from files goes: each stage alone, what a step is made of, and its floors."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from common import in_turns, wait
from torch.profiler import ProfilerActivity, profile

from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import read_row_group
from seqatt.data.files.loader import FileBatch, make_loader
from seqatt.data.files.prefetch import reader_threads
from seqatt.data.files.rows import concatenate
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.streaming.device_transfer import DeviceTransfer
from seqatt.streaming.network import EmbeddingMLP
from seqatt.streaming.options import StreamAttentionOptions
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import StreamTrial

SOME_ROWS = 1 << 18  # that stages are timed on
SOME_STEPS = 30


def stages(
    stream: FileData, options: StreamAttentionOptions, size: int, device: torch.device
) -> dict[str, float]:
    """Rows a second of every stage: the first three on one thread, reading on all it has."""
    count = 0
    some = []
    for part in stream.files.parts:
        some.append(part)
        count += part.rows or 0
        if count >= SOME_ROWS:
            break
    read, seconds = _timed(
        lambda: [b for p in some for b, _ in read_row_group(p, stream.types, stream.kinds)]
    )
    rates = {"read": count / seconds}
    decoded, seconds = _timed(lambda: [stream.decode(batch) for batch in read])
    rates["decode"] = count / seconds
    order = torch.randperm(count).numpy()
    mixed, seconds = _timed(lambda: concatenate(decoded).take(order))
    rates["mix"] = count / seconds
    batches = [mixed.take(slice(i, i + size)) for i in range(0, count - size + 1, size)]
    carrier = DeviceTransfer(device)
    carrier.bring(batches[0])
    _, seconds = _timed(lambda: deque((carrier.bring(rows) for rows in batches), maxlen=0))
    rates["copy"] = len(batches) * size / seconds
    _, seconds = _timed(lambda: deque(make_loader(stream, options, size, 0), maxlen=0))
    rates["reading, all threads"] = stream.expected / seconds
    rates["bare products"] = 1 / _products(stream, options, size, device)
    return rates


def _timed(work: Any) -> tuple[Any, float]:
    wait()
    started = time.perf_counter()
    done = work()
    wait()
    return done, time.perf_counter() - started


def _network(stream: FileData, options: StreamAttentionOptions, device: torch.device) -> EmbeddingMLP:
    shape = options.hidden, options.activation, options.learning_rate, options.embedding
    return EmbeddingMLP(stream, *shape, 0, device)


def _products(stream: FileData, options: StreamAttentionOptions, size: int, device: torch.device) -> float:
    """Seconds a row of a step's matrix products and nothing else: no step can be faster.

    On a CPU one thread's, over the number of threads: theirs together would wait for each other.
    """
    network = _network(stream, options, device)
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
    """Gives the number of threads there were, and gives them back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def sizes(stream: FileData, options: StreamAttentionOptions, device: torch.device) -> dict[str, float]:
    """What a row costs by construction."""
    network = _network(stream, options, device)
    weights = sum(matrix.numel() for matrix, _ in network.layers)
    tables = sum(table.values.numel() + table.squares.numel() for table in network.tables)
    numbers = sum(n.width for n in stream.numbers)
    return {
        "bytes_on_disk": sum({p.path: p.path.stat().st_size for p in stream.files.parts}.values())
        / stream.expected,
        "bytes_decoded": 4.0 * (numbers + len(stream.categories) + 2),
        "rows_of_tables": len(stream.categories),
        "megaflop": 6 * weights / 1e6,
        "mib_of_tables": 4 * tables / 2**20,
        "readers": reader_threads(),
    }


def parts_of_a_step(
    stream: FileData, options: StreamAttentionOptions, held: list[FileBatch], device: torch.device
) -> list[dict[str, Any]]:
    """Microseconds a step of each kernel (or operation, on one thread of a CPU), the longest first."""
    method = STREAMED_METHODS["sequential_attention"]
    walk = StreamTrial(stream, 0, options, device, method.make_gate, SINGLE_PROCESS, held[0].rows.count)
    phase = method.schedule(2, options)[-1]
    walk.enter()
    on_gpu = device.type == "cuda"
    steps = held[: min(SOME_STEPS, len(held) - 1)]
    with _one_thread():  # the profiler sees no others
        for batch in steps[:4]:
            walk.step(phase, batch)
        wait()
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as seen:
            for batch in steps:
                walk.step(phase, batch)
            wait()
    spent = []
    for event in seen.key_averages():
        micro = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if micro and not (on_gpu and event.key.startswith(("cuda", "Activity"))):
            spent.append((micro / len(steps), event.count / len(steps), event.key[:80]))
    return [
        {"name": name, "microseconds": micro, "calls": calls}
        for micro, calls, name in sorted(spent, reverse=True)[:25]
    ]


def bottleneck(rates: dict[str, float], memory_rate: float) -> str:
    """The stage that a faster other one would not help."""
    if memory_rate <= rates["reading, all threads"]:
        share = memory_rate / rates["bare products"]
        return f"the training step ({share:.0%} of the rate of its bare matrix products)"
    slowest = min(("read", "decode", "mix"), key=lambda stage: rates[stage])
    return f"reading, most of it: {slowest}"
