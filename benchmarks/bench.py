"""``make bench``: every workload on this machine, with its lower bound and its change since the last record."""

from __future__ import annotations

import time
from typing import Any

import contention
import numpy as np
import torch
from profiling import profile_steps
from record_file import last_record, print_table, write_record
from step import make_table, measure_steps
from timing import synchronize

import seqatt


def time_selections(device: torch.device) -> list[dict[str, Any]]:
    """Default settings on a table of MNIST's size, from NumPy arrays: reading, transfer, compilation, training."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(60_000, 784), dtype=np.uint8)
    y = rng.integers(0, 10, size=60_000)
    rows = []
    for trials in (1,) if device.type == "cpu" else (5, 50):
        for order in ("first", "again"):
            started = time.perf_counter()
            seqatt.select_trials(X, y, 50, seeds=range(trials), device=device.type)
            synchronize()
            milliseconds = 1e3 * (time.perf_counter() - started)
            workload = f"60,000 x 784, k=50, T={trials}, {order}"
            rows.append({"workload": workload, "milliseconds": milliseconds})
    return rows


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = "gpu" if device.type == "cuda" else "cpu"
    record = last_record(f"bench-{kind}")
    previous = {row["workload"]: row for row in record["workloads"]} if record else {}
    rows = time_selections(device) + measure_steps(device)
    if kind == "cpu":
        rows.append(contention.measure())
    lines = []
    for row in rows:
        earlier = previous.get(row["workload"])
        key = "ratio" if "ratio" in row else "milliseconds"
        change = row[key] / earlier[key] if earlier else None
        lines.append([row["workload"], row["milliseconds"], row.get("ratio"), row.get("floor", ""), change])
    print_table(["workload", "ms", "ratio", "to", "of last record"], lines)
    trial_counts = (1,) if kind == "cpu" else (5, 50)
    profiles = [profile_steps(make_table(), trials, device) for trials in trial_counts]
    for profiled in profiles:
        print(f"\n{profiled['workload']}: {profiled['microseconds']:.0f} microseconds, of which")
        print_table(
            ["part", "microseconds", "calls"],
            [[part["name"], part["microseconds"], part["calls"]] for part in profiled["parts"][:8]],
        )
    write_record(f"bench-{kind}", "make bench", {"workloads": rows, "profiles": profiles})


if __name__ == "__main__":
    main()
