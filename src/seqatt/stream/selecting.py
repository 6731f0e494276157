"""Selecting from files: from what a user says to selections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from seqatt.neural.engine import Diverged
from seqatt.progress import progress_bar
from seqatt.selection import Selection, Trace, TrainingDiverged, describe_environment, make_selection
from seqatt.source import resolve_k
from seqatt.stream import cmim, least_squares, walk
from seqatt.stream.options import CMIMOnFiles, LinearOnFiles, TrainingOnFiles, make_options
from seqatt.stream.source import Stream, read_stream
from seqatt.stream.walks import WALKS

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
    made = make_options(method, options)
    stream = read_stream(where, target, made, made.buckets if isinstance(made, TrainingOnFiles) else KNOWN)
    count = resolve_k(k, stream.features)
    if isinstance(made, LinearOnFiles):
        return _count(stream, count, method, made, seeds, device, progress)
    assert isinstance(made, TrainingOnFiles)
    return [_train(stream, count, method, made, seed, device, progress) for seed in seeds]


def _train(
    stream: Stream,
    k: int,
    method: str,
    options: TrainingOnFiles,
    seed: int,
    device: torch.device,
    progress: bool,
) -> Selection:
    its = WALKS[method]
    schedule = its.schedule(k, options)
    resolved = walk.settings(stream, schedule, options)
    started = time.perf_counter()
    rows = round(options.passes * stream.expected)
    coming = walk.batches_of(stream, options, resolved["batch_size"], seed)

    def selection(trace: Trace) -> Selection:
        seconds = time.perf_counter() - started
        return _selection(stream, trace, k, method, seed, resolved, device, seconds)

    with progress_bar(its.title, rows, shown=progress) as advance:
        try:
            trace = walk.choose(stream, seed, options, device, schedule, its.make_gate, coming, advance)
        except Diverged as error:
            raise TrainingDiverged(str(error), [selection(trace) for trace in error.traces]) from None
    return selection(trace)


def _count(
    stream: Stream,
    k: int,
    method: str,
    options: LinearOnFiles,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
) -> list[Selection]:
    """Methods that gather sums in one pass and choose from those."""
    started = time.perf_counter()
    with progress_bar(
        "CMIM" if method == "cmim" else "Least squares", round(stream.expected), shown=progress
    ) as advance:
        if isinstance(options, CMIMOnFiles):
            trace, resolved = cmim.choose(stream, k, options, advance)
        else:
            trace, resolved = least_squares.choose(stream, k, method, options, advance)
    seconds = time.perf_counter() - started
    return [  # nothing is drawn: one answer for all seeds
        _selection(stream, trace, k, method, seed, resolved, device, seconds) for seed in seeds
    ]


def _selection(
    stream: Stream,
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
