"""Selection from files: rows per second against the same rows from memory, peak memory, and time per stage.

    python benchmarks/stream.py --rows 20000000 --folder /tmp/log    # a table, a record; the log is not deleted
    python benchmarks/stream.py --rows 500000                        # smaller, for a quick look
    python benchmarks/stream.py --hidden 768,256,128                 # the network of the paper

The log is synthetic (39 features). Peak memory is measured for all of it and for its first tenth, each in its
own process; CUDA starts before the clock does. "From memory" trains on batches of a quarter of the log that were
read and decoded before the clock started.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from record_file import print_table, write_record
from stream_stages import Prepared, bottleneck, costs_per_row, prepare, profile_step, stage_rates
from timing import in_turns, median_ratio

from seqatt.datasets.synthetic import PLANTED, click_log
from seqatt.training.backend.device import resolve_device
from seqatt.training.kernels import start_device

K = len(PLANTED)
PAPER_ROWS = 3_000_000_000  # of the paper's Criteo log


def prepare_run(files: list[str], run: dict[str, Any]) -> tuple[Prepared, torch.device]:
    device = resolve_device("auto")
    start_device(device).result()
    return prepare(
        files, K, device, **{name: value for name, value in run.items() if value is not None}
    ), device


def measure_peak(files: list[str], run: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Seconds and peak memory of one selection from files."""
    prepared, _ = prepare_run(files, run)
    before = _peak_mib()
    started = time.perf_counter()
    features = prepared.train()
    return {
        "rows": int(prepared.data.expected_rows),
        "batch_size": prepared.batch_size,
        "ensemble": prepared.plan.settings["ensemble"],
        "hidden": prepared.plan.settings["hidden"],
        "seconds": time.perf_counter() - started,
        "before_mib": before,
        "peak_mib": _peak_mib(),
        "features": features,
        "planted_at_k": [len(set(features[:k]) & set(PLANTED)) for k in range(1, K + 1)],
        "in_order_at_k": [set(features[:k]) == set(list(PLANTED)[:k]) for k in range(1, K + 1)],
    }


def measure_rates(files: list[str], run: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Seconds from files and from memory, in turns; rates of the stages; the profile of a step."""
    prepared, device = prepare_run(files, run)
    batches = list(prepared.load())
    from_files, from_memory = in_turns([prepared.train, lambda: prepared.train(batches)], rounds, 1)
    rows = prepared.data.expected_rows
    return {
        "rows": int(rows),
        "batch_size": prepared.batch_size,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "files_s": from_files,
        "memory_s": from_memory,
        "share_of_memory_rate": median_ratio(from_memory, from_files),
        "memory_rows_a_second": rows / min(from_memory),
        "a_row": costs_per_row(prepared),
        "stages_rows_a_second": stage_rates(prepared, device),
        "parts_of_a_step": profile_step(prepared, batches, device),
    }


MEASURES = {"peak": measure_peak, "rates": measure_rates}


def _widths(text: str) -> list[int]:
    return [int(width) for width in text.split(",")]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_in_process(measure: str, files: list[Path], run: dict[str, Any], rounds: int) -> dict[str, Any]:
    """One of ``MEASURES`` in a new process."""
    arguments = {"measure": measure, "files": [str(path) for path in files], "run": run, "rounds": rounds}
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
    run = {"hidden": options.hidden, "batch_size": options.batch, "ensemble": options.ensemble}
    peaks = [measure_in_process("peak", paths, run, 1) for paths in (tenth, files)]
    if options.peak_only:
        return {"peaks": peaks, "written_rows_a_second": write_rate}
    quarter = files[: max(1, len(files) // 4)]  # fits in memory, and takes a fast machine some seconds
    same = {"batch_size": peaks[-1]["batch_size"], "ensemble": peaks[-1]["ensemble"]}
    rates = measure_in_process("rates", quarter, run | same, options.rounds)
    return {"peaks": peaks, "rates": rates, "written_rows_a_second": write_rate}


def print_results(results: dict[str, Any]) -> None:
    print_table(
        ["rows", "models", "batch", "seconds", "rows per second", "peak MiB", "planted among the first 1..8"],
        [
            [
                p["rows"],
                p["ensemble"],
                p["batch_size"],
                p["seconds"],
                round(p["rows"] / p["seconds"]),
                round(p["peak_mib"]),
                " ".join(map(str, p["planted_at_k"])),
            ]
            for p in results["peaks"]
        ],
    )
    if "rates" not in results:
        return
    rates = results["rates"]
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
    parser.add_argument("--ensemble", type=int, help="models per trial; default: seqatt's own choice")
    parser.add_argument("--hidden", type=_widths, help="widths such as 768,256,128; default: seqatt's own")
    parser.add_argument("--peak-only", action="store_true", help="only rows per second and peak memory")
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
    given = " ".join(sys.argv[1:])
    write_record(options.name, f"python benchmarks/stream.py {given}".rstrip(), results)


if __name__ == "__main__":
    main()
