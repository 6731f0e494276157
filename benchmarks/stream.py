"""Selecting from files: rows a second against the same rows from memory, and the memory it needs.

    python benchmarks/stream.py                  # a table and a record
    python benchmarks/stream.py --rows 200000    # smaller, for a look

The log is synthetic (39 features). Every point is a process of its own, so that its peak memory is its own.
"From memory" trains on batches that were read and decoded before the clock started.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from common import in_turns, print_table, ratio, write_record

from seqatt.data.synthetic import PLANTED, click_log
from seqatt.neural.engine import pick_device
from seqatt.stream import attention
from seqatt.stream.batches import Batch
from seqatt.stream.options import AttentionOnFiles
from seqatt.stream.source import Stream, read_stream

K, BATCH = 8, 1024


def prepare(folder: str) -> tuple[Stream, AttentionOnFiles]:
    options = AttentionOnFiles(batch_size=BATCH, log1p=True)
    return read_stream(f"{folder}/*.parquet", "click", options, options.buckets), options


def train(stream: Stream, options: AttentionOnFiles, coming: Iterable[Batch]) -> list[str]:
    schedule = attention.plan(K, options)
    trace = attention.choose(stream, 0, options, pick_device("auto"), schedule, coming, lambda rows: None)
    return [stream.names[f] for f in trace.order]


def rates(folder: str, rounds: int) -> dict[str, Any]:
    """Seconds from files and from memory, taking turns."""
    stream, options = prepare(folder)
    held = list(attention.batches_of(stream, options, BATCH, 0))
    works = [
        lambda: train(stream, options, attention.batches_of(stream, options, BATCH, 0)),
        lambda: train(stream, options, held),
        lambda: deque(attention.batches_of(stream, options, BATCH, 0), maxlen=0),
    ]
    files, memory, reading = in_turns(works, rounds, 1)
    return {
        "rows": int(stream.expected),
        "device": str(pick_device("auto")),
        "threads": torch.get_num_threads(),
        "files_s": files,
        "memory_s": memory,
        "reading_alone_s": reading,
        "share_of_memory_rate": ratio(memory, files),
    }


def peak(folder: str, rounds: int) -> dict[str, Any]:
    """One selection from files alone, for its memory."""
    stream, options = prepare(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    features = train(stream, options, attention.batches_of(stream, options, BATCH, 0))
    return {
        "rows": int(stream.expected),
        "seconds": time.perf_counter() - started,
        "before_mib": before,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "found": len(set(features) & set(PLANTED)),
    }


WORKS = {"rates": rates, "peak": peak}


def apart(work: str, folder: Path, rounds: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--work", work, "--folder", str(folder), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="of the short log; the long has four times")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--work", choices=list(WORKS))
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.work:
        print(json.dumps(WORKS[given.work](given.folder, given.rounds)))
        return
    with tempfile.TemporaryDirectory() as place:
        short, long = Path(place) / "short", Path(place) / "long"
        started = time.perf_counter()
        click_log(short, given.rows)
        click_log(long, 4 * given.rows)
        written = 5 * given.rows / (time.perf_counter() - started)
        peaks = [apart("peak", folder, 1) for folder in (short, long)]
        compared = apart("rates", short, given.rounds)
    print_table(
        ["rows", "seconds", "rows a second", "peak MiB", "planted found"],
        [
            [
                p["rows"],
                p["seconds"],
                round(p["rows"] / p["seconds"]),
                round(p["peak_mib"]),
                p["found"],
            ]
            for p in peaks
        ],
    )
    share, device = compared["share_of_memory_rate"], compared["device"]
    print(f"\nFrom files at {share:.2f} of the rate from memory, on {device}")
    results = {"peaks": peaks, "rates": compared, "written_rows_a_second": written}
    write_record("stream", f"python benchmarks/stream.py --rows {given.rows}", results)


if __name__ == "__main__":
    main()
