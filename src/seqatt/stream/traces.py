"""Phases and traces as JSON has them, to the last bit, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from seqatt.selection import Step, Trace


def plain_step(step: Step) -> dict[str, Any]:
    return asdict(step) | {"scores": None if step.scores is None else step.scores.tolist()}


def read_step(plain: dict[str, Any]) -> Step:
    scores = plain["scores"]
    return Step(**plain | {"scores": None if scores is None else np.array(scores, dtype=np.float64)})


def plain_trace(trace: Trace) -> dict[str, Any]:
    return {
        "order": trace.order,
        "rest": trace.rest,
        "steps": [plain_step(step) for step in trace.steps],
        "settings": trace.settings,
    }


def read_trace(plain: dict[str, Any]) -> Trace:
    return Trace(
        list(plain["order"]),
        list(plain["rest"]),
        [read_step(step) for step in plain["steps"]],
        dict(plain["settings"]),
    )
