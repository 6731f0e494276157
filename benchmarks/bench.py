"""``make bench``: every workload on this machine, beside its floor and beside the last record."""

from __future__ import annotations

import time
from typing import Any

import busy
import numpy as np
import torch
from common import last_record, print_table, wait, write_record
from profiling import profile_steps
from step import all_steps, table

import seqatt


def from_numpy_to_selections(device: torch.device) -> list[dict[str, Any]]:
    """Default settings on a table of MNIST's size: reading, transfer, compilation, everything."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(60_000, 784), dtype=np.uint8)
    y = rng.integers(0, 10, size=60_000)
    rows = []
    for trials in (1,) if device.type == "cpu" else (5, 50):
        for again in ("first", "again"):
            started = time.perf_counter()
            seqatt.select_trials(X, y, 50, seeds=range(trials), device=device.type)
            wait()
            milliseconds = 1e3 * (time.perf_counter() - started)
            rows.append(
                {"workload": f"60,000 x 784, k=50, T={trials}, {again}", "milliseconds": milliseconds}
            )
    return rows


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = "gpu" if device.type == "cuda" else "cpu"
    before = last_record(f"bench-{kind}")
    old = {row["workload"]: row for row in before["workloads"]} if before else {}
    rows = from_numpy_to_selections(device) + all_steps(device)
    if kind == "cpu":
        rows.append(busy.measure())
    shown = []
    for row in rows:
        earlier = old.get(row["workload"])
        key = "ratio" if "ratio" in row else "milliseconds"
        change = row[key] / earlier[key] if earlier else None
        shown.append([row["workload"], row["milliseconds"], row.get("ratio"), row.get("floor", ""), change])
    print_table(["workload", "ms", "ratio", "to", "of last record"], shown)
    profiles = [profile_steps(table(), trials, device) for trials in ((1,) if kind == "cpu" else (5, 50))]
    for seen in profiles:
        print(f"\n{seen['workload']}: {seen['microseconds']:.0f} microseconds, of which")
        print_table(
            ["part", "microseconds", "calls"],
            [[p["name"], p["microseconds"], p["calls"]] for p in seen["parts"][:8]],
        )
    write_record(f"bench-{kind}", "make bench", {"workloads": rows, "profiles": profiles})


if __name__ == "__main__":
    main()
