"""Sequential Attention (paper, Algorithm 1 and its one-pass form) as a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from seqatt.neural.budget import default_batch_size, default_steps, steps_of
from seqatt.neural.engine import run, threads_for
from seqatt.neural.gates.attention import Attention
from seqatt.neural.lanes import make_lanes, work_of
from seqatt.neural.options import AttentionOptions
from seqatt.neural.schedule import Schedule, algorithm_1, one_pass
from seqatt.selection import Trace
from seqatt.source import Source


def plan(source: Source, k: int, options: AttentionOptions) -> Schedule:
    """The schedule a run will follow; its steps add up to the budget."""
    batch = min(options.batch_size or default_batch_size(source.rows), source.rows)
    if options.epochs is None:
        steps = default_steps(source.rows, batch, k)
    else:
        steps = steps_of(options.epochs, source.rows, batch)
    if options.features_per_phase > k:
        raise ValueError(
            f"features_per_phase: {options.features_per_phase} is more than the k={k} features asked for"
        )
    if not options.one_pass:
        return algorithm_1(k, steps, features_per_phase=options.features_per_phase)
    return one_pass(
        k,
        steps,
        features_per_phase=options.features_per_phase,
        warmup=options.warmup,
        replacement=options.replacement if k < source.features else 0,
        fresh=options.reset_model,
    )


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
        return Attention(trials, source.features, mask, options.learning_rate, device)

    with threads_for(work_of(source, options), device):
        lanes = make_lanes(source, seeds, options, device, make_gate)
        return run(lanes, schedule, advance)


def settings(source: Source, options: AttentionOptions, schedule: Schedule) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = min(options.batch_size or default_batch_size(source.rows), source.rows)
    steps = sum(phase.steps for phase in schedule)
    return options.record() | {
        "batch_size": batch,
        "steps": steps,
        "epochs": steps * batch / source.rows,
    }
