"""Seconds for the paper's six data sets at its epochs and batch sizes, five trials each.

    SEQATT_DATA_DIR=... python benchmarks/paper_speed.py

"Selection" is the training and choosing alone, the rows already on the device; "everything" starts from
NumPy arrays. The passes over the rows are shared by the members of a trial's committee; steps are those of
one member. The paper's seconds are for one trial on its own hardware.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from common import print_table, wait, write_record
from datasets import PAPER, load

from seqatt.algorithms.neural.sequential_attention import members_of, plan, prepare
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import largest_product
from seqatt.training.loop import train
from seqatt.training.options import AttentionOptions

TRIALS, K = 5, 50


def measure(name: str, device: torch.device) -> dict[str, Any]:
    (X, y), _ = load(name)
    epochs, batch, paper = PAPER[name]
    options = AttentionOptions(epochs=epochs, batch_size=batch)
    started = time.perf_counter()
    source = read_table_data(X, y, task="multiclass")
    schedule = plan(source, K, options)

    with training_threads(largest_product(source, options), device) as threads:
        lanes = prepare(source, range(TRIALS), options, device)
        wait()
        ready = time.perf_counter()
        train(lanes, schedule, threads=threads)
        wait()
    ended = time.perf_counter()
    steps = sum(phase.steps for phase in schedule)
    return {
        "data": name,
        "steps": steps,
        "members": members_of(source, options),
        "batch": min(batch, source.rows),
        "selection_seconds": ended - ready,
        "microseconds_a_step": 1e6 * (ended - ready) / steps,
        "everything_seconds": ended - started,
        "paper_seconds": paper,
    }


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    measure("mice_protein", device)  # kernels are compiled, or loaded from the disk's cache
    rows = [measure(name, device) for name in sys.argv[1:] or PAPER]
    keys = ["selection_seconds", "everything_seconds", "paper_seconds"]
    total = {key: sum(row[key] for row in rows) for key in keys}
    headings = ["data", "steps", "members", "batch", "selection s", "us a step", "everything s", "paper s"]
    body = [list(row.values()) for row in rows]
    print_table(headings, [*body, ["all", "", "", "", total[keys[0]], None, total[keys[1]], total[keys[2]]]])
    kind = "gpu" if device.type == "cuda" else "cpu"
    write_record(f"paper-speed-{kind}", "python benchmarks/paper_speed.py", {"data": rows, "total": total})


if __name__ == "__main__":
    main()
