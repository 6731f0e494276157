"""How often ``k="auto"`` finds features in noise whose target has a rare class.

    python benchmarks/rare_classes.py                                # every table, forty draws each
    python benchmarks/rare_classes.py --only "noise, classes of 147" --draws 4
    PYTHONPATH=OTHER/src python benchmarks/rare_classes.py           # the same with another source

Features are independent of the target, so the selection should be empty; tables of balanced classes are there to
compare with. In the last tables the first column tells the last class apart, and should be selected.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from record_file import write_record

import seqatt


class Kind(NamedTuple):
    """The rows of each class, the columns, and what the last class adds to the first column."""

    rows: tuple[int, ...]
    columns: int
    shift: float = 0.0

    @property
    def name(self) -> str:
        signal = f"shift {self.shift:g}" if self.shift else "noise"
        return f"{signal}, classes of {', '.join(map(str, self.rows))} rows, {self.columns} columns"


NOISE = (
    Kind((75, 75), 20),
    *(Kind((150 - rare, rare), 20) for rare in (1, 2, 3, 4, 5, 10)),
    *(Kind((500 - rare, rare), 10) for rare in (2, 3, 5)),
    Kind((50, 50, 50), 20),
    *(Kind((75, 75 - rare, rare), 20) for rare in (1, 2, 3, 5)),
    *(Kind((120, 30 - rare, rare), 20) for rare in (1, 2, 3, 5)),
    Kind((250, 247, 3), 10),
)
PLANTED = (
    Kind((295, 5), 10, 4.0),
    Kind((290, 10), 10, 4.0),
    Kind((290, 10), 10, 2.0),
    Kind((285, 15), 10, 2.0),
    Kind((270, 30), 10, 1.5),
    Kind((150, 150), 10, 0.5),
    Kind((135, 135, 30), 10, 4.0),
)


def draw(kind: Kind, seed: int, method: str) -> dict[str, Any]:
    """How many features are found in one table, and the curve."""
    rng = np.random.default_rng([seed, *kind.rows, kind.columns])
    y = rng.permutation(np.repeat(np.arange(len(kind.rows)), kind.rows))
    X = rng.normal(size=(len(y), kind.columns))
    X[y == len(kind.rows) - 1, 0] += kind.shift
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            selection = seqatt.select(X, y, "auto", method=method, seed=seed)
        except ValueError as error:
            return {"selected": None, "error": str(error), "cpu_seconds": time.process_time() - started}
    return {
        "selected": np.asarray(selection.indices).tolist(),
        "curve": selection.curve,
        "cpu_seconds": time.process_time() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", help="kinds whose name contains this; repeatable")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--method", default="f_test")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for kind in NOISE + PLANTED:
        name = kind.name
        if options.only and not any(part in name for part in options.only):
            continue
        seeds = range(options.first, options.first + options.draws)
        drawn = results[name] = [draw(kind, seed, options.method) for seed in seeds]
        found = [each["selected"] for each in drawn if each["selected"] is not None]
        refused = {each["error"] for each in drawn if each["selected"] is None}
        print(
            f"{name}: features found in {sum(map(bool, found))} of {len(found)}, their numbers "
            f"{[len(each) for each in found]}; the first column in {sum(0 in each for each in found)}; "
            f"median CPU seconds {np.median([each['cpu_seconds'] for each in drawn]):.2f}"
            + (f"; {len(drawn) - len(found)} refused: {refused}" if refused else ""),
            flush=True,
        )
    arguments = "".join(f' --only "{each}"' for each in options.only or ())
    command = (
        f"python benchmarks/rare_classes.py{arguments} --draws {options.draws} --method {options.method}"
    )
    write_record("rare-classes", command, {"kinds": results})


if __name__ == "__main__":
    main()
