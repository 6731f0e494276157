"""Selecting from files: rows a second against the same rows from memory, memory needed, where time goes.

    python benchmarks/stream.py --rows 20000000 --folder /tmp/log    # a table, a record; the log stays there
    python benchmarks/stream.py --rows 500000                        # smaller, for a look

The log is synthetic (39 features). Its first tenth is the short log. Every point is a process of its own, so
that its peak memory is its own. "From memory" trains on batches of a quarter of the log that were read and
decoded before the clock started.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from common import in_turns, print_table, ratio, write_record
from stream_stages import bottleneck, parts_of_a_step, sizes, stages

from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.loader import FileBatch, make_loader
from seqatt.datasets.synthetic import PLANTED, click_log
from seqatt.streaming.options import StreamAttentionOptions
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import batch_size_for, train_trial
from seqatt.training.loop import resolve_device

K = len(PLANTED)
METHOD = STREAMED_METHODS["sequential_attention"]
IN_THE_PAPER = 3_000_000_000  # rows


def prepare(files: list[str], batch: int | None) -> tuple[FileData, StreamAttentionOptions, int]:
    options = StreamAttentionOptions(log1p=True, batch_size=batch)
    stream = read_file_data(files, "click", options, options.buckets)
    return stream, options, batch_size_for(stream, METHOD.schedule(K, options), options)


def train(stream: FileData, options: StreamAttentionOptions, coming: Iterable[FileBatch]) -> list[str]:
    schedule = METHOD.schedule(K, options)
    device = resolve_device("auto")
    trace = train_trial(stream, 0, options, device, schedule, METHOD.make_gate, coming, lambda rows: None)
    return [stream.names[f] for f in trace.order]


def peak(files: list[str], batch: int | None, rounds: int) -> dict[str, Any]:
    """One selection from files alone, for its memory."""
    stream, options, size = prepare(files, batch)
    before = _peak_mib()
    started = time.perf_counter()
    features = train(stream, options, make_loader(stream, options, size, 0))
    return {
        "rows": int(stream.expected),
        "batch_size": size,
        "seconds": time.perf_counter() - started,
        "before_mib": before,
        "peak_mib": _peak_mib(),
        "features": features,
        "planted_at_k": [len(set(features[:k]) & set(PLANTED)) for k in range(1, K + 1)],
        "in_order_at_k": [set(features[:k]) == set(list(PLANTED)[:k]) for k in range(1, K + 1)],
    }


def rates(files: list[str], batch: int | None, rounds: int) -> dict[str, Any]:
    """Seconds from files and from memory, taking turns; then each stage, and what a step is made of."""
    stream, options, size = prepare(files, batch)
    device = resolve_device("auto")
    held = list(make_loader(stream, options, size, 0))
    works = [
        lambda: train(stream, options, make_loader(stream, options, size, 0)),
        lambda: train(stream, options, held),
    ]
    from_files, from_memory = in_turns(works, rounds, 1)
    return {
        "rows": int(stream.expected),
        "batch_size": size,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "files_s": from_files,
        "memory_s": from_memory,
        "share_of_memory_rate": ratio(from_memory, from_files),
        "memory_rows_a_second": stream.expected / min(from_memory),
        "a_row": sizes(stream, options, device),
        "stages_rows_a_second": stages(stream, options, size, device),
        "parts_of_a_step": parts_of_a_step(stream, options, held, device),
    }


WORKS = {"peak": peak, "rates": rates}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(work: str, files: list[Path], batch: int | None, rounds: int) -> dict[str, Any]:
    told = {"work": work, "files": [str(path) for path in files], "batch": batch, "rounds": rounds}
    command = [sys.executable, __file__, "--work", json.dumps(told)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def make_log(folder: Path, rows: int) -> tuple[list[Path], float | None]:
    """The log, and the rows a second it was written at; one that is there is taken as it is."""
    there = sorted(folder.glob("clicks-*.parquet"))
    if there and sum(pq.read_metadata(path).num_rows for path in there) == rows:
        return there, None
    started = time.perf_counter()
    log = click_log(folder, rows, rows_per_file=min(1_000_000, -(-rows // 10)))
    return list(log.files), rows / (time.perf_counter() - started)


def measure(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    files, written = make_log(folder, given.rows)
    short = files[: max(1, len(files) // 10)]
    peaks = [apart("peak", some, given.batch, 1) for some in (short, files)]
    some = files[: max(1, len(files) // 4)]  # fits in memory, and takes a fast machine some seconds
    compared = apart("rates", some, peaks[-1]["batch_size"], given.rounds)
    return {"peaks": peaks, "rates": compared, "written_rows_a_second": written}


def show(results: dict[str, Any]) -> None:
    compared = results["rates"]
    print_table(
        ["rows", "batch", "seconds", "rows a second", "peak MiB", "planted among the first 1..8"],
        [
            [
                p["rows"],
                p["batch_size"],
                p["seconds"],
                round(p["rows"] / p["seconds"]),
                round(p["peak_mib"]),
                " ".join(map(str, p["planted_at_k"])),
            ]
            for p in results["peaks"]
        ],
    )
    print()
    memory = compared["memory_rows_a_second"]
    found = compared["stages_rows_a_second"] | {"training, from memory": memory}
    print_table(["stage", "rows a second"], [[name, round(rate)] for name, rate in found.items()])
    print()
    print_table(
        ["part of a step", "microseconds", "calls"],
        [[p["name"], p["microseconds"], p["calls"]] for p in compared["parts_of_a_step"][:12]],
    )
    rate = results["peaks"][-1]["rows"] / results["peaks"][-1]["seconds"]
    share = compared["share_of_memory_rate"]
    print(f"\nFrom files at {share:.2f} of the rate from memory, on {compared['device']}")
    print(f"The bottleneck is {bottleneck(compared['stages_rows_a_second'], memory)}")
    print(f"3 billion rows would take {IN_THE_PAPER / rate / 86_400:.2g} days at {rate:,.0f} rows a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the long log")
    parser.add_argument("--folder", help="where the log is, or is to be; a temporary one if left out")
    parser.add_argument("--batch", type=int, help="rows in a batch, where not by the rule")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--name", default="stream", help="of the record")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        told = json.loads(given.work)
        print(json.dumps(WORKS[told.pop("work")](**told)))
        return
    with tempfile.TemporaryDirectory() as place:
        results = measure(Path(given.folder or place), given)
    show(results)
    write_record(given.name, f"python benchmarks/stream.py --rows {given.rows}", results)


if __name__ == "__main__":
    main()
