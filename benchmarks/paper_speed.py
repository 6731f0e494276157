"""Seconds of Sequential Attention on the paper's six data sets at its epochs and batch sizes, five trials each.

    SEQATT_DATA_DIR=... python benchmarks/paper_speed.py

"Selection" is training and selecting alone, with the rows already on the device; "everything" starts from
NumPy arrays. The members of a trial's ensemble share the passes over the rows; steps are those of one member.
The paper's seconds are for one trial on its own hardware.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from datasets import PAPER, load
from record_file import print_table, write_record
from timing import synchronize

from seqatt.algorithms.neural.sequential_attention import members_of, plan, prepare
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import largest_product
from seqatt.training.loop import train
from seqatt.algorithms.neural.attention_options import AttentionOptions

TRIALS, K = 5, 50


def measure(name: str, device: torch.device) -> dict[str, Any]:
    (X, y), _ = load(name)
    epochs, batch, paper_seconds = PAPER[name]
    options = AttentionOptions(epochs=epochs, batch_size=batch)
    started = time.perf_counter()
    data = read_table_data(X, y, task="multiclass")
    schedule = plan(data, K, options)

    with training_threads(largest_product(data, options), device) as threads:
        groups = prepare(data, range(TRIALS), options, device)
        synchronize()
        ready = time.perf_counter()
        train(groups, schedule, threads=threads)
        synchronize()
    ended = time.perf_counter()
    steps = sum(phase.steps for phase in schedule)
    return {
        "data": name,
        "steps": steps,
        "members": members_of(data, options),
        "batch": min(batch, data.rows),
        "selection_seconds": ended - ready,
        "microseconds_a_step": 1e6 * (ended - ready) / steps,
        "everything_seconds": ended - started,
        "paper_seconds": paper_seconds,
    }


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    measure("mice_protein", device)  # compiles the kernels or loads them from the cache on disk
    rows = [measure(name, device) for name in sys.argv[1:] or PAPER]
    keys = ["selection_seconds", "everything_seconds", "paper_seconds"]
    total = {key: sum(row[key] for row in rows) for key in keys}
    headings = ["data", "steps", "members", "batch", "selection s", "us per step", "everything s", "paper s"]
    body = [list(row.values()) for row in rows]
    print_table(headings, [*body, ["all", "", "", "", total[keys[0]], None, total[keys[1]], total[keys[2]]]])
    kind = "gpu" if device.type == "cuda" else "cpu"
    write_record(f"paper-speed-{kind}", "python benchmarks/paper_speed.py", {"data": rows, "total": total})


if __name__ == "__main__":
    main()
