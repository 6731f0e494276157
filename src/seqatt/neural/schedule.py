"""Schedules: when the model trains on what, and when a choice is made. Data, not branches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Sees = Literal["all", "attended", "kept"]


@dataclass(frozen=True)
class Phase:
    """Train ``steps`` steps while the model ``sees`` some features; at the end take or drop some.

    ``sees`` is "all" (every feature at full weight), "attended" (kept features at 1, the others at
    their attention weights) or "kept" (kept features only). ``fresh`` starts from new model weights,
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


def split(total: int, parts: int) -> list[int]:
    """``total`` as ``parts`` whole numbers that differ by at most one: exact sums, always."""
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def takes(k: int, features_per_phase: int) -> list[int]:
    """How many features each phase takes: ``features_per_phase`` each, the last one the rest."""
    full, rest = divmod(k, features_per_phase)
    return [features_per_phase] * full + ([rest] if rest else [])


def one_pass(
    k: int,
    steps: int,
    *,
    features_per_phase: int = 1,
    warmup: float = 0.1,
    replacement: int = 0,
    fresh: bool = False,
) -> Schedule:
    """One training, its steps divided among warm-up and choices (the paper's one-pass form).

    Each of the ``replacement`` rounds drops a tenth of the chosen features, at least one, and chooses
    as many again within the same budget.
    """
    turnover = max(1, k // TURNOVER)
    first = takes(k, features_per_phase)
    again = takes(turnover, min(features_per_phase, turnover))
    choices = first + again * replacement
    warm = round(warmup * steps)
    shares = split(steps - warm, len(choices))
    phases = [Phase(warm, sees="all")] if warm else []
    for i, (take, share) in enumerate(zip(choices, shares, strict=True)):
        opens_round = i >= len(first) and (i - len(first)) % len(again) == 0
        if opens_round:
            phases.append(Phase(0, drop=turnover, sees="kept"))
        phases.append(Phase(share, take=take, fresh=fresh))
    return tuple(phases)


def algorithm_1(k: int, steps: int, *, features_per_phase: int = 1) -> Schedule:
    """The paper's Algorithm 1 as printed: a fresh model, trained in full, for every choice."""
    return tuple(Phase(steps, take=take, fresh=True) for take in takes(k, features_per_phase))


def cooling(steps: int, parts: int = 20) -> Schedule:
    """Train on every feature, choosing nothing, the learning rate falling along a cosine."""
    return tuple(
        Phase(share, sees="all", rate=(1 + math.cos(math.pi * i / parts)) / 2)
        for i, share in enumerate(split(steps, parts))
    )
