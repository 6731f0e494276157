"""``make check``'s gate on speed: ratios measured in one run, with room for a noisy machine.

A change that makes a step half as slow again as it is today is stopped here; smaller ones show in
``make bench``.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from common import in_turns, ratio
from step import measure, table

import seqatt

CPU = torch.device("cpu")
MOST = {
    "a step, T=1, to its bare products": 2.2,
    "a step, T=5, to its bare products": 2.6,
    "eight times the features": 12.0,
    "reading a table, to copying it as float64": 6.0,
}


def wider() -> float:
    """Linear in d, with room for caches: 8 times the features may take 12 times as long."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    tables = [rng.standard_normal((400, d), dtype=np.float32) for d in (1_000, 8_000)]
    small, large = in_turns(
        [lambda X=X: seqatt.select(X, y, 2, epochs=40, batch_size=100, device="cpu") for X in tables], 3, 1
    )
    return ratio(large, small)


def reading() -> float:
    X = np.random.default_rng(0).standard_normal((20_000, 400), dtype=np.float32)
    y = np.arange(20_000) % 3
    from seqatt.source import read_source

    read, copied = in_turns([lambda: read_source(X, y), lambda: X.astype(np.float64)], 3, 1)
    return ratio(read, copied)


def main() -> int:
    started = time.perf_counter()
    source = table()
    found = {
        "a step, T=1, to its bare products": measure(source, 1, CPU, rounds=9)["ratio"],
        "a step, T=5, to its bare products": measure(source, 5, CPU, rounds=5)["ratio"],
        "eight times the features": wider(),
        "reading a table, to copying it as float64": reading(),
    }
    slow = [name for name, value in found.items() if value > MOST[name]]
    for name, value in found.items():
        print(f"{'SLOW' if name in slow else 'ok':5} {name}: {value:.2f} (at most {MOST[name]})")
    print(f"speed gate: {time.perf_counter() - started:.0f} s")
    return len(slow)


if __name__ == "__main__":
    sys.exit(main())
