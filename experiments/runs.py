"""The runs of an experiment: described, executed one after another, and recorded as soon as each one ends."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.record_file import machine

import seqatt
from experiments.results_file import Results

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class RunRequest:
    """Which runs of an experiment to execute. Empty ``data`` or ``settings`` stand for all of them.

    ``seeds`` is the number of trials; ``epochs`` overrides the training budget (None: the experiment's own).
    """

    data: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seeds: int = 5
    epochs: float | None = None


@dataclass(frozen=True)
class Run:
    """One data set, one setting and one or more seeds: executed at once, recorded as one entry.

    ``data`` is the name of a data set, with the kind of split after a slash where it is not the default.
    ``machine`` is set only where seconds are measured, so that results of several machines are kept apart.
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


Execute = Callable[[Run], dict[str, Any]]


def execute_runs(results: Results, runs: Iterable[Run], execute: Execute, jobs: int = 1) -> int:
    """Execute the runs that are not recorded yet, in ``jobs`` processes; return their number.

    A run counts as recorded if the results file holds it with the same options, so a killed process resumes
    where it stopped.
    """
    pending = [run for run in runs if not results.has(run.key, run.options)]
    if jobs > 1 and any(run.machine for run in pending):
        raise ValueError(
            f"--jobs: {results.name} measures seconds, which need a machine to themselves; leave it out"
        )
    environment = describe_environment()
    for number, (run, measured, seconds) in enumerate(_executed(pending, execute, jobs), 1):
        print_progress(f"{results.name} {number}/{len(pending)}: {run.key}")
        entry: dict[str, Any] = {"data": run.data, "setting": run.setting, "seeds": list(run.seeds)}
        entry |= {"machine": run.machine} if run.machine else {}
        entry |= {"options": run.options, **measured, "seconds": round(seconds, 2)}
        results.add(run.key, entry, environment)
        scores = measured.get("accuracy") or measured.get("score")
        outcome = f"{np.mean(scores):.4f}, " if scores else measured.get("failed", "")
        print_progress(f"    {outcome}{seconds:.1f} s")
    return len(pending)


def _executed(runs: list[Run], execute: Execute, jobs: int) -> Iterator[tuple[Run, dict[str, Any], float]]:
    """Each run with what it measured and its seconds, in the order in which they end."""
    if jobs == 1:
        for run in runs:
            yield run, *_execute(execute, run)
        return
    # New processes instead of forks: a fork of a process that has used OpenMP or CUDA may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        submitted = {pool.submit(_execute, execute, run): run for run in runs}
        try:
            for future in as_completed(submitted):
                yield submitted[future], *future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _execute(execute: Execute, run: Run) -> tuple[dict[str, Any], float]:
    started = time.perf_counter()
    measured = execute(run)
    return measured, time.perf_counter() - started


def evaluate_again(
    results: Results, request: RunRequest, evaluate: Callable[[Run, list[Any]], dict[str, Any]]
) -> int:
    """Evaluate the recorded features of the requested runs with today's evaluation; return the number of runs.

    Where the evaluation has changed and a method has not, this takes a small part of the seconds of a new run.
    """
    environment = describe_environment()

    def is_pending(entry: dict[str, Any]) -> bool:
        evaluated = results.environments[entry.get("evaluated", entry["environment"])]
        asked = entry["data"] in (request.data or [entry["data"]])
        asked &= entry["setting"] in (request.settings or [entry["setting"]])
        return asked and bool(entry.get("features")) and evaluated["commit"] != environment["commit"]

    pending = [(key, entry) for key, entry in results.runs.items() if is_pending(entry)]
    for number, (key, entry) in enumerate(pending, 1):
        print_progress(f"{results.name} {number}/{len(pending)}: {key}, evaluated again ...")
        run = Run(entry["data"], entry["setting"], tuple(entry["seeds"]), entry["options"])
        results.evaluate_again(key, evaluate(run, entry["features"]), environment)
    return len(pending)


def catch_failure(execute: Execute, run: Run, *measures: str) -> dict[str, Any]:
    """``execute(run)``, or the reason why it failed: one method's failure must not stop the others.

    A failed run is recorded with empty lists for ``measures``, and tried again the next time.
    """
    try:
        return execute(run)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        return {"failed": f"{type(error).__name__}: {reason}", **{name: [] for name in measures}}


def print_progress(line: str) -> None:
    """Print to stderr if it is a terminal; write nothing to pipes and logs."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def describe_environment() -> dict[str, Any]:
    """The command, commit, machine and versions of this process."""
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
    """The commit of the running code, with "-dirty" if src or experiments/*.py differ from it.

    Result files are ignored, because they change while experiments run. SEQATT_COMMIT overrides the answer
    where the files were copied without their git history.
    """
    if "SEQATT_COMMIT" in os.environ:
        return os.environ["SEQATT_COMMIT"]

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    head = git("rev-parse", "--short", "HEAD").stdout.strip()
    if not head:
        return "unknown"
    changed = git("status", "--porcelain", "--", "src", "experiments/*.py").stdout.strip()
    return f"{head}-dirty" if changed else head
