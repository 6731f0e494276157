"""How often the default finds the two features that matter where few rows are positive.

    python benchmarks/rare_positives.py                       # every table, twelve draws each
    PYTHONPATH=OTHER/src python benchmarks/rare_positives.py  # the same with another source

Two of twenty columns decide how likely a row is positive. ``linear``: both raise the odds; ``squares``: the second one
does so by its square. Columns say how many draws found exactly the more useful one (k = 1) and exactly both (k = 2),
and which numbers ``k="auto"`` chose.
"""

from __future__ import annotations

import argparse
import shlex
import time
from typing import Any

import numpy as np
import torch
from record_file import print_table, write_record

import seqatt

KINDS = ("linear", "squares")
TABLES = ((1000, -5.0), (5000, -7.0), (20_000, -8.5), (20_000, -7.0), (5000, -3.0))  # rows, log odds
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "no exchanges": {"exchanges": 0},
    "F-test": {"method": "f_test"},
}
FIRST, SECOND = 4, 7  # the columns that matter


def make_table(kind: str, rows: int, odds: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, rows])
    X = rng.normal(size=(rows, 20))
    second = X[:, SECOND] if kind == "linear" else 0.5 * (X[:, SECOND] ** 2 - 1)
    y = rng.random(rows) < 1 / (1 + np.exp(-(1.5 * X[:, FIRST] + second + odds)))
    return X, y.astype(int)


def measure(kind: str, rows: int, odds: float, draws: range, methods: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: {"one": 0, "both": 0, "seconds": 0.0} for name in methods}
    sizes, positives, complete = [], [], 0
    for seed in draws:
        X, y = make_table(kind, rows, odds, seed)
        positives.append(int(y.sum()))
        for name in methods:
            started = time.process_time()
            for k, truth, key in ((1, {FIRST}, "one"), (2, {FIRST, SECOND}, "both")):
                selection = seqatt.select(X, y, k, seed=seed, device="cpu", **METHODS[name])
                found[name][key] += set(selection.indices.tolist()) == truth
            found[name]["seconds"] += time.process_time() - started
        chosen = set(seqatt.select(X, y, "auto", seed=seed, device="cpu").indices.tolist())
        sizes.append(len(chosen))
        complete += chosen >= {FIRST, SECOND}
    return {
        "kind": kind,
        "rows": rows,
        "positives": [min(positives), max(positives)],
        "draws": len(draws),
        "methods": found,
        "auto": {"sizes": sizes, "complete": complete},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    draws = range(options.first, options.first + options.draws)
    results = []
    for kind in KINDS:
        for rows, odds in TABLES:
            results.append(measure(kind, rows, odds, draws, options.methods))
            print(results[-1], flush=True)
    print_table(
        ["table", "positives", *(f"{name}, k = {k}" for name in options.methods for k in (1, 2)), "auto"],
        [
            [
                f"{found['kind']}, {found['rows']:,}",
                "{} to {}".format(*found["positives"]),
                *(found["methods"][name][key] for name in options.methods for key in ("one", "both")),
                f"{np.median(found['auto']['sizes']):g} ({found['auto']['complete']} complete)",
            ]
            for found in results
        ],
    )
    arguments = f" --draws {options.draws} --first {options.first} --methods"
    arguments += "".join(f" {shlex.quote(name)}" for name in options.methods)
    write_record("rare-positives", f"python benchmarks/rare_positives.py{arguments}", {"tables": results})


if __name__ == "__main__":
    main()
