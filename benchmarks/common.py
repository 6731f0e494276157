"""What every benchmark shares: timing in turns, records, and a table to read."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RECORDS = Path(__file__).parent / "records"
Work = Callable[[], object]


def machine() -> str:
    """The processor that does the work, in words."""
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()


def commit() -> str:
    """What was measured; SEQATT_COMMIT says so where the files travelled without their history."""
    if "SEQATT_COMMIT" in os.environ:
        return os.environ["SEQATT_COMMIT"]
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_of(work: Work, repeats: int = 1) -> float:
    """Seconds one call takes, the accelerator's work included."""
    wait()
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    wait()
    return (time.perf_counter() - started) / repeats


def in_turns(works: Sequence[Work], rounds: int, repeats: int) -> list[list[float]]:
    """Seconds of each work, taking turns, so that a noisy machine is as noisy for all."""
    for work in works:
        seconds_of(work, repeats)
    measured = [[seconds_of(work, repeats) for work in works] for _ in range(rounds)]
    return [list(column) for column in zip(*measured, strict=True)]


def ratio(of: Sequence[float], to: Sequence[float]) -> float:
    """The median of ratios measured side by side."""
    return statistics.median(a / b for a, b in zip(of, to, strict=True))


def write_record(name: str, command: str, results: Mapping[str, Any]) -> Path:
    """A dated record: what was measured, where, of which commit, and how to do it again."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    record = {
        "command": command,
        "date": str(today),
        "commit": commit(),
        "machine": machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **results,
    }
    folder = Path(os.environ.get("SEQATT_RECORDS", RECORDS))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{today}-{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return path


def last_record(name: str) -> dict[str, Any] | None:
    """The newest record of this name that was made on a machine like this one."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob(f"*-{name}.json"))]
    same = [record for record in found if record.get("machine") == machine()]
    return same[-1] if same else None


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[_shown(value) for value in row] for row in rows]
    widths = [max(len(c[i]) for c in [list(headings), *cells]) for i in range(len(headings))]
    for line in [list(headings), *cells]:
        first, *rest = (
            c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *rest]))


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
