"""Selecting from files: from what a user says to selections."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from typing import Any

import torch

from seqatt.checkpoints.checkpointer import Checkpointer, CheckpointOptions
from seqatt.checkpoints.run_description import describe_run
from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import count_shards
from seqatt.data.tables.table_data import resolve_k
from seqatt.distributed.process_group import ProcessGroup, device_of_rank
from seqatt.progress import progress_bar
from seqatt.selection import Selection, Trace, TrainingDiverged, describe_environment, make_selection
from seqatt.streaming import trial as walk
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
from seqatt.streaming.trials import StreamTraining
from seqatt.training.loop import Diverged

KNOWN = 1 << 12  # categories that a linear method counts before it keeps the most frequent


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
    """A selection for each seed; every seed reads the files once a pass."""
    keeping, made = read_options(method, options)
    stream = read_file_data(
        where, target, made, made.buckets if isinstance(made, StreamTrainingOptions) else KNOWN
    )
    count = resolve_k(k, stream.features)
    if isinstance(made, SumOptions):
        with closing(ProcessGroup(torch.device("cpu"), keeping.rank_timeout)) as team:
            return _gather(stream, count, method, made, seeds, device, progress, team, keeping)
    assert isinstance(made, StreamTrainingOptions)
    device = device_of_rank(device)
    with closing(ProcessGroup(device, keeping.rank_timeout)) as team:
        return _train(stream, count, method, made, seeds, device, progress, team, keeping)


def read_options(method: str, options: Mapping[str, Any]) -> tuple[CheckpointOptions, FileOptions]:
    """What was said about the run and about the method, checked."""
    about_run = {f.name: options[f.name] for f in fields(CheckpointOptions) if f.name in options}
    made = make_stream_options(method, {name: options[name] for name in options if name not in about_run})
    return CheckpointOptions(**about_run), made


def _train(
    stream: FileData,
    k: int,
    method: str,
    options: StreamTrainingOptions,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    team: ProcessGroup,
    keeping: CheckpointOptions,
) -> list[Selection]:
    its = STREAMED_METHODS[method]
    schedule = its.schedule(k, options)
    resolved = walk.settings(stream, schedule, options)
    size, shards = resolved["batch_size"], count_shards(options.shards, team.size)
    if size < shards:
        raise ValueError(f"batch_size: {size} rows do not go round {shards} shards; use a larger one")
    resolved |= {"shards": shards}
    rows = round(options.passes * stream.expected)

    def selection(seed: int, trace: Trace, seconds: float) -> Selection:
        return _selection(stream, trace, k, method, seed, resolved, device, seconds)

    keeper = Checkpointer(keeping, team.rank == 0)
    training = StreamTraining(stream, options, its, schedule, resolved, device, team, keeper)
    try:
        training.begin(method, k, seeds)
        for seed in seeds:
            if seed in training.finished:
                continue
            started = time.perf_counter()
            with progress_bar(its.title, rows, shown=progress and team.rank == 0) as advance:
                try:
                    trace = training.trial(seed, advance)
                except Diverged as error:
                    seconds = time.perf_counter() - started
                    found = [selection(seed, trace, seconds) for trace in error.traces]
                    raise TrainingDiverged(str(error), found) from None
            training.finish(seed, trace, time.perf_counter() - started, last=seed == seeds[-1])
    finally:
        training.end()
    return [selection(seed, *training.finished[seed]) for seed in seeds]


def _gather(
    stream: FileData,
    k: int,
    method: str,
    options: SumOptions,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    team: ProcessGroup,
    keeping: CheckpointOptions,
) -> list[Selection]:
    """Methods that gather sums in one pass and choose from those."""
    started = time.perf_counter()
    shards = count_shards(options.shards, team.size)
    sums: PairCounts | GramAccumulator
    if isinstance(options, CMIMSumOptions):
        title, sums = "CMIM", PairCounts(stream, options)
    else:
        title, sums = "Least squares", GramAccumulator(stream, method, options)
    resolved = sums.settings | {"shards": shards}
    run = describe_run(stream, method, k, [], resolved)
    for name in ("k", "lazy", "parameterisation"):  # which the sums do not depend on
        run.pop(name, None)
    with progress_bar(title, round(stream.expected), shown=progress and team.rank == 0) as advance:
        found = accumulate(stream, options, shards, sums, run, team, keeping, advance)
    trace = sums.choose(k)
    trace.settings |= found
    seconds = time.perf_counter() - started
    return [  # nothing is drawn: one answer for all seeds
        _selection(stream, trace, k, method, seed, resolved, device, seconds) for seed in seeds
    ]


def _selection(
    stream: FileData,
    trace: Trace,
    k: int,
    method: str,
    seed: int,
    resolved: dict[str, Any],
    device: torch.device,
    seconds: float,
) -> Selection:
    about = {
        "k": k,
        "task": stream.target.task,
        "files": len({part.path for part in stream.files.parts}),
    }
    return make_selection(
        stream,
        trace,
        method=method,
        seed=seed,
        settings=resolved | about | {"columns": dict(stream.kinds)} | trace.settings,
        environment=describe_environment(str(device)),
        seconds=seconds,
    )
