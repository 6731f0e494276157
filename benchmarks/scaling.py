"""Seconds and memory of a selection, as one of rows, features, k and trials grows.

    python benchmarks/scaling.py            # tables, charts/scaling-*.svg (needs matplotlib) and a record

Every point is measured in its own process, because peak memory is per process. The base is 5,000 rows, 500
features, k=10, one trial, 1,000 steps of 256 rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record_file import machine, print_table, write_record
from timing import synchronize

import seqatt

BASE = {"n": 5_000, "d": 500, "k": 10, "T": 1}
SWEEPS = {
    "d": [100, 500, 2_000, 10_000, 50_000],
    "n": [1_000, 5_000, 20_000, 100_000, 400_000],
    "k": [1, 5, 20, 50, 100],
    "T": [1, 2, 5, 10, 20],
}
AXIS_LABELS = {"d": "features", "n": "rows", "k": "features to choose", "T": "trials"}
STEPS, BATCH = 1_000, 256


def measure(n: int, d: int, k: int, T: int) -> dict[str, Any]:
    """One point. Tables with more than 500 features have fewer rows: at most 2^26 values."""
    n = min(n, 2**26 // d) if d > 500 else n
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = rng.integers(5, size=n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    epochs = STEPS * min(BATCH, n) / n
    if torch.cuda.is_available():
        torch.empty(1, device="cuda")
    started = time.perf_counter()
    seqatt.select_trials(X, y, k, seeds=range(T), epochs=epochs, batch_size=BATCH)
    synchronize()
    return {
        "n": n,
        "d": d,
        "k": k,
        "T": T,
        "seconds": time.perf_counter() - started,
        "table_mib": X.nbytes / 2**20,
        "extra_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before,
    }


def measure_in_process(**point: int) -> dict[str, Any]:
    """``measure`` in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--point", json.dumps(point)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def draw_chart(axis: str, rows: list[dict[str, Any]], folder: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        print("No chart drawn: it needs matplotlib; pip install 'seqatt[bench]'")
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    axes.plot([r[axis] for r in rows], [r["seconds"] for r in rows], "o-")
    axes.set(xscale="log", yscale="log", xlabel=AXIS_LABELS[axis], ylabel="seconds")
    axes.set_title(f"{STEPS:,} steps on {machine()}", fontsize=8)
    axes.grid(alpha=0.3)
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"scaling-{axis}.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--point")
    parser.add_argument("--axes", default="d,n,k,T")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(**json.loads(options.point))))
        return
    results = {}
    for axis in options.axes.split(","):
        results[axis] = [measure_in_process(**BASE | {axis: value}) for value in SWEEPS[axis]]
        headings = ["rows", "features", "k", "T", "seconds", "table MiB", "more MiB"]
        print(f"\nagainst {AXIS_LABELS[axis]}")
        print_table(headings, [list(row.values()) for row in results[axis]])
        if not torch.cuda.is_available():
            draw_chart(axis, results[axis], Path(__file__).parent / "charts")
    kind = "gpu" if torch.cuda.is_available() else "cpu"
    write_record(f"scaling-{kind}", "python benchmarks/scaling.py", results)


if __name__ == "__main__":
    main()
