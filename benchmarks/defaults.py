"""Validation accuracy of the defaults against plain one-pass selection, at equal training budget.

Reads the data sets' .npz files from the folder SEQATT_DATA_DIR. Validation rows are taken from the training
rows: whole speakers (ISOLET) or people (Activity) where the file names them, else a random fifth. Test rows
are never used.

    SEQATT_DATA_DIR=... python benchmarks/defaults.py mnist isolet --seeds 5 --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from record_file import commit, machine

import seqatt

SETTINGS = {
    "neither": {"recipe": "paper"},
    "replacement": {"recipe": "paper", "replacement": 15},
    "default": {},
}
Rows = tuple[np.ndarray, np.ndarray]


def load(name: str) -> tuple[Rows, Rows]:
    """Training and validation rows."""
    with np.load(Path(os.environ["SEQATT_DATA_DIR"]) / f"{name}.npz") as file:
        if "X_train" in file:
            X, y = file["X_train"], file["y_train"]
        else:  # no official split: a random fifth takes the place of the test rows and is not used
            X, y = file["X"], file["y"]
            train = np.random.default_rng(1).permutation(len(y))[len(y) // 5 :]
            X, y = X[train], y[train]
        if "subset_train" in file:
            validation = file["subset_train"] == 4
        elif "subject_train" in file:
            validation = np.isin(file["subject_train"], np.unique(file["subject_train"])[::4])
        else:
            validation = np.random.default_rng(0).random(len(y)) < 0.2
    return (X[~validation], y[~validation]), (X[validation], y[validation])


def measure(name: str, seeds: int, k: int) -> dict[str, object]:
    (X, y), (X_validation, y_validation) = load(name)
    result: dict[str, object] = {"data": name, "k": k, "seeds": seeds, "rows": len(y)}
    for label, setting in SETTINGS.items():
        started = time.perf_counter()
        trials = seqatt.select_trials(X, y, k, seeds=range(seeds), task="multiclass", **setting)
        seconds = time.perf_counter() - started
        scores = [
            seqatt.evaluate(X, y, X_validation, y_validation, trial, seeds=[trial.seed], task="multiclass")[
                "accuracy"
            ][0]
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
    parser.add_argument("--commit", default=None, help="commit to record where there is no git history")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record = {"commit": options.commit or commit(), "machine": machine(), "results": []}
    for name in options.names:
        record["results"].append(measure(name, options.seeds, options.k))
        if options.out:
            options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
