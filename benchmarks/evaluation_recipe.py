"""The recipe of ``evaluate`` and the one before it, on rows held out of the training rows.

    SEQATT_DATA_DIR=... python -m benchmarks.evaluation_recipe isolet activity wine

Prints one line per data set and recipe: the steps, the mean of the main metric over sets of features, splits and five
seeds, and the standard deviation over the seeds. The sets are the k features with the largest F statistic, k random
ones and, of small tables, all. Small tables are split four times.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.feature_selection import f_classif, f_regression
from sklearn.model_selection import train_test_split

import seqatt
from seqatt.training.defaults import default_batch_size, evaluation_steps

DATASETS = ("wine", "breast_cancer", "diabetes", "digits", "mice_protein", "coil20", "isolet", "activity",
            "adult-like", "fashion_mnist", "mnist")  # fmt: skip
SELECTED = {
    "wine": 4,
    "breast_cancer": 5,
    "diabetes": 4,
    "digits": 12,
    "adult-like": 5,
}  # features; 50 of others
SEEDS = range(5)
SMALL_ROWS, SMALL_FEATURES = 3000, 100


def adult_like(rows: int = 40_000) -> tuple[np.ndarray, np.ndarray]:
    """Six numbers and eight categories of 2 to 42 values, one-hot; two classes that overlap."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, 6))
    score = numbers[:, 0] + 0.7 * numbers[:, 1] + 0.6 * numbers[:, 2] * numbers[:, 4] - 1.5
    columns = [numbers]
    for values in (9, 16, 7, 15, 6, 5, 2, 42):
        codes = rng.choice(values, rows, p=rng.dirichlet(np.ones(values)))
        score += 0.6 * rng.normal(size=values)[codes]
        columns.append(np.eye(values)[codes])
    return np.hstack(columns), (score + 1.2 * rng.logistic(size=rows) > 0).astype(int)


def before(rows: int, task: str) -> dict[str, Any]:
    """Fifty passes, 3,000 to 12,000 steps; see decision 7."""
    batch_size = default_batch_size(rows)
    steps = min(max(50 * rows // batch_size, 3000), 12_000)
    noise = 0.1 * min(1.0, (10_000 / rows) ** 0.5)
    return {
        "epochs": steps * batch_size / rows,
        "learning_rate": 3e-3 * min(max(1.0, rows / 10_000), 6.0),
        "input_dropout": noise,
        "label_smoothing": noise if task == "multiclass" else 0.0,
    }


def measure(name: str) -> None:
    X, y = adult_like() if name == "adult-like" else seqatt.datasets.load(name).split()[:2]
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)  # the F statistic needs all values
    numeric = name == "diabetes"
    task = "regression" if numeric else "multiclass" if len(np.unique(y)) > 2 else "binary"
    k = SELECTED.get(name, 50)
    scores: dict[str, list[np.ndarray]] = {"before": [], "now": []}
    for split in range(4 if len(y) <= SMALL_ROWS else 1):
        rows = train_test_split(
            np.arange(len(y)), test_size=0.25, random_state=split, stratify=None if numeric else y
        )
        train, held_out = rows
        statistic = np.nan_to_num((f_regression if numeric else f_classif)(X[train], y[train])[0])
        varying = np.flatnonzero(X[train].std(0) > 0)
        sets = [np.argsort(-statistic)[:k], np.random.default_rng(split).choice(varying, k, replace=False)]
        if X.shape[1] < SMALL_FEATURES:
            sets.append(varying)
        for recipe, options in (("before", before(len(train), task)), ("now", {})):
            for features in sets:
                result = seqatt.evaluate(
                    X[train], y[train], X[held_out], y[held_out], np.sort(features), seeds=SEEDS, task=task,
                    device="cpu", **options,
                )  # fmt: skip
                scores[recipe].append(result[result.metric])
    batch_size = default_batch_size(len(train))
    steps = {"before": round(before(len(train), task)["epochs"] * len(train) / batch_size),
             "now": evaluation_steps(len(train), batch_size, None)}  # fmt: skip
    for recipe, values in scores.items():
        per_seed = np.mean(values, axis=0)
        print(
            f"{name:14} {recipe:7} {len(train):6} rows {steps[recipe]:6} steps "
            f"{per_seed.mean():.4f} ± {per_seed.std(ddof=1):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    for dataset in sys.argv[1:] or DATASETS:
        measure(dataset)
