"""Traces and phase records as JSON and back, bit for bit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from seqatt.selection import PhaseRecord, Trace


def phase_to_json(record: PhaseRecord) -> dict[str, Any]:
    return asdict(record) | {"scores": None if record.scores is None else record.scores.tolist()}


def phase_from_json(plain: dict[str, Any]) -> PhaseRecord:
    scores = plain["scores"]
    return PhaseRecord(**plain | {"scores": None if scores is None else np.array(scores, dtype=np.float64)})


def trace_to_json(trace: Trace) -> dict[str, Any]:
    return {
        "order": trace.order,
        "rest": trace.rest,
        "phases": [phase_to_json(record) for record in trace.phases],
        "settings": trace.settings,
    }


def trace_from_json(plain: dict[str, Any]) -> Trace:
    return Trace(
        list(plain["order"]),
        list(plain["rest"]),
        [phase_from_json(record) for record in plain["phases"]],
        dict(plain["settings"]),
    )
