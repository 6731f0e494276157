"""Sequential Attention (paper, Algorithm 1 and its one-pass form) as a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from seqatt.data.tables.table_data import TableData
from seqatt.selection import Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import Member, largest_product, make_attention, make_trial_groups
from seqatt.training.defaults import (
    batch_size_for,
    default_decay,
    default_evidence,
    default_input_dropout,
    default_members,
    default_replacement,
    default_squash,
    steps_for,
)
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.loop import TrialGroup, train
from seqatt.training.models.model import Model
from seqatt.training.options import AttentionOptions
from seqatt.training.schedule import Schedule, algorithm_1, one_pass, takes_per_phase
from seqatt.training.screening.asinh import asinh_columns
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.screening.univariate_test import univariate_test

CHOICES = 50  # phases, at most, in which a surplus is chosen: in more, a phase would be a handful of steps


def plan(source: TableData, k: int, options: AttentionOptions) -> Schedule:
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
    steps = max(steps, math.ceil(len(takes_per_phase(k, each or 1)) / (1 - options.warmup)) + 1)
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


def _batch_size(source: TableData, options: AttentionOptions) -> int:
    return batch_size_for(source.rows, options.batch_size, members_of(source, options))


def members_of(source: TableData, options: AttentionOptions) -> int:
    """Models in a trial's committee: one where the user brought the model, or for Algorithm 1 as printed."""
    if options.ensemble is not None:
        return options.ensemble
    return default_members(source.rows) if options.one_pass and options.model is None else 1


def _replacement(source: TableData, k: int, options: AttentionOptions) -> int:
    if k == source.features:
        return 0  # nothing to replace them with
    return default_replacement(k) if options.replacement is None else options.replacement


def _decay(source: TableData, options: AttentionOptions) -> float:
    return default_decay(source.rows) if options.weight_decay is None else options.weight_decay


def _input_dropout(source: TableData, options: AttentionOptions) -> float:
    if options.input_dropout is not None:
        return options.input_dropout
    return default_input_dropout(source.rows, len(source.feature_of)) if options.one_pass else 0.0


def _evidence(source: TableData, options: AttentionOptions) -> float:
    if options.univariate_test is not None:
        return options.univariate_test
    return default_evidence(source.rows, len(source.feature_of)) if options.one_pass else 0.0


def _squash(source: TableData, options: AttentionOptions) -> bool:
    """Your own model is shown numbers as they are, and so is one that is to be linear in them."""
    if options.asinh_inputs is not None:
        return options.asinh_inputs
    built_in = options.one_pass and options.model is None and bool(options.hidden)
    return built_in and default_squash(source.rows, len(source.feature_of))


def _doubt(source: TableData, options: AttentionOptions) -> ScorePenalty | None:
    """What speaks against each feature before any training, if that is heard and makes a difference.

    It is nothing for those beyond doubt, so that their scores are those of attention alone.
    """
    most = _evidence(source, options)
    if not most:
        return None
    sample = draw_sample(source)
    short = np.minimum(univariate_test(sample), most) - most
    return ScorePenalty(sample, short) if len(np.unique(short[~source.constant])) > 1 else None


def prepare(
    source: TableData, seeds: Sequence[int], options: AttentionOptions, device: torch.device
) -> list[TrialGroup]:
    """Everything a run needs, on the device and ready to walk through a schedule."""
    mask = options.make_mask()
    source = asinh_columns(source) if _squash(source, options) else source

    def make_gate(model: Model, members: Sequence[Member]) -> AttentionGate:
        return make_attention(len(members), source.features, mask, options.learning_rate, device)

    return make_trial_groups(
        source,
        seeds,
        options,
        device,
        make_gate,
        decay=_decay(source, options),
        members=members_of(source, options),
        dropout=_input_dropout(source, options),
        score_penalty=_doubt(source, options),
    )


def sequential_attention(
    source: TableData,
    k: int,
    seeds: Sequence[int],
    options: AttentionOptions,
    device: torch.device,
    schedule: Schedule,
    advance: Callable[[int], None],
) -> list[Trace]:
    with training_threads(largest_product(source, options), device) as threads:
        return train(prepare(source, seeds, options, device), schedule, advance, threads)


def settings(source: TableData, k: int, options: AttentionOptions, schedule: Schedule) -> dict[str, Any]:
    """The options as they were resolved for this table."""
    batch = _batch_size(source, options)
    members = members_of(source, options)
    steps = sum(phase.steps for phase in schedule)
    return options.record() | {
        "batch_size": batch,
        "ensemble": members,
        "features_per_phase": max(phase.take for phase in schedule),
        "univariate_test": _evidence(source, options),
        "input_dropout": _input_dropout(source, options),
        "asinh_inputs": _squash(source, options),
        "surplus": sum(phase.drop for phase in schedule if phase.steps) / k + 1,
        "replacement": sum(phase.drop > 0 and phase.steps == 0 for phase in schedule),
        "weight_decay": _decay(source, options),
        "steps": steps,
        "epochs": members * steps * batch / source.rows,
    }
