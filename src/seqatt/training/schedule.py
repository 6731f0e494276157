"""Schedules: when the model trains on what, and when a choice is made. Data, not branches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

Sees = Literal["all", "attended", "selected"]


@dataclass(frozen=True)
class Phase:
    """Train ``steps`` steps while the model ``sees`` some features; at the end take or drop some.

    ``sees`` is "all" (every feature at full weight), "attended" (kept features at 1, the others at
    their attention weights) or "selected" (kept features only). ``fresh`` starts from new model weights,
    ``rate`` scales the model's learning rate.
    """

    steps: int
    take: int = 0
    drop: int = 0
    sees: Sees = "attended"
    fresh: bool = False
    rate: float = 1.0


Schedule = tuple[Phase, ...]
TURNOVER = 10  # one feature in so many is dropped and chosen again in a replacement round
CUTS = 10  # steps in which a surplus of chosen features is dropped again


def split_evenly(total: int, parts: int) -> list[int]:
    """``total`` as ``parts`` whole numbers that differ by at most one: exact sums, always."""
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def takes_per_phase(k: int, features_per_phase: int) -> list[int]:
    """How many features each phase takes: ``features_per_phase`` each, the last one the rest."""
    full, rest = divmod(k, features_per_phase)
    return [features_per_phase] * full + ([rest] if rest else [])


def one_pass(
    k: int,
    steps: int,
    *,
    features_per_phase: int = 1,
    warmup: float = 0.1,
    surplus: int = 0,
    replacement: int = 0,
    fresh: bool = False,
) -> Schedule:
    """One training, its steps divided among warm-up and choices (the paper's one-pass form).

    A ``surplus`` of features is chosen beyond k, and dropped again in a few cuts with training on the
    chosen features between them. Each of the ``replacement`` rounds after that drops a tenth of the k
    features, at least one, and chooses as many again. All within the same budget.
    """
    turnover = max(1, k // TURNOVER)
    again = takes_per_phase(turnover, min(features_per_phase, turnover))
    cuts = split_evenly(surplus, min(CUTS, surplus)) if surplus else []
    choices = [Phase(0, take=take, fresh=fresh) for take in takes_per_phase(k + surplus, features_per_phase)]
    choices += [Phase(0, drop=cut, sees="selected", fresh=fresh) for cut in cuts]
    choices += [Phase(0, take=take, fresh=fresh) for take in again] * replacement
    warm = round(warmup * steps)
    phases = [Phase(warm, sees="all")] if warm else []
    opening = len(choices) - len(again) * replacement
    for i, (phase, share) in enumerate(zip(choices, split_evenly(steps - warm, len(choices)), strict=True)):
        if i >= opening and (i - opening) % len(again) == 0:
            phases.append(Phase(0, drop=turnover, sees="selected"))
        phases.append(replace(phase, steps=share))
    return tuple(phases)


def algorithm_1(k: int, steps: int, *, features_per_phase: int = 1) -> Schedule:
    """The paper's Algorithm 1 as printed: a fresh model, trained in full, for every choice."""
    return tuple(Phase(steps, take=take, fresh=True) for take in takes_per_phase(k, features_per_phase))


def at_once(k: int, steps: int, *, sees: Sees = "attended") -> Schedule:
    """One training, at the end of which all k are chosen."""
    return (Phase(steps, take=k, sees=sees),)


def one_by_one(k: int, steps: int, *, sees: Sees = "attended") -> Schedule:
    """One training, its steps divided among k choices."""
    return tuple(Phase(share, take=1, sees=sees) for share in split_evenly(steps, k))


def penalty_trial(steps: int) -> Schedule:
    """A new network on the chosen features alone, cooled down: what the choice was worth."""
    return tuple(
        Phase(share, sees="selected", fresh=i == 0, rate=rate)
        for i, (share, rate) in enumerate(zip(split_evenly(steps, 3), (1.0, 0.3, 0.1), strict=True))
    )


def cosine_schedule(steps: int, parts: int = 20) -> Schedule:
    """Train on every feature, choosing nothing, the learning rate falling along a cosine."""
    return tuple(
        Phase(share, sees="all", rate=(1 + math.cos(math.pi * i / parts)) / 2)
        for i, share in enumerate(split_evenly(steps, parts))
    )
