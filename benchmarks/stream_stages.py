"""Stages of a selection from files: the rate of each alone, the costs per row, and the profile of a step."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from timing import in_turns, synchronize
from torch.profiler import ProfilerActivity, profile

from seqatt.algorithms.registry import get_method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.read_data import EMBEDDED
from seqatt.api.read_files import make_source, read_files
from seqatt.data.files.encoding.rows import FileBatch, concatenate
from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import read_row_group
from seqatt.data.files.loader import FileLoader, make_loader
from seqatt.data.files.options import FileOptions
from seqatt.data.files.prefetch import reader_threads
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.training.loaders.device_transfer import DeviceTransfer
from seqatt.training.model_factory import count_model_columns, embedding_width
from seqatt.training.models.architecture import MLPShape

TIMED_ROWS = 1 << 18  # rows on which the stages are timed, at least
PROFILED_STEPS = 40  # at most
METHOD = get_method("sequential_attention")


class Prepared(NamedTuple):
    """A selection from files that is ready to train."""

    request: SelectionRequest
    plan: Any
    options: FileOptions

    @property
    def data(self) -> FileData:
        assert isinstance(self.request.data, FileData)
        return self.request.data

    @property
    def batch_size(self) -> int:
        return int(self.plan.setup.batch_size)

    @property
    def shape(self) -> MLPShape:
        training = self.request.options
        columns = count_model_columns(self.data, training)
        return MLPShape(columns, training.hidden, self.data.target.outputs, training.activation)

    def load(self) -> FileLoader:
        """The batches of one pass."""
        assert self.request.source is not None
        return self.request.source.make_loader(0, self.batch_size, 1)

    def train(self, batches: Sequence[FileBatch] | None = None) -> list[str]:
        """The names of the selected features, trained from the files or on batches in memory."""
        request = self.request
        if batches is not None:
            assert request.source is not None
            in_memory = LoadedBatches(batches)
            request = replace(request, source=replace(request.source, make_loader=lambda *_: in_memory))
        [trace] = METHOD.select(request, self.plan, lambda steps: None)
        return [self.data.names[feature] for feature in trace.order]


class LoadedBatches:
    """Batches in memory in the place of a ``FileLoader``: one pass over exactly these."""

    skips_bad_files = False

    def __init__(self, batches: Sequence[FileBatch]) -> None:
        rows = float(sum(batch.total for batch in batches))
        self._batches = [batch._replace(expected_rows=rows) for batch in batches]

    def __iter__(self) -> Iterator[FileBatch]:
        return iter(self._batches)


def prepare(files: list[str], k: int, device: torch.device, **options: Any) -> Prepared:
    """One pass over the files; ``options`` are those of Sequential Attention."""
    file_options = FileOptions(log1p=True, memory=0)
    reading = read_files(files, "click", file_options, "mixed", encoding=EMBEDDED, ranks=SINGLE_PROCESS)
    assert isinstance(reading.data, FileData)
    data, source = make_source(reading.data, file_options, SINGLE_PROCESS)
    request = SelectionRequest(data, k, [0], METHOD.options(epochs=1, **options), device, source=source)
    return Prepared(request, METHOD.plan(request), file_options)


def stage_rates(prepared: Prepared, device: torch.device) -> dict[str, float]:
    """Rows per second of every stage: the first three on one thread, reading on all its threads."""
    data, size = prepared.data, prepared.batch_size
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
    _, seconds = _timed(lambda: deque(make_loader(data, prepared.options, size, 0), maxlen=0))
    rates["reading, all threads"] = data.expected_rows / seconds
    rates["bare products"] = 1 / _product_seconds(prepared.shape, size, device)
    return rates


def _timed(work: Any) -> tuple[Any, float]:
    synchronize()
    started = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - started


def _product_seconds(shape: MLPShape, size: int, device: torch.device) -> float:
    """Seconds per row of the matrix products of a step alone: a lower bound of the step.

    On a CPU they are measured on one thread and divided by the number of threads.
    """
    pairs = []
    for outs, ins in shape.sizes:
        matrix = torch.randn(outs, ins, device=device)
        x, delta = torch.randn(ins, size, device=device), torch.randn(outs, size, device=device)
        pairs += [(matrix, x), (delta, x.t()), (matrix.t(), delta)]
    products = [torch.empty(a.shape[0], b.shape[1], device=device) for a, b in pairs]

    def work() -> None:
        for (a, b), out in zip(pairs, products, strict=True):
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


def costs_per_row(prepared: Prepared) -> dict[str, float]:
    """Bytes, lookups and Mflop per row, the size of the embedding tables, and the number of reader threads."""
    data = prepared.data
    weights = sum(outs * ins for outs, ins in prepared.shape.sizes)
    tables = sum(data.code_counts) * (1 + embedding_width(data, prepared.request.options))
    return {
        "bytes_on_disk": sum({p.path: p.path.stat().st_size for p in data.files.row_groups}.values())
        / data.expected_rows,
        "bytes_decoded": float(data.row_bytes),
        "rows_of_tables": len(data.categories),
        "megaflop": 6 * weights / 1e6,
        "mib_of_tables": 4 * tables / 2**20,
        "readers": reader_threads(),
    }


def profile_step(prepared: Prepared, batches: list[FileBatch], device: torch.device) -> list[dict[str, Any]]:
    """Microseconds per step of each kernel (on a CPU: each operation, on one thread), the longest first."""
    on_gpu = device.type == "cuda"
    steps = batches[: min(PROFILED_STEPS, len(batches) - 1)]
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with _one_thread(), profile(activities=[activity]) as profiled:  # the profiler does not see other threads
        prepared.train(steps)
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
