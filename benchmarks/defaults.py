"""Validation accuracy of the defaults against plain one-pass selection, at equal training budget.

Reads the data sets' .npz files from the folder in SEQATT_DATA_DIR. Rows for validation are carved out of
the training rows: whole speakers (ISOLET) or people (Activity) where the file names them, else a random
fifth. Test rows are never touched.

    SEQATT_DATA_DIR=... python benchmarks/defaults.py mnist isolet --seeds 5 --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from common import commit, machine

import seqatt

ONE_MODEL = {
    "ensemble": 1,
    "surplus": 1.0,
    "input_dropout": 0.0,
    "weight_decay": 0.0,
    "univariate_test": 0.0,
    "asinh_inputs": False,
}
SETTINGS = {
    "neither": ONE_MODEL | {"replacement": 0},
    "replacement": ONE_MODEL | {"replacement": 15},
    "default": {},
}
Rows = tuple[np.ndarray, np.ndarray]


def load(name: str) -> tuple[Rows, Rows]:
    """Training and validation rows."""
    with np.load(Path(os.environ["SEQATT_DATA_DIR"]) / f"{name}.npz") as file:
        if "X_train" in file:
            X, y = file["X_train"], file["y_train"]
        else:  # no official split: a random fifth stands for the test rows and is left alone
            X, y = file["X"], file["y"]
            kept = np.random.default_rng(1).permutation(len(y))[len(y) // 5 :]
            X, y = X[kept], y[kept]
        if "subset_train" in file:
            aside = file["subset_train"] == 4
        elif "subject_train" in file:
            aside = np.isin(file["subject_train"], np.unique(file["subject_train"])[::4])
        else:
            aside = np.random.default_rng(0).random(len(y)) < 0.2
    return (X[~aside], y[~aside]), (X[aside], y[aside])


def measure(name: str, seeds: int, k: int) -> dict[str, object]:
    (X, y), (X_aside, y_aside) = load(name)
    result: dict[str, object] = {"data": name, "k": k, "seeds": seeds, "rows": len(y)}
    for label, options in SETTINGS.items():
        started = time.perf_counter()
        trials = seqatt.select_trials(X, y, k, seeds=range(seeds), task="multiclass", **options)
        seconds = time.perf_counter() - started
        scores = [
            seqatt.evaluate(X, y, X_aside, y_aside, trial, seeds=[trial.seed], task="multiclass")["accuracy"][
                0
            ]
            for trial in trials
        ]
        result[label] = {"accuracy": scores, "select_seconds": seconds}
        result["steps"] = trials[0].settings["steps"]
        result["device"] = trials[0].environment["device"]
        print(
            f"{name:14} {label:12} {np.mean(scores):.4f} ± {np.std(scores):.4f}  {seconds:.1f} s", flush=True
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("-k", type=int, default=50)
    parser.add_argument("--commit", default=None, help="where git is not at hand")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    record = {"commit": given.commit or commit(), "machine": machine(), "results": []}
    for name in given.names:
        record["results"].append(measure(name, given.seeds, given.k))
        if given.out:
            given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
