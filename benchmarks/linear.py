"""OMP of seqatt.linear against scikit-learn's, and a Gram matrix over a stream against its bare products.

    python benchmarks/linear.py                  # every size: 6 minutes, 5 GB
    python benchmarks/linear.py --only 2000x500x50 --rounds 9    # one size, with its own record
    python benchmarks/linear.py --stream 10000000

The baselines from rows are scikit-learn's ``orthogonal_mp`` (with and without ``precompute``), and the product
X'X followed by ``orthogonal_mp_gram``; from a Gram matrix it is ``orthogonal_mp_gram``. They alternate with
seqatt in one run, and coefficients are compared. ``lars_path`` is timed once, because it is another algorithm.
CPU seconds are measured separately, with one BLAS thread. Memory is the peak of a separate process beyond X.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from record_file import print_table, write_record
from sklearn.linear_model import lars_path, orthogonal_mp, orthogonal_mp_gram
from threadpoolctl import threadpool_limits
from timing import seconds_of

from seqatt.linear import Gram, omp

SIZES = [(2000, 500, 50), (10_000, 2000, 200), (100_000, 1000, 100), (500, 20_000, 50), (1_000_000, 200, 50)]
MAX_GRAM_COLUMNS = 5000  # no Gram matrix of more columns
MAX_SECONDS = 20.0  # over all rounds: slower baselines are timed once


def planted(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """X with columns of unit length and a target from k of them, with noise of half the signal's norm."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    for start in range(0, n, 65_536):
        X[start : start + 65_536] /= np.sqrt(n)
    beta = np.zeros(d)
    beta[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
    y = X @ beta
    return X, y + 0.5 * np.linalg.norm(y) / np.sqrt(n) * rng.standard_normal(n)


def omp_from_product(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """X'X and X'y, then scikit-learn's ``orthogonal_mp_gram``."""
    return orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=k)


def in_turns(works: list[Any], rounds: int, repeats: int) -> list[list[float]]:
    """As ``timing.in_turns``, with a pause before each work: BLAS's threads keep spinning for a while."""
    measured = []
    for _ in range(rounds + 1):
        row = []
        for work in works:
            time.sleep(0.15)
            row.append(seconds_of(work, repeats))
        measured.append(row)
    return [list(column) for column in zip(*measured[1:], strict=True)]


def cpu_seconds(work: Any, rounds: int) -> float:
    """CPU seconds of all threads with one BLAS thread, the smallest of ``rounds``: little affected by load."""
    with threadpool_limits(1, user_api="blas"):
        seconds = []
        for _ in range(rounds):
            started = time.process_time()
            work()
            seconds.append(time.process_time() - started)
    return min(seconds)


def summarise_ratios(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Median, smallest and largest ratio of a baseline's seconds to ours."""
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def from_rows(n: int, d: int, k: int, rounds: int) -> dict[str, Any]:
    X, y = planted(n, d, k)
    ours = omp(X, y, k).coef
    baselines = {"orthogonal_mp": lambda: orthogonal_mp(X, y, n_nonzero_coefs=k)}
    if d <= MAX_GRAM_COLUMNS:
        baselines["orthogonal_mp, precompute"] = lambda: orthogonal_mp(
            X, y, n_nonzero_coefs=k, precompute=True
        )
        baselines["X'X, then orthogonal_mp_gram"] = lambda: omp_from_product(X, y, k)
    row: dict[str, Any] = {
        "size": f"{n}x{d}x{k}",
        "from": "rows",
        "difference": 0.0,
        "times": {},
        "ratios": {},
    }
    first_seconds = {}
    for name, work in baselines.items():
        started = time.perf_counter()
        coef = work()
        first_seconds[name] = time.perf_counter() - started
        row["difference"] = max(row["difference"], float(np.abs(coef - ours).max()))
        row["same"] = row.get("same", True) and bool(((coef != 0) == (ours != 0)).all())
    limit = max(MAX_SECONDS / rounds, 4 * min(first_seconds.values()))
    for name in [name for name, seconds in first_seconds.items() if seconds > limit]:
        del baselines[name]  # much slower than the fastest one: the first timing suffices
    turns = in_turns([lambda: omp(X, y, k), *baselines.values()], rounds, 1)
    row["times"]["seqatt"] = statistics.median(turns[0])
    for name, theirs in zip(baselines, turns[1:], strict=True):
        row["times"][name] = statistics.median(theirs)
        row["ratios"][name] = summarise_ratios(turns[0], theirs)
    row["cpu"] = {"seqatt": cpu_seconds(lambda: omp(X, y, k), rounds)}
    row["cpu"].update({name: cpu_seconds(work, rounds) for name, work in baselines.items()})
    for name in first_seconds.keys() - baselines.keys():
        row["times"][name] = first_seconds[name]
        row["ratios"][name] = {"once": first_seconds[name] / row["times"]["seqatt"]}
    if n * d <= 1 << 24:
        row["times"]["lars_path"] = seconds_of(lambda: lars_path(X, y, max_iter=k, method="lar"))
    return row


def from_gram(n: int, d: int, k: int, rounds: int) -> dict[str, Any] | None:
    if d > MAX_GRAM_COLUMNS:
        return None
    X, y = planted(min(n, 20_000), d, k)
    gram, square, cross = Gram.of(X, y), X.T @ X, X.T @ y
    repeats = max(1, 2_000_000 // (d * k * k))
    theirs = orthogonal_mp_gram(square, cross, n_nonzero_coefs=k)
    ours = omp(gram, k=k).coef
    turns = in_turns(
        [lambda: omp(gram, k=k), lambda: orthogonal_mp_gram(square, cross, n_nonzero_coefs=k)],
        rounds,
        repeats,
    )
    return {
        "size": f"{n}x{d}x{k}",
        "from": "Gram",
        "difference": float(np.abs(ours - theirs).max()),
        "same": bool(((ours != 0) == (theirs != 0)).all()),
        "times": {"seqatt": statistics.median(turns[0]), "orthogonal_mp_gram": statistics.median(turns[1])},
        "ratios": {"orthogonal_mp_gram": summarise_ratios(turns[0], turns[1])},
    }


def memory_mib(field: str) -> float:
    """Memory of this process in MiB, from Linux: VmRSS is now, VmHWM the peak since ``reset_peak``."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(field))) / 1024


def reset_peak() -> float:
    """Reset VmHWM; return the memory in use, in MiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return memory_mib("VmRSS")


def measure_memory(n: int, d: int, k: int) -> dict[str, float]:
    """MiB that ``omp`` needs beyond X, in this process."""
    X, y = planted(n, d, k)
    omp(X[:5000, : min(d, 200)], y[:5000], 2)  # memory that threads and libraries keep does not count
    before = reset_peak()
    omp(X, y, k)
    return {"more_mib": memory_mib("VmHWM") - before, "gram_mib": d * d / 2**17, "x_mib": n * d / 2**17}


def measure_memory_in_process(size: tuple[int, int, int]) -> dict[str, float]:
    command = [sys.executable, __file__, "--memory", "x".join(map(str, size))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def stream(rows: int, d: int = 200, batch: int = 50_000) -> dict[str, Any]:
    """Seconds of ``Gram.update`` over generated batches, against the bare products of the same batches."""
    rng = np.random.default_rng(0)
    pool = [rng.standard_normal((batch, d)) for _ in range(4)]
    beta = rng.standard_normal(d)
    gram, spent, bare, before = Gram(), 0.0, 0.0, reset_peak()
    for number in range(-(-rows // batch)):
        X = pool[number % 4]
        X[number % batch] = rng.standard_normal(d)
        y = X @ beta
        works = [lambda X=X, y=y: gram.update(X, y), lambda X=X, y=y: (X.T @ X, X.T @ y)]
        first = number % 2
        seconds = {i: seconds_of(works[i]) for i in (first, 1 - first)}
        spent, bare = spent + seconds[0], bare + seconds[1]
    return {
        "rows": gram.rows,
        "columns": d,
        "seconds": spent,
        "bare_products": bare,
        "ratio": spent / bare,
        "rows_per_second": gram.rows / spent,
        "gb_per_second": gram.rows * d * 8 / spent / 1e9,
        "more_mib": memory_mib("VmHWM") - before,
        "chosen": omp(gram, k=10).order,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory")
    parser.add_argument("--stream", type=int)
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(measure_memory(*map(int, options.memory.split("x")))))
        return
    if options.stream:
        measured = stream(options.stream)
        print(json.dumps(measured, indent=1))
        write_record("linear-stream", f"python benchmarks/linear.py --stream {options.stream}", measured)
        return
    results, load_before = [], os.getloadavg()
    for size in SIZES:
        if options.only and "x".join(map(str, size)) != options.only:
            continue
        for row in (from_gram(*size, options.rounds), from_rows(*size, options.rounds)):
            if row is not None:
                results.append(row)
                print(json.dumps(row), flush=True)
        results[-1]["memory"] = measure_memory_in_process(size)
        print(json.dumps(results[-1]["memory"]), flush=True)
    lines = [
        [row["size"], row["from"], name, row["times"]["seqatt"], row["times"][name], *ratio.values()]
        for row in results
        for name, ratio in row["ratios"].items()
    ]
    print_table(
        ["size", "from", "baseline", "seqatt s", "baseline s", "ratio", "least", "most"],
        [[*line, *[None] * (8 - len(line))] for line in lines],
    )
    name, more = (f"linear-{options.only}", f" --only {options.only}") if options.only else ("linear", "")
    write_record(
        name,
        f"python benchmarks/linear.py --rounds {options.rounds}{more}",
        {"load_before": load_before, "load_after": os.getloadavg(), "sizes": results},
    )


if __name__ == "__main__":
    main()
