"""How often a selection is marked as no better than chance: of noise, of features that matter together, of weak ones.

    python benchmarks/chance.py                                # every kind of table, twelve draws each
    python benchmarks/chance.py --only "noise, wide" --draws 4
    PYTHONPATH=OTHER/src python benchmarks/chance.py           # the same with another source

Selections of noise must be marked. Where planted features were found, selections must not be marked. A table with a
feature that is significant by itself is not tested and counts as "untested". CPU seconds are those of ``select``, which
the test is a part of, on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from record_file import write_record

import seqatt

Numbers = NDArray[np.float64]


class Kind(NamedTuple):
    """A kind of table: what its target is made of, its first ``planted`` features, and how many are selected."""

    rows: int
    columns: int
    target: Callable[[Numbers, np.random.Generator], NDArray[Any]]
    planted: int
    k: int


def classes(count: int) -> Callable[[Numbers, np.random.Generator], NDArray[Any]]:
    return lambda X, rng: rng.integers(count, size=len(X))


def flipped(values: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.where(rng.random(len(values)) < share, ~values, values).astype(int)


KINDS = {
    "noise, two classes, 100 x 20": Kind(100, 20, classes(2), 0, 3),
    "noise, three classes, 300 x 50": Kind(300, 50, classes(3), 0, 3),
    "noise, numbers, 200 x 30": Kind(200, 30, lambda X, rng: rng.normal(size=len(X)), 0, 3),
    "noise, wide, 150 x 4,000": Kind(150, 4_000, classes(2), 0, 4),
    "pair, 300 x 20": Kind(300, 20, lambda X, rng: (X[:, 0] * X[:, 1] > 0).astype(int), 2, 2),
    "pair, 500 x 50": Kind(500, 50, lambda X, rng: (X[:, 0] * X[:, 1] > 0).astype(int), 2, 2),
    "pair, 15 % flipped, 600 x 20": Kind(
        600, 20, lambda X, rng: flipped(X[:, 0] * X[:, 1] > 0, 0.15, rng), 2, 2
    ),
    "two products, 500 x 20": Kind(
        500, 20, lambda X, rng: (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0).astype(int), 4, 4
    ),
    "parity of three, 1,000 x 12": Kind(
        1_000, 12, lambda X, rng: (X[:, 0] * X[:, 1] * X[:, 2] > 0).astype(int), 3, 3
    ),
    "weak sum of five, wide, 150 x 4,000": Kind(
        150, 4_000, lambda X, rng: (X[:, :5].sum(1) + rng.normal(size=len(X)) > 0).astype(int), 5, 4
    ),
}


def draw(kind: Kind, seed: int) -> dict[str, Any]:
    """One table, what was found of its planted features, and how the selection compares with random ones."""
    rng = np.random.default_rng([seed, kind.rows, kind.columns, kind.planted])
    X = rng.normal(size=(kind.rows, kind.columns))
    y = kind.target(X, rng)
    started = time.process_time()
    selection = seqatt.select(X, y, kind.k)
    return {
        "found": int((np.asarray(selection.indices) < kind.planted).sum()),
        "chance": selection.chance,
        "cpu_seconds": time.process_time() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", help="kinds whose name contains this; repeatable")
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name, kind in KINDS.items():
        if options.only and not any(part in name for part in options.only):
            continue
        seeds = range(options.first, options.first + options.draws)
        drawn = results[name] = [draw(kind, seed) for seed in seeds]
        tested = [each for each in drawn if each["chance"]]
        found = [each for each in tested if each["found"]]
        print(
            f"{name}: {len(tested)} tested, {sum(not each['chance']['better'] for each in tested)} marked; "
            f"some planted features found in {len(found)}, of which "
            f"{sum(not each['chance']['better'] for each in found)} marked; found {[e['found'] for e in drawn]}; "
            f"folds {[each['chance']['folds'] for each in tested]}; "
            f"median CPU seconds {np.median([each['cpu_seconds'] for each in drawn]):.2f}",
            flush=True,
        )
    arguments = "".join(f' --only "{each}"' for each in options.only or ())
    write_record(
        "chance", f"python benchmarks/chance.py{arguments} --draws {options.draws}", {"kinds": results}
    )


if __name__ == "__main__":
    main()
