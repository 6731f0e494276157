"""Dated records of benchmarks, with machine, commit and versions; and tables in the terminal."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RECORDS = Path(__file__).parent / "records"


def machine() -> str:
    """The name of the GPU, or else of the CPU with its number of cores."""
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()


def commit() -> str:
    """The commit that is measured; SEQATT_COMMIT overrides it where the files have no git history."""
    if "SEQATT_COMMIT" in os.environ:
        return os.environ["SEQATT_COMMIT"]
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def write_record(name: str, command: str, results: Mapping[str, Any]) -> Path:
    """Write ``results`` with date, commit, machine, versions and the command that repeats them."""
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
    """The newest record of this name from a machine of the same name."""
    paths = sorted(RECORDS.glob(f"*-{name}.json"))
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    same_machine = [record for record in records if record.get("machine") == machine()]
    return same_machine[-1] if same_machine else None


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns aligned: the first to the left, the others to the right."""
    lines = [list(headings), *([_format(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    for line in lines:
        first, *rest = zip(line, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]))


def _format(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
