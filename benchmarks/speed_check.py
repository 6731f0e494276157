"""The speed check of ``make check``: it fails if a ratio of times, measured in one run, exceeds its limit.

The limits leave a margin for a noisy machine: a step that takes half as long again as today fails, and reading that
takes three times as long. Smaller changes show in ``make bench``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from step import make_table, measure
from timing import in_turns, median_ratio

import seqatt

CPU = torch.device("cpu")
RETRIES = 2  # a check that exceeds its limit is measured this many times again
MAX_RATIO = {
    "a step, T=1, to its bare products": 2.2,
    "a step, T=5, to its bare products": 2.6,
    "eight times the features": 12.0,
    "reading a table, to standardising it with NumPy": 1.5,
}


def measure_width() -> float:
    """Time with 8 times the features over time without: 8 if linear, more because of caches."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    tables = [rng.standard_normal((400, d), dtype=np.float32) for d in (1_000, 8_000)]
    small, large = in_turns(
        [lambda X=X: seqatt.select(X, y, 2, epochs=40, batch_size=100, device="cpu") for X in tables], 3, 1
    )
    return median_ratio(large, small)


def measure_reading() -> float:
    """Time to read a table over the time to standardise it in float64 with NumPy, about 0.5.

    Both are limited by memory and fetch new memory, so that a busy machine slows both alike.
    """
    X = np.random.default_rng(0).standard_normal((20_000, 400), dtype=np.float32)
    y = np.arange(20_000) % 3
    from seqatt.data.tables.table_data import read_table_data

    def standardise() -> None:
        values = X.astype(np.float64)
        ((values - values.mean(0)) / values.std(0)).astype(np.float32)

    read, standardised = in_turns([lambda: read_table_data(X, y), standardise], 3, 1)
    return median_ratio(read, standardised)


def main() -> int:
    started = time.perf_counter()
    data = make_table()
    measures = {
        "a step, T=1, to its bare products": lambda: measure(data, 1, CPU, rounds=9)["ratio"],
        "a step, T=5, to its bare products": lambda: measure(data, 5, CPU, rounds=5)["ratio"],
        "eight times the features": measure_width,
        "reading a table, to standardising it with NumPy": measure_reading,
    }
    failed = 0
    for name, measure_ratio in measures.items():
        limit = MAX_RATIO[name]
        value = smallest_ratio(measure_ratio, limit)
        failed += value > limit
        print(f"{'SLOW' if value > limit else 'ok':5} {name}: {value:.2f} (at most {limit})")
    print(f"speed check: {time.perf_counter() - started:.0f} s")
    return failed


def smallest_ratio(measure_ratio: Callable[[], float], limit: float) -> float:
    """The smallest of up to three measurements: another process slows some of them, slow code all of them."""
    smallest = measure_ratio()
    for _ in range(RETRIES):
        if smallest <= limit:
            break
        time.sleep(5)
        smallest = min(smallest, measure_ratio())
    return smallest


if __name__ == "__main__":
    sys.exit(main())
