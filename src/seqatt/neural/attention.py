"""Sequential Attention (paper, Algorithm 1 and its one-pass form) as a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from seqatt.neural.budget import batch_size_for, default_decay, default_replacement, steps_for
from seqatt.neural.engine import run
from seqatt.neural.gates.attention import Attention
from seqatt.neural.lanes import make_attention, make_lanes, work_of
from seqatt.neural.options import AttentionOptions
from seqatt.neural.schedule import Schedule, algorithm_1, one_pass, takes
from seqatt.neural.threads import threads_for
from seqatt.selection import Trace
from seqatt.source import Source


def plan(source: Source, k: int, options: AttentionOptions) -> Schedule:
    """The schedule a run will follow; its steps add up to the budget."""
    batch = batch_size_for(source.rows, options.batch_size)
    steps = steps_for(source.rows, batch, options.epochs, k)
    if options.features_per_phase > k:
        raise ValueError(
            f"features_per_phase: {options.features_per_phase} is more than the k={k} features asked for"
        )
    each = options.features_per_phase
    if not options.one_pass:
        return algorithm_1(k, steps, features_per_phase=each)
    # A choice comes from trained logits, so it needs a step however short the training is.
    steps = max(steps, math.ceil(len(takes(k, each)) / (1 - options.warmup)) + 1)
    rounds = _replacement(source, k, options)
    while True:
        schedule = one_pass(
            k,
            steps,
            features_per_phase=each,
            warmup=options.warmup,
            replacement=rounds,
            fresh=options.reset_model,
        )
        if rounds == 0 or all(phase.steps for phase in schedule if phase.take):
            return schedule
        rounds -= 1


def _replacement(source: Source, k: int, options: AttentionOptions) -> int:
    if k == source.features:
        return 0  # nothing to replace them with
    return default_replacement(k) if options.replacement is None else options.replacement


def _decay(source: Source, options: AttentionOptions) -> float:
    return default_decay(source.rows) if options.weight_decay is None else options.weight_decay


def sequential_attention(
    source: Source,
    k: int,
    seeds: Sequence[int],
    options: AttentionOptions,
    device: torch.device,
    schedule: Schedule,
    advance: Callable[[int], None],
) -> list[Trace]:
    mask = options.make_mask()

    def make_gate(trials: int) -> Attention:
        return make_attention(trials, source.features, mask, options.learning_rate, device)

    with threads_for(work_of(source, options), device) as threads:
        lanes = make_lanes(source, seeds, options, device, make_gate, _decay(source, options))
        return run(lanes, schedule, advance, threads)


def settings(source: Source, options: AttentionOptions, schedule: Schedule) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = batch_size_for(source.rows, options.batch_size)
    steps = sum(phase.steps for phase in schedule)
    return options.record() | {
        "batch_size": batch,
        "replacement": sum(phase.drop > 0 for phase in schedule),
        "weight_decay": _decay(source, options),
        "steps": steps,
        "epochs": steps * batch / source.rows,
    }
