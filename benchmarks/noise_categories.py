"""How often the default finds what matters beside categories of many values that are noise.

    python benchmarks/noise_categories.py                       # every table
    PYTHONPATH=OTHER/src python benchmarks/noise_categories.py  # the same with another source

Eight categories of noise, of 50 to 2,000 values, stand beside five numbers of noise and what is planted. ``numbers``:
five numbers. ``categories``: two numbers, and three categories with an effect per value. ``slopes``: a number, and a
category that decides the sign of its effect. ``pair``: two categories of twenty values that matter only together.
``rare``: five numbers, and few positive rows. A figure is the share of the planted features that is selected, where as
many are as were planted.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from record_file import print_table, write_record

import seqatt

NOISE = 8
KINDS = {"numbers": 5, "categories": 5, "slopes": 2, "pair": 2, "rare": 5}  # planted features
ROWS = (3_000, 20_000)
VALUES = (50, 300, 2_000)
SIGNS = np.repeat([-1, 1], 10)
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "batch by batch": {"memory": 0},
    "F-test": {"method": "f_test"},
}


def make_table(kind: str, rows: int, values: int, seed: int) -> pd.DataFrame:
    """A table with its target ``y``; names of planted features begin with "p"."""
    rng = np.random.default_rng([seed, rows, values])
    columns: dict[str, Any] = {f"n{j}": rng.normal(size=rows) for j in range(5)}
    columns |= {f"c{j}": rng.integers(0, values, rows) for j in range(NOISE)}
    if kind in ("numbers", "rare"):
        columns |= {f"p{j}": rng.normal(size=rows) for j in range(5)}
        odds = sum(effect * columns[f"p{j}"] for j, effect in enumerate((1, 0.8, 0.6, 0.5, 0.4)))
    elif kind == "categories":
        columns |= {"p0": rng.normal(size=rows), "p1": rng.normal(size=rows)}
        odds = columns["p0"] + 0.7 * columns["p1"]
        for j, count in enumerate((20, 50, 100), 2):
            columns[f"p{j}"] = rng.integers(0, count, rows)
            odds = odds + rng.normal(size=count)[columns[f"p{j}"]]
    elif kind == "slopes":
        columns |= {"p0": rng.normal(size=rows), "p1": rng.integers(0, 20, rows)}
        odds = 2 * rng.permutation(SIGNS)[columns["p1"]] * columns["p0"]
    else:
        columns |= {"p0": rng.integers(0, 20, rows), "p1": rng.integers(0, 20, rows)}
        odds = 2 * rng.permutation(SIGNS)[columns["p0"]] * rng.permutation(SIGNS)[columns["p1"]]
    offset = 5.0 if kind == "rare" else 0.0
    frame = pd.DataFrame({name: columns[name] for name in rng.permutation(sorted(columns))})
    for name in frame.columns[frame.dtypes == np.int64]:
        frame[name] = "v" + frame[name].astype(str)
    return frame.assign(y=(rng.random(rows) < 1 / (1 + np.exp(offset - odds))).astype(int))


def measure(kind: str, rows: int, values: int, draws: range, methods: list[str]) -> dict[str, Any]:
    found: dict[str, list[int]] = {name: [] for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in draws:
            frame, path = make_table(kind, rows, values, seed), f"{folder}/{seed}.parquet"
            frame.to_parquet(path, row_group_size=2_000)
            for name in methods:
                started, X = time.process_time(), path if "memory" in METHODS[name] else frame
                selection = seqatt.select(
                    X, target="y", k=KINDS[kind], seed=seed, device="cpu", **METHODS[name]
                )
                seconds[name] += time.process_time() - started
                found[name].append(sum(feature.startswith("p") for feature in selection.features))
    return {"kind": kind, "rows": rows, "values": values, "found": found, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # names that look like identifiers
    draws = range(options.first, options.first + options.draws)
    results = []
    for kind, rows, values in product(KINDS, ROWS, VALUES):
        results.append(measure(kind, rows, values, draws, options.methods))
        print(results[-1], flush=True)

    def share(kind: str, rows: int, name: str) -> float:
        found = [each["found"][name] for each in results if (each["kind"], each["rows"]) == (kind, rows)]
        return float(np.mean(found)) / KINDS[kind]

    print_table(
        ["table", *options.methods],
        [
            [f"{kind}, {rows:,} rows", *(f"{share(kind, rows, name):.2f}" for name in options.methods)]
            for kind, rows in product(KINDS, ROWS)
        ],
    )
    arguments = f" --draws {options.draws} --first {options.first} --methods"
    arguments += "".join(f" {shlex.quote(name)}" for name in options.methods)
    write_record("noise-categories", f"python benchmarks/noise_categories.py{arguments}", {"tables": results})


if __name__ == "__main__":
    main()
