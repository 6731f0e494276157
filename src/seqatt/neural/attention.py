"""Sequential Attention (paper, Algorithm 1 and its one-pass form) as a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from seqatt.neural.body import Body
from seqatt.neural.budget import (
    batch_size_for,
    default_decay,
    default_evidence,
    default_input_dropout,
    default_members,
    default_replacement,
    default_squash,
    steps_for,
)
from seqatt.neural.doubt import Doubt
from seqatt.neural.engine import Lane, run
from seqatt.neural.evidence import evidence
from seqatt.neural.gates.attention import Attention
from seqatt.neural.lanes import Member, make_attention, make_lanes, work_of
from seqatt.neural.options import AttentionOptions
from seqatt.neural.sample import draw
from seqatt.neural.schedule import Schedule, algorithm_1, one_pass, takes
from seqatt.neural.squash import squashed
from seqatt.neural.threads import threads_for
from seqatt.selection import Trace
from seqatt.source import Source

CHOICES = 50  # phases, at most, in which a surplus is chosen: in more, a phase would be a handful of steps


def plan(source: Source, k: int, options: AttentionOptions) -> Schedule:
    """The schedule each model will follow; the steps of a trial's models add up to the budget."""
    batch = _batch_size(source, options)
    steps = max(1, steps_for(source.rows, batch, options.epochs, k) // members_of(source, options))
    each = options.features_per_phase
    informative = int((~source.constant).sum())
    surplus = max(0, round(min(options.surplus * k, informative)) - k) if options.one_pass else 0
    if each is not None and each > k + surplus:
        raise ValueError(
            f"features_per_phase: {each} is more than the {k + surplus} features to choose "
            f"(k={k} and a surplus of {surplus})"
        )
    if not options.one_pass:
        return algorithm_1(k, steps, features_per_phase=each or 1)
    rounds = _replacement(source, k, options)
    # A choice comes from trained logits, so it needs a step however short the training is.
    steps = max(steps, math.ceil(len(takes(k, each or 1)) / (1 - options.warmup)) + 1)
    while True:
        schedule = one_pass(
            k,
            steps,
            features_per_phase=each or (-(-(k + surplus) // min(k, CHOICES)) if surplus else 1),
            warmup=options.warmup,
            surplus=surplus,
            replacement=rounds,
            fresh=options.reset_model,
        )
        if not (rounds or surplus) or all(phase.steps for phase in schedule if phase.take):
            return schedule
        if rounds:
            rounds -= 1
        else:
            surplus = 0


def _batch_size(source: Source, options: AttentionOptions) -> int:
    return batch_size_for(source.rows, options.batch_size, members_of(source, options))


def members_of(source: Source, options: AttentionOptions) -> int:
    """Models in a trial's committee: one where the user brought the model, or for Algorithm 1 as printed."""
    if options.ensemble is not None:
        return options.ensemble
    return default_members(source.rows) if options.one_pass and options.model is None else 1


def _replacement(source: Source, k: int, options: AttentionOptions) -> int:
    if k == source.features:
        return 0  # nothing to replace them with
    return default_replacement(k) if options.replacement is None else options.replacement


def _decay(source: Source, options: AttentionOptions) -> float:
    return default_decay(source.rows) if options.weight_decay is None else options.weight_decay


def _input_dropout(source: Source, options: AttentionOptions) -> float:
    if options.input_dropout is not None:
        return options.input_dropout
    return default_input_dropout(source.rows, len(source.owner)) if options.one_pass else 0.0


def _evidence(source: Source, options: AttentionOptions) -> float:
    if options.evidence is not None:
        return options.evidence
    return default_evidence(source.rows, len(source.owner)) if options.one_pass else 0.0


def _squash(source: Source, options: AttentionOptions) -> bool:
    """Your own model is shown numbers as they are, and so is one that is to be linear in them."""
    if options.squash is not None:
        return options.squash
    built_in = options.one_pass and options.model is None and bool(options.hidden)
    return built_in and default_squash(source.rows, len(source.owner))


def _doubt(source: Source, options: AttentionOptions) -> Doubt | None:
    """What speaks against each feature before any training, if that is heard and makes a difference.

    It is nothing for those beyond doubt, so that their scores are those of attention alone.
    """
    most = _evidence(source, options)
    if not most:
        return None
    sample = draw(source)
    short = np.minimum(evidence(sample), most) - most
    return Doubt(sample, short) if len(np.unique(short[~source.constant])) > 1 else None


def prepare(
    source: Source, seeds: Sequence[int], options: AttentionOptions, device: torch.device
) -> list[Lane]:
    """Everything a run needs, on the device and ready to walk through a schedule."""
    mask = options.make_mask()
    source = squashed(source) if _squash(source, options) else source

    def make_gate(body: Body, members: Sequence[Member]) -> Attention:
        return make_attention(len(members), source.features, mask, options.learning_rate, device)

    return make_lanes(
        source,
        seeds,
        options,
        device,
        make_gate,
        decay=_decay(source, options),
        members=members_of(source, options),
        dropout=_input_dropout(source, options),
        doubt=_doubt(source, options),
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
    with threads_for(work_of(source, options), device) as threads:
        return run(prepare(source, seeds, options, device), schedule, advance, threads)


def settings(source: Source, k: int, options: AttentionOptions, schedule: Schedule) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = _batch_size(source, options)
    members = members_of(source, options)
    steps = sum(phase.steps for phase in schedule)
    return options.record() | {
        "batch_size": batch,
        "ensemble": members,
        "features_per_phase": max(phase.take for phase in schedule),
        "evidence": _evidence(source, options),
        "input_dropout": _input_dropout(source, options),
        "squash": _squash(source, options),
        "surplus": sum(phase.drop for phase in schedule if phase.steps) / k + 1,
        "replacement": sum(phase.drop > 0 and phase.steps == 0 for phase in schedule),
        "weight_decay": _decay(source, options),
        "steps": steps,
        "epochs": members * steps * batch / source.rows,
    }
