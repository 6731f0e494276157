"""Warns if the phases of a plan have too few steps to tell features apart, and says how many epochs would do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import ceil, floor, log10
from typing import Any

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest

# Steps of a phase. With a copy of the target among the 30 features of scikit-learn's breast cancer data and k from 1 to
# 5, 30 of 30 runs with at least as many steps selected the copy, and 90 of 150 runs with fewer.
ENOUGH_STEPS = 20


def warn_about_few_steps(method: Method, request: SelectionRequest, plan: Any) -> None:
    """Warn if the user's ``epochs`` leave a phase that selects features fewer steps than are enough.

    ``ENOUGH_STEPS`` are, or as many as the default number of epochs gives, where that is less.
    """
    fewest, given = fewest_steps(plan), getattr(request.options, "epochs", None)
    if given is None or fewest is None or fewest >= ENOUGH_STEPS:
        return

    def steps_with(epochs: float | None) -> int:
        options = replace(request.options, epochs=epochs)
        return fewest_steps(method.plan(replace(request, options=options))) or 0

    enough = min(ENOUGH_STEPS, steps_with(None))
    if fewest >= enough:
        return
    low, high = given, 2 * given
    while steps_with(high) < enough and high < 1e9:
        low, high = high, 2 * high
    while high > 1.02 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if steps_with(middle) >= enough else (middle, high)
    unit = 10.0 ** (floor(log10(high)) - 1)
    warnings.warn(
        f"epochs: {given:g} leaves a phase {fewest} step{'s' * (fewest != 1)}, too few to tell features apart; use "
        f"epochs={ceil(high / unit) * unit:g} for {enough} steps, or leave it out",
        stacklevel=2,
    )


def fewest_steps(plan: Any) -> int | None:
    """The steps of the shortest phase that selects features; None if the method has no phases."""
    return min((phase.steps for phase in getattr(plan, "schedule", ()) if phase.take), default=None)
