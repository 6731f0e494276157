"""Seconds of a selection while another process occupies one core, against an idle machine."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import seqatt

ROUNDS = 3


def measure(rows: int = 20_000, features: int = 784, steps: int = 800) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    y = rng.integers(10, size=rows)

    def seconds() -> float:
        started = time.perf_counter()
        seqatt.select(X, y, 5, epochs=steps * 256 / rows, batch_size=256, device="cpu")
        return time.perf_counter() - started

    seconds()
    idle, busy = [], []
    for _ in range(ROUNDS):
        idle.append(seconds())
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            time.sleep(0.3)
            busy.append(seconds())
        finally:
            other.kill()
            other.wait()
    return {
        "workload": "selection beside a busy process",
        "milliseconds": 1e3 * statistics.median(busy),
        "floor": "the same, machine idle",
        "floor_milliseconds": 1e3 * statistics.median(idle),
        "ratio": statistics.median(b / i for b, i in zip(busy, idle, strict=True)),
    }
