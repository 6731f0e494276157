"""Cells of an experiment, run one after another; each is written down as soon as it is done."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.common import machine

import seqatt
from experiments.results_file import Results

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Slice:
    """What to run of an experiment: these data sets and settings (none: all), so many seeds, so long."""

    data: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seeds: int = 5
    epochs: float | None = None


@dataclass(frozen=True)
class Cell:
    """What is run in one go, and kept or lost as a whole.

    ``data`` is the name of a data set, with the kind of split after a slash where it is not the default;
    ``machine`` is named where seconds are what is measured, so that machines do not overwrite each other.
    """

    data: str
    setting: str
    seeds: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    machine: str = ""

    @property
    def key(self) -> str:
        first, last = self.seeds[0], self.seeds[-1]
        seeds = f"seed {first}" if len(self.seeds) == 1 else f"seeds {first}-{last}"
        return " | ".join([self.data, self.setting, seeds, *([self.machine] if self.machine else [])])


def run_cells(results: Results, cells: Iterable[Cell], run: Callable[[Cell], dict[str, Any]]) -> int:
    """Run what is not done yet and say how much that was.

    A cell counts as done if the file has it with the same options: a killed run goes on where it stopped.
    """
    todo = [cell for cell in cells if not results.has(cell.key, cell.options)]
    about = describe_run()
    for number, cell in enumerate(todo, 1):
        say(f"{results.name} {number}/{len(todo)}: {cell.key} ...")
        started = time.perf_counter()
        found = run(cell)
        seconds = time.perf_counter() - started
        entry: dict[str, Any] = {"data": cell.data, "setting": cell.setting, "seeds": list(cell.seeds)}
        entry |= {"machine": cell.machine} if cell.machine else {}
        entry |= {"options": cell.options, **found, "seconds": round(seconds, 2)}
        results.add(cell.key, entry, about)
        scores = found.get("accuracy") or found.get("score")
        say(f"    {f'{np.mean(scores):.4f}, ' if scores else found.get('failed', '')}{seconds:.1f} s")
    return len(todo)


def attempt(run: Callable[[Cell], dict[str, Any]], cell: Cell, *measures: str) -> dict[str, Any]:
    """What a cell found, or why it failed: one method's failure must not stop the others.

    ``measures`` are then empty. The next run tries such a cell again.
    """
    try:
        return run(cell)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        return {"failed": f"{type(error).__name__}: {reason}", **{name: [] for name in measures}}


def say(line: str) -> None:
    """For people who watch; pipes and logs stay silent."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def describe_run() -> dict[str, Any]:
    """What a figure depends on besides its settings, and how to get it again."""
    return {
        "command": " ".join(["python -m experiments", *sys.argv[1:]]),
        "date": str(datetime.datetime.now(tz=datetime.UTC).date()),
        "commit": commit(),
        "machine": machine(),
        "cores": os.cpu_count(),
        "seqatt": seqatt.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def commit() -> str:
    """The commit of the code that runs; results written meanwhile do not make it another.

    SEQATT_COMMIT says so where the files travelled without their history.
    """
    if "SEQATT_COMMIT" in os.environ:
        return os.environ["SEQATT_COMMIT"]

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)

    head = git("rev-parse", "--short", "HEAD").stdout.strip()
    if not head:
        return "unknown"
    changed = git("status", "--porcelain", "--", "src", "experiments/*.py").stdout.strip()
    return f"{head}-dirty" if changed else head
