"""Selection from files: rows per second against the same rows from memory, peak memory, and time per stage.

    python benchmarks/stream.py --rows 20000000 --folder /tmp/log    # a table, a record; the log is not deleted
    python benchmarks/stream.py --rows 500000                        # smaller, for a quick look

The log is synthetic (39 features). Peak memory is measured for all of it and for its first tenth, each in its
own process. "From memory" trains on batches of a quarter of the log that were read and decoded before the clock
started.
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
from record_file import print_table, write_record
from stream_stages import bottleneck, costs_per_row, profile_step, stage_rates
from timing import in_turns, median_ratio

from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.loader import FileBatch, make_loader
from seqatt.datasets.synthetic import PLANTED, click_log
from seqatt.streaming.options import StreamAttentionOptions
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import batch_size_for, train_trial
from seqatt.training.backend.device import resolve_device

K = len(PLANTED)
METHOD = STREAMED_METHODS["sequential_attention"]
PAPER_ROWS = 3_000_000_000  # of the paper's Criteo log


def prepare(files: list[str], batch: int | None) -> tuple[FileData, StreamAttentionOptions, int]:
    options = StreamAttentionOptions(log1p=True, batch_size=batch)
    data = read_file_data(files, "click", options, options.hash_buckets)
    return data, options, batch_size_for(data, METHOD.schedule(K, options), options)


def train(data: FileData, options: StreamAttentionOptions, batches: Iterable[FileBatch]) -> list[str]:
    """The names of the selected features, in order."""
    schedule = METHOD.schedule(K, options)
    device = resolve_device("auto")
    trace = train_trial(data, 0, options, device, schedule, METHOD.make_gate, batches, lambda rows: None)
    return [data.names[f] for f in trace.order]


def measure_peak(files: list[str], batch: int | None, rounds: int) -> dict[str, Any]:
    """Seconds and peak memory of one selection from files."""
    data, options, size = prepare(files, batch)
    before = _peak_mib()
    started = time.perf_counter()
    features = train(data, options, make_loader(data, options, size, 0))
    return {
        "rows": int(data.expected_rows),
        "batch_size": size,
        "seconds": time.perf_counter() - started,
        "before_mib": before,
        "peak_mib": _peak_mib(),
        "features": features,
        "planted_at_k": [len(set(features[:k]) & set(PLANTED)) for k in range(1, K + 1)],
        "in_order_at_k": [set(features[:k]) == set(list(PLANTED)[:k]) for k in range(1, K + 1)],
    }


def measure_rates(files: list[str], batch: int | None, rounds: int) -> dict[str, Any]:
    """Seconds from files and from memory, in turns; rates of the stages; the profile of a step."""
    data, options, size = prepare(files, batch)
    device = resolve_device("auto")
    batches = list(make_loader(data, options, size, 0))
    works = [
        lambda: train(data, options, make_loader(data, options, size, 0)),
        lambda: train(data, options, batches),
    ]
    from_files, from_memory = in_turns(works, rounds, 1)
    return {
        "rows": int(data.expected_rows),
        "batch_size": size,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "files_s": from_files,
        "memory_s": from_memory,
        "share_of_memory_rate": median_ratio(from_memory, from_files),
        "memory_rows_a_second": data.expected_rows / min(from_memory),
        "a_row": costs_per_row(data, options, device),
        "stages_rows_a_second": stage_rates(data, options, size, device),
        "parts_of_a_step": profile_step(data, options, batches, device),
    }


MEASURES = {"peak": measure_peak, "rates": measure_rates}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_in_process(measure: str, files: list[Path], batch: int | None, rounds: int) -> dict[str, Any]:
    """One of ``MEASURES`` in a new process."""
    arguments = {"measure": measure, "files": [str(path) for path in files], "batch": batch, "rounds": rounds}
    command = [sys.executable, __file__, "--measure", json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def make_log(folder: Path, rows: int) -> tuple[list[Path], float | None]:
    """The files of the log, and the rows per second of writing them; None if the files existed already."""
    existing = sorted(folder.glob("clicks-*.parquet"))
    if existing and sum(pq.read_metadata(path).num_rows for path in existing) == rows:
        return existing, None
    started = time.perf_counter()
    log = click_log(folder, rows, rows_per_file=min(1_000_000, -(-rows // 10)))
    return list(log.files), rows / (time.perf_counter() - started)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    files, write_rate = make_log(folder, options.rows)
    tenth = files[: max(1, len(files) // 10)]
    peaks = [measure_in_process("peak", paths, options.batch, 1) for paths in (tenth, files)]
    quarter = files[: max(1, len(files) // 4)]  # fits in memory, and takes a fast machine some seconds
    rates = measure_in_process("rates", quarter, peaks[-1]["batch_size"], options.rounds)
    return {"peaks": peaks, "rates": rates, "written_rows_a_second": write_rate}


def print_results(results: dict[str, Any]) -> None:
    rates = results["rates"]
    print_table(
        ["rows", "batch", "seconds", "rows per second", "peak MiB", "planted among the first 1..8"],
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
    memory_rate = rates["memory_rows_a_second"]
    stages = rates["stages_rows_a_second"] | {"training, from memory": memory_rate}
    print_table(["stage", "rows per second"], [[name, round(rate)] for name, rate in stages.items()])
    print()
    print_table(
        ["part of a step", "microseconds", "calls"],
        [[p["name"], p["microseconds"], p["calls"]] for p in rates["parts_of_a_step"][:12]],
    )
    rate = results["peaks"][-1]["rows"] / results["peaks"][-1]["seconds"]
    share = rates["share_of_memory_rate"]
    print(f"\nFrom files at {share:.2f} of the rate from memory, on {rates['device']}")
    print(f"The bottleneck is {bottleneck(rates['stages_rows_a_second'], memory_rate)}")
    print(f"3 billion rows would take {PAPER_ROWS / rate / 86_400:.2g} days at {rate:,.0f} rows per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the log")
    parser.add_argument(
        "--folder", help="folder of the log, which is written if missing; default: a temporary one"
    )
    parser.add_argument("--batch", type=int, help="rows per batch; default: seqatt's own choice")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--name", default="stream", help="name of the record")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        arguments = json.loads(options.measure)
        print(json.dumps(MEASURES[arguments.pop("measure")](**arguments)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        results = measure(Path(options.folder or temporary), options)
    print_results(results)
    write_record(options.name, f"python benchmarks/stream.py --rows {options.rows}", results)


if __name__ == "__main__":
    main()
