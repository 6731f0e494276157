"""Trials that walk side by side, for methods with a training step of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol

import torch

from seqatt.neural.budget import batch_size_for, steps_for
from seqatt.neural.engine import Diverged, NotANumber
from seqatt.neural.feed import Draws, Feed
from seqatt.neural.lanes import NOISE, ORDER, Member
from seqatt.neural.options import Network
from seqatt.neural.rows import Rows
from seqatt.neural.threads import side_by_side, threads_for
from seqatt.selection import Trace
from seqatt.source import Source


class Walk(Protocol):
    """Some trials that train in one step: ``steps`` yields what was done, ``traces`` is the answer."""

    def steps(self) -> Iterator[int]: ...

    def traces(self) -> list[Trace]: ...

    def shares_nothing(self) -> bool: ...


def trials_apart(seeds: Sequence[int], device: torch.device) -> list[list[int]]:
    """All trials together on an accelerator, one by one on a CPU, where company then changes nothing."""
    return [[seed] for seed in seeds] if device.type == "cpu" else [list(seeds)]


def make_feed(source: Source, rows: Rows, seeds: Sequence[int], options: Network) -> Feed:
    """Batches for one model a trial, which learns from all rows."""
    members = [Member(seed, 0) for seed in seeds]
    draws = [Draws(member.generator(ORDER), member.generator(NOISE)) for member in members]
    return Feed(rows, batch_size_for(source.rows, options.batch_size), draws)


def steps_of(source: Source, k: int, options: Network) -> int:
    """Of one training, by the rule for all methods."""
    batch = batch_size_for(source.rows, options.batch_size)
    return steps_for(source.rows, batch, options.epochs, k)


def settings(source: Source, k: int, options: Network) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = batch_size_for(source.rows, options.batch_size)
    steps = steps_of(source, k, options)
    return options.record() | {"batch_size": batch, "steps": steps, "epochs": steps * batch / source.rows}


def walk_all(
    kind: Callable[..., Walk],
    source: Source,
    k: int,
    seeds: Sequence[int],
    options: Network,
    device: torch.device,
    advance: Callable[[int], None],
) -> list[Trace]:
    """Let every trial take its steps; on a CPU each takes them on a thread of its own.

    Its products are small, and threads that wait for each other cost more than they give.
    """
    rows = Rows(source, device)
    steps = steps_of(source, k, options)
    with threads_for(0, device) as threads, torch.no_grad():
        walks = [
            kind(source, rows, k, steps, trials, options, device) for trials in trials_apart(seeds, device)
        ]
        workers = min(len(walks), threads) if all(walk.shares_nothing() for walk in walks) else 1
        try:
            if workers > 1:
                side_by_side([walk.steps() for walk in walks], workers, advance)
            else:
                for done in zip_longest(*(walk.steps() for walk in walks)):
                    advance(done[0] or 0)
        except NotANumber:
            # What was never finished has chosen nothing.
            ranked = [trace.order + trace.rest for walk in walks for trace in walk.traces()]
            raise Diverged([Trace([], order) for order in ranked]) from None
        return [trace for walk in walks for trace in walk.traces()]
