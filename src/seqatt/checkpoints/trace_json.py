"""Phases and traces as JSON has them, to the last bit, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from seqatt.selection import PhaseRecord, Trace


def phase_to_json(step: PhaseRecord) -> dict[str, Any]:
    return asdict(step) | {"scores": None if step.scores is None else step.scores.tolist()}


def phase_from_json(plain: dict[str, Any]) -> PhaseRecord:
    scores = plain["scores"]
    return PhaseRecord(**plain | {"scores": None if scores is None else np.array(scores, dtype=np.float64)})


def trace_to_json(trace: Trace) -> dict[str, Any]:
    return {
        "order": trace.order,
        "rest": trace.rest,
        "steps": [phase_to_json(step) for step in trace.steps],
        "settings": trace.settings,
    }


def trace_from_json(plain: dict[str, Any]) -> Trace:
    return Trace(
        list(plain["order"]),
        list(plain["rest"]),
        [phase_from_json(step) for step in plain["steps"]],
        dict(plain["settings"]),
    )
