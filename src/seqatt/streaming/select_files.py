"""``select`` on files: checks the options, reads the schema, trains or accumulates, and makes the selections."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from typing import Any

import torch

from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.checkpoints.run_description import describe_run
from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import count_shards
from seqatt.data.tables.table_data import resolve_k
from seqatt.distributed.process_group import ProcessGroup, device_of_rank
from seqatt.progress import progress_bar
from seqatt.selection import Selection, Trace, TrainingDiverged, describe_environment, make_selection
from seqatt.streaming.options import (
    CMIMSumOptions,
    StreamTrainingOptions,
    SumOptions,
    make_stream_options,
)
from seqatt.streaming.sums.accumulate import accumulate
from seqatt.streaming.sums.cmim import PairCounts
from seqatt.streaming.sums.least_squares import GramAccumulator
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import resolve_settings
from seqatt.streaming.trials import StreamTraining
from seqatt.training.loop import Diverged

MAX_COUNTED = 1 << 12  # values per category that sums distinguish before they keep the most frequent


def select_files(
    where: Any,
    target: Any,
    k: Any,
    *,
    seeds: Sequence[int],
    method: str,
    device: torch.device,
    progress: bool,
    options: dict[str, Any],
) -> list[Selection]:
    """One selection per seed. Training reads the files once per seed and pass, sums once for all seeds."""
    run_options, method_options = read_options(method, options)
    codes = method_options.hash_buckets if isinstance(method_options, StreamTrainingOptions) else MAX_COUNTED
    data = read_file_data(where, target, method_options, codes)
    count = resolve_k(k, data.features)
    if isinstance(method_options, SumOptions):
        with closing(ProcessGroup(torch.device("cpu"), run_options.rank_timeout)) as group:
            return _accumulate(
                data, count, method, method_options, seeds, device, progress, group, run_options
            )
    assert isinstance(method_options, StreamTrainingOptions)
    device = device_of_rank(device)
    with closing(ProcessGroup(device, run_options.rank_timeout)) as group:
        return _train(data, count, method, method_options, seeds, device, progress, group, run_options)


def read_options(method: str, options: Mapping[str, Any]) -> tuple[CheckpointOptions, FileOptions]:
    """Divide the options into those of checkpoints and those of the method, and check them."""
    of_run = {f.name: options[f.name] for f in fields(CheckpointOptions) if f.name in options}
    of_method = make_stream_options(method, {name: options[name] for name in options if name not in of_run})
    return CheckpointOptions(**of_run), of_method


def _train(
    data: FileData,
    k: int,
    method: str,
    options: StreamTrainingOptions,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    group: ProcessGroup,
    checkpoint_options: CheckpointOptions,
) -> list[Selection]:
    """Train one trial per seed, one after another."""
    streamed_method = STREAMED_METHODS[method]
    schedule = streamed_method.schedule(k, options)
    resolved = resolve_settings(data, schedule, options)
    size, shards = resolved["batch_size"], count_shards(options.shards, group.size)
    if size < shards:
        raise ValueError(
            f"batch_size: {size} is less than one row for each of {shards} shards; use at least {shards}"
        )
    resolved |= {"shards": shards}
    rows = round(options.passes * data.expected_rows)

    def selection(seed: int, trace: Trace, seconds: float) -> Selection:
        return _selection(data, trace, k, method, seed, resolved, device, seconds)

    checkpointer = Checkpointer(checkpoint_options, group.rank == 0)
    training = StreamTraining(data, options, streamed_method, schedule, resolved, device, group, checkpointer)
    try:
        training.begin(method, k, seeds)
        for seed in seeds:
            if seed in training.finished:
                continue
            started = time.perf_counter()
            with progress_bar(streamed_method.title, rows, shown=progress and group.rank == 0) as advance:
                try:
                    trace = training.trial(seed, advance)
                except Diverged as error:
                    seconds = time.perf_counter() - started
                    selections = [selection(seed, trace, seconds) for trace in error.traces]
                    raise TrainingDiverged(str(error), selections) from None
            training.finish(seed, trace, time.perf_counter() - started, last=seed == seeds[-1])
    finally:
        training.end()
    return [selection(seed, *training.finished[seed]) for seed in seeds]


def _accumulate(
    data: FileData,
    k: int,
    method: str,
    options: SumOptions,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    group: ProcessGroup,
    checkpoint_options: CheckpointOptions,
) -> list[Selection]:
    """Accumulate sums over all rows in one pass and select from them."""
    started = time.perf_counter()
    shards = count_shards(options.shards, group.size)
    sums: PairCounts | GramAccumulator
    if isinstance(options, CMIMSumOptions):
        title, sums = "CMIM", PairCounts(data, options)
    else:
        title, sums = "Least squares", GramAccumulator(data, method, options)
    resolved = sums.settings | {"shards": shards}
    run = describe_run(data, method, k, [], resolved)
    for name in ("k", "lazy", "parameterisation"):  # the sums do not depend on these
        run.pop(name, None)
    with progress_bar(title, round(data.expected_rows), shown=progress and group.rank == 0) as advance:
        settings = accumulate(data, options, shards, sums, run, group, checkpoint_options, advance)
    trace = sums.select(k)
    trace.settings |= settings
    seconds = time.perf_counter() - started
    return [  # no randomness: the same result for all seeds
        _selection(data, trace, k, method, seed, resolved, device, seconds) for seed in seeds
    ]


def _selection(
    data: FileData,
    trace: Trace,
    k: int,
    method: str,
    seed: int,
    resolved: dict[str, Any],
    device: torch.device,
    seconds: float,
) -> Selection:
    request = {
        "k": k,
        "task": data.target.task,
        "files": len({row_group.path for row_group in data.files.row_groups}),
    }
    return make_selection(
        data,
        trace,
        method=method,
        seed=seed,
        settings=resolved | request | {"columns": dict(data.kinds)} | trace.settings,
        environment=describe_environment(str(device)),
        seconds=seconds,
    )
