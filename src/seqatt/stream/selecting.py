"""Selecting from files: from what a user says to selections."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from typing import Any

import torch

from seqatt.neural.engine import Diverged
from seqatt.progress import progress_bar
from seqatt.selection import Selection, Trace, TrainingDiverged, describe_environment, make_selection
from seqatt.source import resolve_k
from seqatt.stream import walk
from seqatt.stream.cmim import Counts
from seqatt.stream.dealing import share_out
from seqatt.stream.description import describe
from seqatt.stream.gathering import gather
from seqatt.stream.keeping import Keeper, Keeping
from seqatt.stream.least_squares import Products
from seqatt.stream.options import CMIMOnFiles, GatheringOnFiles, Reading, TrainingOnFiles, make_options
from seqatt.stream.ranks import Team, own_device
from seqatt.stream.source import Stream, read_stream
from seqatt.stream.training import Training
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
    keeping, made = read_options(method, options)
    stream = read_stream(where, target, made, made.buckets if isinstance(made, TrainingOnFiles) else KNOWN)
    count = resolve_k(k, stream.features)
    if isinstance(made, GatheringOnFiles):
        with closing(Team(torch.device("cpu"), keeping.rank_timeout)) as team:
            return _gather(stream, count, method, made, seeds, device, progress, team, keeping)
    assert isinstance(made, TrainingOnFiles)
    device = own_device(device)
    with closing(Team(device, keeping.rank_timeout)) as team:
        return _train(stream, count, method, made, seeds, device, progress, team, keeping)


def read_options(method: str, options: Mapping[str, Any]) -> tuple[Keeping, Reading]:
    """What was said about the run and about the method, checked."""
    about_run = {f.name: options[f.name] for f in fields(Keeping) if f.name in options}
    made = make_options(method, {name: options[name] for name in options if name not in about_run})
    return Keeping(**about_run), made


def _train(
    stream: Stream,
    k: int,
    method: str,
    options: TrainingOnFiles,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    team: Team,
    keeping: Keeping,
) -> list[Selection]:
    its = WALKS[method]
    schedule = its.schedule(k, options)
    resolved = walk.settings(stream, schedule, options)
    size, shards = resolved["batch_size"], share_out(options.shards, team.size)
    if size < shards:
        raise ValueError(f"batch_size: {size} rows do not go round {shards} shards; use a larger one")
    resolved |= {"shards": shards}
    rows = round(options.passes * stream.expected)

    def selection(seed: int, trace: Trace, seconds: float) -> Selection:
        return _selection(stream, trace, k, method, seed, resolved, device, seconds)

    keeper = Keeper(keeping, team.rank == 0)
    training = Training(stream, options, its, schedule, resolved, device, team, keeper)
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
    stream: Stream,
    k: int,
    method: str,
    options: GatheringOnFiles,
    seeds: Sequence[int],
    device: torch.device,
    progress: bool,
    team: Team,
    keeping: Keeping,
) -> list[Selection]:
    """Methods that gather sums in one pass and choose from those."""
    started = time.perf_counter()
    shards = share_out(options.shards, team.size)
    sums: Counts | Products
    if isinstance(options, CMIMOnFiles):
        title, sums = "CMIM", Counts(stream, options)
    else:
        title, sums = "Least squares", Products(stream, method, options)
    resolved = sums.settings | {"shards": shards}
    run = describe(stream, method, k, [], resolved)
    for name in ("k", "lazy", "parameterisation"):  # which the sums do not depend on
        run.pop(name, None)
    with progress_bar(title, round(stream.expected), shown=progress and team.rank == 0) as advance:
        found = gather(stream, options, shards, sums, run, team, keeping, advance)
    trace = sums.choose(k)
    trace.settings |= found
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
