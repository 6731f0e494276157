"""Time to quality: seconds of ``seqatt.select`` on MNIST against the test accuracy of the selected features.

    SEQATT_DATA_DIR=... python benchmarks/quality.py --trials 3

For each budget (in passes over the training rows): ``--trials`` selections of 50 features, and the test
accuracy of networks trained on them. The paper's Sequential Attention reaches 0.956 after 54 s of selection.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from datasets import load
from record_file import print_table, write_record
from timing import synchronize

import seqatt

BUDGETS = (0.5, 1, 2, 4, None)  # epochs; None: the default
TARGET = 0.956  # test accuracy


def measure(epochs: float | None, trials: int, evaluations: int) -> dict[str, Any]:
    train, test = load("mnist")
    seconds, accuracies = [], []
    for seed in range(trials):
        started = time.perf_counter()
        selection = seqatt.select(*train, 50, seed=seed, epochs=epochs)
        synchronize()
        seconds.append(time.perf_counter() - started)
        scores = seqatt.evaluate(*train, *test, selection, seeds=range(evaluations), epochs=20)
        accuracies.append(float(scores["accuracy"].mean()))
    return {
        "epochs": epochs if epochs is not None else f"default ({selection.settings['epochs']:.1f})",
        "trials": trials,
        "seconds": statistics.median(seconds),
        "accuracy": statistics.mean(accuracies),
        "sd": statistics.stdev(accuracies) if trials > 1 else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=2)
    options = parser.parse_args()
    rows = [measure(epochs, options.trials, options.evaluations) for epochs in BUDGETS]
    print_table(["epochs", "trials", "median s", "test accuracy", "sd"], [list(r.values()) for r in rows])
    reached = [row["seconds"] for row in rows if row["accuracy"] > TARGET]
    print(f"Seconds to a mean test accuracy above {TARGET}: {min(reached) if reached else 'not reached'}")
    kind = "gpu" if torch.cuda.is_available() else "cpu"
    write_record(f"quality-{kind}", "python benchmarks/quality.py", {"target": TARGET, "budgets": rows})


if __name__ == "__main__":
    main()
