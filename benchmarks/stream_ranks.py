"""Selection from files with two processes against one on the same cores, and the cost of checkpoints.

    python benchmarks/stream_ranks.py                  # a table and a record
    python benchmarks/stream_ranks.py --rows 100000    # smaller, for a quick look

The log is synthetic (39 features) and the network is the default one. The batch of a step, over all processes,
is the same. One process has all cores; each of two has half of them. Seconds are those of the selection,
without the start of the processes; the runs alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from record_file import print_table, write_record
from timing import median_ratio

import seqatt
from seqatt.datasets.synthetic import click_log

K, BATCH = 8, 4096
CHECKPOINT_SECONDS = 5.0  # between checkpoints: twelve times as often as by default


def select_as_rank(folder: str, ranks: int, checkpoint: str | None) -> dict[str, Any] | None:
    """One selection in this process, one of ``ranks``; None on all ranks but 0."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    if ranks > 1:
        dist.init_process_group("gloo")
    options: dict[str, Any] = {}
    if checkpoint:
        options = {"checkpoint": checkpoint, "checkpoint_every": CHECKPOINT_SECONDS}
    started = time.perf_counter()
    selection = seqatt.select(
        f"{folder}/*.parquet",
        target="click",
        k=K,
        batch_size=BATCH,
        log1p=True,
        epochs=1,
        memory=0,
        shards=2,
        device="cpu",
        **options,
    )
    seconds = time.perf_counter() - started
    if ranks > 1:
        rank = dist.get_rank()
        dist.destroy_process_group()
        if rank:
            return None
    return {"seconds": seconds, "features": selection.features, "rows": selection.settings["rows"]}


def select_in_processes(folder: Path, ranks: int, checkpoint: Path | None = None) -> dict[str, Any]:
    """The same in ``ranks`` new processes."""
    arguments = [__file__, "--ranks", str(ranks), "--folder", str(folder)]
    arguments += ["--checkpoint", str(checkpoint)] if checkpoint else []
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *(launcher if ranks > 1 else []), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks))}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def seconds_of_runs(name: str, runs: Sequence[dict[str, Any]]) -> list[float]:
    return [run[name]["seconds"] for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ranks:
        measured = select_as_rank(options.folder, options.ranks, options.checkpoint)
        if measured:
            print(json.dumps(measured))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "clicks"
        click_log(folder, options.rows)
        runs = [
            {
                "one": select_in_processes(folder, 1),
                "two": select_in_processes(folder, 2),
                "kept": select_in_processes(folder, 1, Path(temporary) / f"checkpoint{number}"),
            }
            for number in range(options.rounds)
        ]
    names = {
        "one": "one process",
        "two": "two processes",
        "kept": f"one, with a checkpoint every {CHECKPOINT_SECONDS:.0f} s",
    }
    rates = {name: [run[name]["rows"] / run[name]["seconds"] for run in runs] for name in names}
    print_table(
        ["", "seconds", "rows per second"],
        [[names[n], min(seconds_of_runs(n, runs)), round(max(rates[n]))] for n in names],
    )
    speedup = median_ratio(seconds_of_runs("one", runs), seconds_of_runs("two", runs))
    slowdown = median_ratio(seconds_of_runs("kept", runs), seconds_of_runs("one", runs))
    same = all(run["one"]["features"] == run["two"]["features"] for run in runs)
    print(f"\nTwo processes are {speedup:.2f} times as fast as one; the same features: {same}")
    print(f"Checkpoints every {CHECKPOINT_SECONDS:.0f} s take {100 * (slowdown - 1):.1f} % of the time")
    load = os.getloadavg()[2]  # average of the last 15 minutes: shows whether other processes ran
    print(f"Load average of the machine: {load:.1f}")
    results = {
        "load": load,
        "runs": runs,
        "two_to_one": speedup,
        "kept_to_one": slowdown,
        "same_features": same,
    }
    write_record("stream_ranks", f"python benchmarks/stream_ranks.py --rows {options.rows}", results)


if __name__ == "__main__":
    main()
