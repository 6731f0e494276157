"""Linear selection beside scikit-learn's, in turns in one run, and a stream beside its bare products.

    python benchmarks/linear.py                  # every size: 6 minutes, 5 GB
    python benchmarks/linear.py --only 2000x500x50 --rounds 9    # one, with a record of its own
    python benchmarks/linear.py --stream 10000000

From rows, scikit-learn has ``orthogonal_mp`` (with and without ``precompute``) and, by hand, the product X'X
and then ``orthogonal_mp_gram``. From a Gram matrix it has ``orthogonal_mp_gram``. ``lars_path`` is timed
once: it is another algorithm. Coefficients must agree. CPU seconds are measured apart, with one BLAS
thread. Memory is what a process of its own needs beyond X.
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
from common import print_table, seconds_of, write_record
from sklearn.linear_model import lars_path, orthogonal_mp, orthogonal_mp_gram
from threadpoolctl import threadpool_limits

from seqatt.linear import Gram, omp

SIZES = [(2000, 500, 50), (10_000, 2000, 200), (100_000, 1000, 100), (500, 20_000, 50), (1_000_000, 200, 50)]
WIDE = 5000  # columns above which a Gram matrix is not formed
ENOUGH = 20.0  # seconds: what takes longer is timed once


def planted(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of length one, k of them in the target, and noise of half the signal's size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    for start in range(0, n, 65_536):
        X[start : start + 65_536] /= np.sqrt(n)
    beta = np.zeros(d)
    beta[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
    y = X @ beta
    return X, y + 0.5 * np.linalg.norm(y) / np.sqrt(n) * rng.standard_normal(n)


def by_hand(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    return orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=k)


def in_turns(works: list[Any], rounds: int, repeats: int) -> list[list[float]]:
    """Seconds of each, in turns; BLAS's threads spin on for a while, so each waits until they sleep."""
    measured = []
    for _ in range(rounds + 1):
        row = []
        for work in works:
            time.sleep(0.15)
            row.append(seconds_of(work, repeats))
        measured.append(row)
    return [list(column) for column in zip(*measured[1:], strict=True)]


def cpu_seconds(work: Any, rounds: int) -> float:
    """The least of all threads together, with one BLAS thread: what a busy machine disturbs least."""
    with threadpool_limits(1, user_api="blas"):
        taken = []
        for _ in range(rounds):
            started = time.process_time()
            work()
            taken.append(time.process_time() - started)
    return min(taken)


def spread(ours: list[float], theirs: list[float]) -> dict[str, float]:
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def from_rows(n: int, d: int, k: int, rounds: int) -> dict[str, Any]:
    X, y = planted(n, d, k)
    ours = omp(X, y, k).coef
    players = {"orthogonal_mp": lambda: orthogonal_mp(X, y, n_nonzero_coefs=k)}
    if d <= WIDE:
        players["orthogonal_mp, precompute"] = lambda: orthogonal_mp(X, y, n_nonzero_coefs=k, precompute=True)
        players["X'X, then orthogonal_mp_gram"] = lambda: by_hand(X, y, k)
    row: dict[str, Any] = {
        "size": f"{n}x{d}x{k}",
        "from": "rows",
        "difference": 0.0,
        "times": {},
        "ratios": {},
    }
    slow = {}
    for name, play in players.items():
        started = time.perf_counter()
        coef = play()
        slow[name] = time.perf_counter() - started
        row["difference"] = max(row["difference"], float(np.abs(coef - ours).max()))
        row["same"] = row.get("same", True) and bool(((coef != 0) == (ours != 0)).all())
    for name in [name for name in slow if slow[name] > max(ENOUGH / rounds, 4 * min(slow.values()))]:
        del players[name]  # not the better one: once is enough
    turns = in_turns([lambda: omp(X, y, k), *players.values()], rounds, 1)
    row["times"]["seqatt"] = statistics.median(turns[0])
    for name, theirs in zip(players, turns[1:], strict=True):
        row["times"][name] = statistics.median(theirs)
        row["ratios"][name] = spread(turns[0], theirs)
    row["cpu"] = {"seqatt": cpu_seconds(lambda: omp(X, y, k), rounds)}
    row["cpu"].update({name: cpu_seconds(play, rounds) for name, play in players.items()})
    for name in slow.keys() - players.keys():
        row["times"][name] = slow[name]
        row["ratios"][name] = {"once": slow[name] / row["times"]["seqatt"]}
    if n * d <= 1 << 24:
        row["times"]["lars_path"] = seconds_of(lambda: lars_path(X, y, max_iter=k, method="lar"))
    return row


def from_gram(n: int, d: int, k: int, rounds: int) -> dict[str, Any] | None:
    if d > WIDE:
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
        "ratios": {"orthogonal_mp_gram": spread(turns[0], turns[1])},
    }


def status(field: str) -> float:
    """MiB, as Linux counts them: VmRSS now, VmHWM at most since ``forget``."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(field))) / 1024


def forget() -> float:
    """From here on VmHWM counts anew; what is held now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status("VmRSS")


def memory(n: int, d: int, k: int) -> dict[str, float]:
    """MiB beyond X, in this process."""
    X, y = planted(n, d, k)
    omp(X[:5000, : min(d, 200)], y[:5000], 2)  # what threads and libraries keep is not this call's
    held = forget()
    omp(X, y, k)
    return {"more_mib": status("VmHWM") - held, "gram_mib": d * d / 2**17, "x_mib": n * d / 2**17}


def memory_apart(size: tuple[int, int, int]) -> dict[str, float]:
    command = [sys.executable, __file__, "--memory", "x".join(map(str, size))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def stream(rows: int, d: int = 200, batch: int = 50_000) -> dict[str, Any]:
    """Batches made on the fly, read once: a Gram beside the bare products of the same batches."""
    rng = np.random.default_rng(0)
    pool = [rng.standard_normal((batch, d)) for _ in range(4)]
    beta = rng.standard_normal(d)
    gram, spent, bare, held = Gram(), 0.0, 0.0, forget()
    for number in range(-(-rows // batch)):
        X = pool[number % 4]
        X[number % batch] = rng.standard_normal(d)
        y = X @ beta
        works = [lambda X=X, y=y: gram.update(X, y), lambda X=X, y=y: (X.T @ X, X.T @ y)]
        first = number % 2
        took = {i: seconds_of(works[i]) for i in (first, 1 - first)}
        spent, bare = spent + took[0], bare + took[1]
    return {
        "rows": gram.rows,
        "columns": d,
        "seconds": spent,
        "bare_products": bare,
        "ratio": spent / bare,
        "rows_per_second": gram.rows / spent,
        "gb_per_second": gram.rows * d * 8 / spent / 1e9,
        "more_mib": status("VmHWM") - held,
        "chosen": omp(gram, k=10).order,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory")
    parser.add_argument("--stream", type=int)
    asked = parser.parse_args()
    if asked.memory:
        print(json.dumps(memory(*map(int, asked.memory.split("x")))))
        return
    if asked.stream:
        found = stream(asked.stream)
        print(json.dumps(found, indent=1))
        write_record("linear-stream", f"python benchmarks/linear.py --stream {asked.stream}", found)
        return
    results, before = [], os.getloadavg()
    for size in SIZES:
        if asked.only and "x".join(map(str, size)) != asked.only:
            continue
        for row in (from_gram(*size, asked.rounds), from_rows(*size, asked.rounds)):
            if row is not None:
                results.append(row)
                print(json.dumps(row), flush=True)
        results[-1]["memory"] = memory_apart(size)
        print(json.dumps(results[-1]["memory"]), flush=True)
    shown = [
        [row["size"], row["from"], name, row["times"]["seqatt"], row["times"][name], *ratio.values()]
        for row in results
        for name, ratio in row["ratios"].items()
    ]
    print_table(
        ["size", "from", "against", "seqatt s", "theirs s", "ratio", "least", "most"],
        [[*line, *[None] * (8 - len(line))] for line in shown],
    )
    name, more = (f"linear-{asked.only}", f" --only {asked.only}") if asked.only else ("linear", "")
    write_record(
        name,
        f"python benchmarks/linear.py --rounds {asked.rounds}{more}",
        {"load_before": before, "load_after": os.getloadavg(), "sizes": results},
    )


if __name__ == "__main__":
    main()
