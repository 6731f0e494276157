"""Schedules: the phases of a training, as data. Each phase says what the model sees and what is selected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

Sees = Literal["all", "attended", "selected"]


@dataclass(frozen=True)
class Phase:
    """Train for ``steps`` steps; at the end select ``take`` features and drop ``drop`` of the selected.

    With ``orders`` the selected features are then ordered by usefulness, so that the first j are a good choice of j.
    With ``measures`` it is measured how much each of them adds, on held-out rows. With ``narrows`` the working set of a
    wide table is chosen, and no feature is selected.

    ``sees`` is "all" (every feature at weight 1), "attended" (selected features at weight 1, the others at
    their attention weights) or "selected" (selected features only). With ``reset_model`` the phase starts
    from new model parameters. ``lr_factor`` scales the model's learning rate.
    """

    steps: int
    take: int = 0
    drop: int = 0
    orders: bool = False
    measures: bool = False
    narrows: bool = False
    sees: Sees = "attended"
    reset_model: bool = False
    lr_factor: float = 1.0


Schedule = tuple[Phase, ...]
REPLACED_ONE_IN = 10  # a replacement round replaces one selected feature in this many, at least one
# Steps on all features of a wide table before the first working set is chosen: this share of a phase, at least so many.
NARROWING_SHARE, MIN_NARROWING_STEPS = 0.25, 8
MAX_DROP_PHASES = 10  # phases, at most, over which a surplus of selected features is dropped


def split_evenly(total: int, parts: int) -> list[int]:
    """``total`` as a sum of ``parts`` whole numbers that differ by at most one."""
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def takes_per_phase(k: int, features_per_phase: int) -> list[int]:
    """How many features each phase selects: ``features_per_phase``, and the last phase the remainder."""
    full, remainder = divmod(k, features_per_phase)
    return [features_per_phase] * full + ([remainder] if remainder else [])


def drops_per_phase(k: int, surplus: int) -> list[int]:
    """How many features each phase drops: the same number or, if the surplus exceeds k, the same share of the rest."""
    phases = min(MAX_DROP_PHASES, surplus)
    if surplus <= k:
        return split_evenly(surplus, phases) if surplus else []
    sizes = [round(k * (1 + surplus / k) ** (i / phases)) for i in range(phases, -1, -1)]
    return [before - after for before, after in pairwise(sizes) if before > after]


def one_pass(
    k: int,
    steps: int,
    *,
    features_per_phase: int = 1,
    warmup: float = 0.1,
    surplus: int = 0,
    replacement: int = 0,
    reset_model: bool = False,
) -> Schedule:
    """One training whose ``steps`` are divided among a warm-up and the phases (the paper's one-pass form).

    First ``k + surplus`` features are selected. Then the surplus is dropped over a few phases, in each of
    which the model trains on the selected features. Finally each of the ``replacement`` rounds drops a tenth
    of the k features, at least one, and selects as many. Every phase gets an equal share of the steps; the drop
    that starts a replacement round takes none.
    """
    replaced = max(1, k // REPLACED_ONE_IN)
    replacement_takes = takes_per_phase(replaced, min(features_per_phase, replaced))
    drops = drops_per_phase(k, surplus)
    trained = [
        Phase(0, take=take, reset_model=reset_model)
        for take in takes_per_phase(k + surplus, features_per_phase)
    ]
    trained += [Phase(0, drop=drop, sees="selected", reset_model=reset_model) for drop in drops]
    first_replacement = len(trained)
    trained += [Phase(0, take=take, reset_model=reset_model) for take in replacement_takes] * replacement
    warmup_steps = round(warmup * steps)
    phases = [Phase(warmup_steps, sees="all")] if warmup_steps else []
    shares = split_evenly(steps - warmup_steps, len(trained))
    for i, (phase, share) in enumerate(zip(trained, shares, strict=True)):
        if i >= first_replacement and (i - first_replacement) % len(replacement_takes) == 0:
            phases.append(Phase(0, drop=replaced, sees="selected"))
        phases.append(replace(phase, steps=share))
    return tuple(phases)


def narrow_first_phase(schedule: Schedule) -> Schedule:
    """The schedule with a short phase before the first that selects, which chooses the features that train in it.

    A schedule whose phases are as short as that one would be is not changed.
    """
    first = next(number for number, phase in enumerate(schedule) if phase.take)
    steps = max(MIN_NARROWING_STEPS, round(NARROWING_SHARE * schedule[first].steps))
    if schedule[first].steps < 3 * steps:
        return schedule
    return (*schedule[:first], Phase(steps, narrows=True), *schedule[first:])


def algorithm_1(k: int, steps: int, *, features_per_phase: int = 1) -> Schedule:
    """The paper's Algorithm 1 as printed: for every selection a new model is trained for ``steps`` steps."""
    takes = takes_per_phase(k, features_per_phase)
    return tuple(Phase(steps, take=take, reset_model=True) for take in takes)


def at_once(k: int, steps: int, *, sees: Sees = "attended") -> Schedule:
    """One training; all k features are selected at its end."""
    return (Phase(steps, take=k, sees=sees),)


def one_by_one(k: int, steps: int, *, sees: Sees = "attended") -> Schedule:
    """One training, its steps divided among k phases that select one feature each."""
    return tuple(Phase(share, take=1, sees=sees) for share in split_evenly(steps, k))


def retraining(steps: int) -> Schedule:
    """Train a new model on the selected features only, at a falling learning rate, to evaluate them."""
    return tuple(
        Phase(share, sees="selected", reset_model=i == 0, lr_factor=factor)
        for i, (share, factor) in enumerate(zip(split_evenly(steps, 3), (1.0, 0.3, 0.1), strict=True))
    )


def cosine_schedule(steps: int, parts: int = 20) -> Schedule:
    """Train on all features and select none; the learning rate falls along a cosine, in ``parts`` phases."""
    return tuple(
        Phase(share, sees="all", lr_factor=(1 + math.cos(math.pi * i / parts)) / 2)
        for i, share in enumerate(split_evenly(steps, parts))
    )
