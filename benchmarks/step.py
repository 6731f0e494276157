"""Milliseconds a training step takes on a CPU, against the matrix products it cannot avoid.

The shape is MNIST's: batches of 256 rows, 784 features, 67 hidden units, 10 classes, for one trial and
for five. Steps and bare products take turns in one run, each on rows gathered anew from a table larger
than the caches, so that a noisy machine is as noisy for both. Run with ``make bench``.
"""

from __future__ import annotations

import datetime
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from seqatt.neural.engine import Lane, threads_for
from seqatt.neural.gates.attention import Attention
from seqatt.neural.lanes import make_lanes, work_of
from seqatt.neural.masks import Softmax
from seqatt.neural.options import AttentionOptions
from seqatt.neural.schedule import Phase
from seqatt.source import read_source

ROWS, BATCH, FEATURES, HIDDEN, CLASSES = 20_000, 256, 784, 67, 10
ROUNDS, REPEATS = 30, 20
CPU = torch.device("cpu")


def make_trials(trials: int) -> tuple[list[Lane], int]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    source = read_source(X, rng.integers(CLASSES, size=ROWS), task="multiclass")
    options = AttentionOptions(batch_size=BATCH, hidden=(HIDDEN,))

    def make_gate(count: int) -> Attention:
        return Attention(count, FEATURES, Softmax(), 3e-3, CPU)

    lanes = make_lanes(source, range(trials), options, CPU, make_gate, decay=1e-4)
    for lane in lanes:
        lane.enter(Phase(1, take=1))
    return lanes, work_of(source, options)


def bare_products(trials: int) -> Callable[[], None]:
    """Forward and weight gradients of both layers, and the gradient of the hidden layer."""
    table = torch.randn(ROWS, FEATURES)
    first, second = torch.randn(HIDDEN, FEATURES), torch.randn(CLASSES, HIDDEN)
    hidden, out = torch.randn(BATCH, HIDDEN), torch.randn(BATCH, CLASSES)
    rooms = [torch.empty(s) for s in ((BATCH, HIDDEN), (BATCH, CLASSES), (CLASSES, HIDDEN))]
    back, outer = torch.empty(BATCH, HIDDEN), torch.empty(HIDDEN, FEATURES)
    starts = iter(range(10**9))

    def run() -> None:
        for _ in range(trials):
            start = next(starts) * BATCH % (ROWS - BATCH)
            x = table[start : start + BATCH]
            torch.mm(x, first.T, out=rooms[0])
            torch.mm(hidden, second.T, out=rooms[1])
            torch.mm(out.T, hidden, out=rooms[2])
            torch.mm(out, second, out=back)
            torch.mm(hidden.T, x, out=outer)

    return run


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(REPEATS):
        work()
    return (time.perf_counter() - started) / REPEATS


@torch.no_grad()
def measure(trials: int) -> dict[str, float]:
    lanes, work = make_trials(trials)
    products = bare_products(trials)

    def step() -> None:
        for lane in lanes:
            lane.step()

    with threads_for(work, CPU):
        for warm in (step, products):
            seconds_of(warm)
        pairs = [(seconds_of(step), seconds_of(products)) for _ in range(ROUNDS)]
    return {
        "trials": trials,
        "threads": torch.get_num_threads(),
        "step_ms": 1e3 * statistics.median(s for s, _ in pairs),
        "products_ms": 1e3 * statistics.median(p for _, p in pairs),
        "ratio": statistics.median(s / p for s, p in pairs),
        "ratio_best_quarter": statistics.quantiles([s / p for s, p in pairs], n=4)[0],
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()


def main() -> None:
    results = [measure(trials) for trials in (1, 5)]
    print(f"{'trials':>6} {'step ms':>8} {'products ms':>12} {'ratio':>6}")
    for row in results:
        print(f"{row['trials']:>6} {row['step_ms']:>8.2f} {row['products_ms']:>12.2f} {row['ratio']:>6.2f}")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    record = {
        "command": "make bench",
        "date": str(today),
        "commit": commit(),
        "machine": processor(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "step": results,
    }
    path = Path(__file__).parent / "records" / f"{today}-step.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
