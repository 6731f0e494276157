"""Two processes against one on the same cores, and what checkpoints cost.

    python benchmarks/stream_ranks.py                  # a table and a record
    python benchmarks/stream_ranks.py --rows 100000    # smaller, for a look

The log is synthetic (39 features), the network the default one, a step has the same rows everywhere. One
process has all cores, each of two half of them. Seconds are those of the selection, without the start of a
process; runs take turns.
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
from common import print_table, ratio, write_record

import seqatt
from seqatt.datasets.synthetic import click_log

K, BATCH = 8, 4096
EVERY = 5.0  # seconds between checkpoints: twelve times as often as by default


def work(folder: str, ranks: int, kept: str | None) -> dict[str, Any] | None:
    """One selection, as one rank of several; rank 0 tells of it."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    if ranks > 1:
        dist.init_process_group("gloo")
    options: dict[str, Any] = {"checkpoint": kept, "checkpoint_every": EVERY} if kept else {}
    started = time.perf_counter()
    found = seqatt.select(
        f"{folder}/*.parquet",
        target="click",
        k=K,
        batch_size=BATCH,
        log1p=True,
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
    return {"seconds": seconds, "features": found.features, "rows": found.settings["rows"]}


def apart(folder: Path, ranks: int, kept: Path | None = None) -> dict[str, Any]:
    """The same in processes of its own."""
    about = [
        __file__,
        "--work",
        str(ranks),
        "--folder",
        str(folder),
        *(["--kept", str(kept)] if kept else []),
    ]
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *(several if ranks > 1 else []), *about]
    environment = os.environ | {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks))}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def column(name: str, runs: Sequence[dict[str, Any]]) -> list[float]:
    return [run[name]["seconds"] for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=int)
    parser.add_argument("--folder")
    parser.add_argument("--kept")
    given = parser.parse_args()
    if given.work:
        told = work(given.folder, given.work, given.kept)
        if told:
            print(json.dumps(told))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "clicks"
        click_log(folder, given.rows)
        runs = [
            {
                "one": apart(folder, 1),
                "two": apart(folder, 2),
                "kept": apart(folder, 1, Path(place) / f"kept{number}"),
            }
            for number in range(given.rounds)
        ]
    names = {"one": "one process", "two": "two processes", "kept": f"one, a checkpoint every {EVERY:.0f} s"}
    rates = {name: [run[name]["rows"] / run[name]["seconds"] for run in runs] for name in names}
    print_table(
        ["", "seconds", "rows a second"],
        [[names[n], min(column(n, runs)), round(max(rates[n]))] for n in names],
    )
    faster = ratio(column("one", runs), column("two", runs))
    slower = ratio(column("kept", runs), column("one", runs))
    same = all(run["one"]["features"] == run["two"]["features"] for run in runs)
    print(f"\nTwo processes are {faster:.2f} times as fast as one; the same features: {same}")
    print(f"Checkpoints every {EVERY:.0f} s take {100 * (slower - 1):.1f} % of the time")
    load = os.getloadavg()[2]  # of the last quarter of an hour: others may have been at work
    print(f"Load of the machine meanwhile: {load:.1f}")
    results = {"load": load, "runs": runs, "two_to_one": faster, "kept_to_one": slower, "same_features": same}
    write_record("stream_ranks", f"python benchmarks/stream_ranks.py --rows {given.rows}", results)


if __name__ == "__main__":
    main()
