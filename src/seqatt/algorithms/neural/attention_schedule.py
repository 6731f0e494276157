"""The phases of a training by Sequential Attention, for the steps and the features that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.data.tables.table_data import TableData
from seqatt.training.schedule import Schedule, algorithm_1, one_pass, takes_per_phase

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

# Phases in which k features and a surplus are selected, at most: with more, a phase would have too few steps.
MAX_PHASES = 50
# Steps after the last selection, as a share of the others: a feature selected in the last phase has only been trained
# at its attention weight, and would seem to add nothing.
CLOSING_SHARE = 0.02


def make_schedule(
    data: TableData | FileData,
    k: int,
    options: AttentionOptions,
    steps: int,
    surplus: float,
    replacement: int,
    kept: Sequence[int] = (),
) -> Schedule:
    """The schedule of each model, of about ``steps`` steps, to add k features: ``surplus * k`` are selected at first.

    There are ``replacement`` rounds. A phase needs at least one step. Where there are too few for that, first
    replacement rounds are left out, then the surplus.
    """
    per_phase = options.features_per_phase
    varying = int((~data.constant).sum() - (~data.constant[list(kept)]).sum())
    dropped = max(0, round(min(surplus * k, varying)) - k) if options.one_pass else 0
    if per_phase is not None and per_phase > k + dropped:
        raise ValueError(
            f"features_per_phase: {per_phase} is more than the {k + dropped} features to select "
            f"(k={k} and a surplus of {dropped})"
        )
    if not options.one_pass:
        return algorithm_1(k, steps, features_per_phase=per_phase or 1)
    all_selected = k == data.features - len(kept)  # none can replace another
    rounds = 0 if all_selected else replacement
    steps = max(steps, math.ceil(len(takes_per_phase(k, per_phase or 1)) / (1 - options.warmup)) + 1)
    while True:
        schedule = one_pass(
            k,
            steps,
            features_per_phase=per_phase or (-(-(k + dropped) // MAX_PHASES) if dropped else 1),
            warmup=options.warmup,
            surplus=dropped,
            replacement=rounds,
            reset_model=options.reset_model,
        )
        if not (rounds or dropped) or all(phase.steps for phase in schedule if phase.take):
            return schedule
        if rounds:
            rounds -= 1
        else:
            dropped = 0
