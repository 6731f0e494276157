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
from unittest.mock import patch

import torch
from datasets import PAPER, load
from record_file import print_table, write_record
from timing import synchronize

from seqatt.algorithms.neural import sequential_attention as method
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.loop import train

TRIALS, K = 5, 50


def measure(name: str, device: torch.device) -> dict[str, Any]:
    (X, y), _ = load(name)
    epochs, batch, paper_seconds = PAPER[name]
    options = AttentionOptions(epochs=epochs, batch_size=batch)
    started = time.perf_counter()
    data = read_table_data(X, y, task="multiclass")
    request = SelectionRequest(data, K, list(range(TRIALS)), options, device)
    plan = method.make_plan(request)
    selection_seconds = 0.0

    def timed_train(*arguments: Any) -> Any:
        nonlocal selection_seconds
        synchronize()
        ready = time.perf_counter()
        traces = train(*arguments)
        synchronize()
        selection_seconds = time.perf_counter() - ready
        return traces

    with patch.object(method, "train", timed_train):
        method.sequential_attention(request, plan, lambda steps: None)
    everything_seconds = time.perf_counter() - started
    return {
        "data": name,
        "steps": plan.steps,
        "members": plan.members,
        "batch": min(batch, data.rows),
        "selection_seconds": selection_seconds,
        "microseconds_a_step": 1e6 * selection_seconds / plan.steps,
        "everything_seconds": everything_seconds,
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
