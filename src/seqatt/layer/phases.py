"""When the layer ``SequentialAttention`` selects: after which of its steps, and how many features."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, count
from typing import Any

import torch
from torch import Tensor

from seqatt.training.schedule import Schedule, one_pass
from seqatt.validation import integer


def plan_phases(k: int, total_steps: int, features_per_phase: int, warmup: float) -> Tensor:
    """The last step and the number of features selected there, (phases, 2); a warm-up selects none."""
    integer(1)("total_steps", total_steps)
    schedule = one_pass(k, total_steps, features_per_phase=features_per_phase, warmup=warmup)
    check_total_steps(schedule, total_steps, warmup)
    ends = accumulate(phase.steps for phase in schedule)
    return torch.tensor([[end, phase.take] for end, phase in zip(ends, schedule, strict=True)])


def check_planned(selected_after: Mapping[int, int]) -> None:
    """Refuse to train where no number of steps was given."""
    if not selected_after:
        raise RuntimeError(
            "total_steps: is not set; pass it to the layer, or call set_total_steps before training"
        )


def still_warming_up(step: int, warmup_steps: int, total_steps: int) -> str:
    return (
        f"finish: no feature has a score before the end of the warm-up (step {warmup_steps} of {total_steps}, now at "
        f"{step}); train longer, or use a smaller warmup"
    )


def check_total_steps(schedule: Schedule, total_steps: int, warmup: float) -> None:
    """Refuse a schedule in which a feature would be selected without a step before."""
    if all(phase.steps for phase in schedule):
        return
    phases = [phase for phase in schedule if phase.take]
    left = sum(phase.steps for phase in phases)
    needed = next(steps for steps in count(len(phases)) if steps - round(warmup * steps) >= len(phases))
    raise ValueError(
        f"total_steps: {total_steps} is too few; after {total_steps - left} steps of warm-up {left} are left for "
        f"{len(phases)} phases, and every phase needs at least one. Use at least {needed}, better some fifty for each "
        "phase, or a larger features_per_phase"
    )


def incompatible_schedule(
    schedule: Tensor, saved: Tensor | None, state_dict: Mapping[str, Any], prefix: str
) -> str | None:
    """Why a saved state cannot go on in a layer with this ``schedule`` (rows of last step and features selected).

    A state in which all features are selected, or in which no step was made, can.
    """
    steps_done, order = (state_dict.get(prefix + name) for name in ("steps_done", "order"))
    if (
        saved is None
        or steps_done is None
        or order is None
        or not int(steps_done)
        or bool((order >= 0).all())
    ):
        return None
    if torch.equal(saved.cpu(), schedule.cpu()):
        return None
    before, now = int(saved[-1, 0]), int(schedule[-1, 0])
    if before != now:
        return (
            f"total_steps: the saved layer selects within {before} steps, this one within {now}; create it with "
            f"total_steps={before} (training may go on after that), or call finish() before saving"
        )
    return (
        "warmup, features_per_phase or k: the saved layer selects at other steps than this one; create it with the "
        "same arguments"
    )
