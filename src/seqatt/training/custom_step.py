"""Trials that walk side by side, for methods with a training step of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol

import torch

from seqatt.data.tables.table_data import TableData
from seqatt.selection import Trace
from seqatt.training.backend.threads import run_concurrently, training_threads
from seqatt.training.batch import DeviceTable
from seqatt.training.build import NOISE, ORDER, Member
from seqatt.training.defaults import batch_size_for, steps_for
from seqatt.training.loader import InMemoryLoader, MemberData
from seqatt.training.loop import Diverged, NonFiniteLoss
from seqatt.training.options import NetworkOptions


class CustomTrainer(Protocol):
    """Some trials that train in one step: ``steps`` yields what was done, ``traces`` is the answer."""

    def steps(self) -> Iterator[int]: ...

    def traces(self) -> list[Trace]: ...

    def is_thread_invariant(self) -> bool: ...


def group_seeds(seeds: Sequence[int], device: torch.device) -> list[list[int]]:
    """All trials together on an accelerator, one by one on a CPU, where company then changes nothing."""
    return [[seed] for seed in seeds] if device.type == "cpu" else [list(seeds)]


def make_loader(
    source: TableData, rows: DeviceTable, seeds: Sequence[int], options: NetworkOptions
) -> InMemoryLoader:
    """Batches for one model a trial, which learns from all rows."""
    members = [Member(seed, 0) for seed in seeds]
    draws = [MemberData(member.generator(ORDER), member.generator(NOISE)) for member in members]
    return InMemoryLoader(rows, batch_size_for(source.rows, options.batch_size), draws)


def steps_of(source: TableData, k: int, options: NetworkOptions) -> int:
    """Of one training, by the rule for all methods."""
    batch = batch_size_for(source.rows, options.batch_size)
    return steps_for(source.rows, batch, options.epochs, k)


def settings(source: TableData, k: int, options: NetworkOptions) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = batch_size_for(source.rows, options.batch_size)
    steps = steps_of(source, k, options)
    return options.record() | {"batch_size": batch, "steps": steps, "epochs": steps * batch / source.rows}


def train_custom(
    kind: Callable[..., CustomTrainer],
    source: TableData,
    k: int,
    seeds: Sequence[int],
    options: NetworkOptions,
    device: torch.device,
    advance: Callable[[int], None],
) -> list[Trace]:
    """Let every trial take its steps; on a CPU each takes them on a thread of its own.

    Its products are small, and threads that wait for each other cost more than they give.
    """
    rows = DeviceTable(source, device)
    steps = steps_of(source, k, options)
    with training_threads(0, device) as threads, torch.no_grad():
        walks = [
            kind(source, rows, k, steps, trials, options, device) for trials in group_seeds(seeds, device)
        ]
        workers = min(len(walks), threads) if all(walk.is_thread_invariant() for walk in walks) else 1
        try:
            if workers > 1:
                run_concurrently([walk.steps() for walk in walks], workers, advance)
            else:
                for done in zip_longest(*(walk.steps() for walk in walks)):
                    advance(done[0] or 0)
        except NonFiniteLoss:
            # What was never finished has chosen nothing.
            ranked = [trace.order + trace.rest for walk in walks for trace in walk.traces()]
            raise Diverged([Trace([], order) for order in ranked]) from None
        return [trace for walk in walks for trace in walk.traces()]
