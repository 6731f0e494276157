"""Sequential Attention's default on small tables beside other settings and methods, on many splits of each.

    SEQATT_DATA_DIR=... python -m benchmarks.small_tables                                  # the methods
    python -m benchmarks.small_tables --set "members=ensemble=8,epochs=*2" --splits 24     # another setting
    python -m benchmarks.small_tables --jobs 16 --only wine --only digits
    python -m benchmarks.small_tables --only california_housing --rows 21000 --k 1,2,3,4 --set off=exchanges=0

Every table has at most a thousand rows (``--rows``), of which each split holds out 30 %. A figure is the
difference to the default on the same split and k, with its standard error: of the network of ``seqatt.evaluate``, of
logistic or ridge regression, and of a random forest (accuracy or R²). Every table counts once. ``epochs=*2`` is twice
the default. Writes a record, which has the scores as well.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from benchmarks.record_file import print_table, write_record
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import seqatt

ROWS = 1_000
METHODS = ("forest", "mutual_information", "cmim", "f_test", "linear_omp", "sequential_lasso", "random")
JUDGES = ("network", "linear", "forest")
Table = tuple[np.ndarray, np.ndarray]


def named(name: str, rows: int) -> Table:
    X, y = seqatt.datasets.load(name).split()[:2]
    X = np.asarray(X, dtype=np.float64)
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    X = X[chosen]
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), np.asarray(y)[chosen]


def with_noise(name: str, rows: int, columns: int) -> Table:
    X, y = named(name, rows)
    return np.hstack([X, np.random.default_rng(1).normal(size=(len(X), columns))]), y


def friedman(rows: int) -> Table:
    return datasets.make_friedman1(min(rows, 300), 25, noise=2.0, random_state=0)


def redundant(rows: int) -> Table:
    return datasets.make_classification(
        min(rows, 400), 40, n_informative=8, n_redundant=8, n_classes=3, class_sep=0.8, random_state=0
    )


# Each with the numbers of features to select.
TABLES: dict[str, tuple[Callable[[int], Table], tuple[int, ...]]] = {
    "wine": (lambda rows: named("wine", rows), (2, 4, 6)),
    "breast_cancer": (lambda rows: named("breast_cancer", rows), (3, 6, 10)),
    "breast_cancer and noise": (lambda rows: with_noise("breast_cancer", rows, 60), (3, 6, 10)),
    "digits": (lambda rows: named("digits", min(rows, 600)), (5, 10, 20)),
    "diabetes": (lambda rows: named("diabetes", rows), (2, 4, 6)),
    "diabetes and noise": (lambda rows: with_noise("diabetes", rows, 30), (2, 4, 6)),
    "mice_protein": (lambda rows: named("mice_protein", min(rows, 500)), (5, 10, 20)),
    "california_housing": (lambda rows: named("california_housing", rows), (2, 4)),
    "higgs_7500": (lambda rows: named("higgs_7500", rows), (3, 6, 12)),
    "sylva": (lambda rows: named("sylva", rows), (5, 10, 20)),
    "isolet": (lambda rows: named("isolet", rows), (10, 25)),
    "activity": (lambda rows: named("activity", rows), (5, 10, 25)),
    "coil20": (lambda rows: named("coil20", min(rows, 500)), (5, 10, 25)),
    "friedman": (friedman, (3, 5, 8)),
    "redundant": (redundant, (4, 8, 12)),
}


def parse_setting(text: str) -> tuple[str, dict[str, str]]:
    name, *options = text.replace("=", ",", 1).split(",")
    return name, dict(option.split("=") for option in options)


def read_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def select(X: np.ndarray, y: np.ndarray, k: int, seed: int, options: dict[str, str]) -> list[int]:
    given: dict[str, Any] = {}
    for name, value in options.items():
        if value.startswith("*"):
            default = seqatt.select(X, y, k, seed=seed, importance=False).settings[name]
            given[name] = float(value[1:]) * default
        else:
            given[name] = read_value(value)
    return [int(i) for i in seqatt.select(X, y, k, seed=seed, importance=False, **given).indices]


def judge(split: tuple[np.ndarray, ...], features: list[int], regression: bool, seed: int) -> list[float]:
    X_train, X_test, y_train, y_test = split
    task = "regression" if regression else None
    result = seqatt.evaluate(
        X_train, y_train, X_test, y_test, features, seeds=[seed, seed + 1000], task=task, device="cpu"
    )
    forests = RandomForestRegressor if regression else RandomForestClassifier
    linear = make_pipeline(StandardScaler(), Ridge() if regression else LogisticRegression(max_iter=500))
    scores = [float(np.mean(result["r2" if regression else "accuracy"]))]
    for model in (linear, forests(150, random_state=seed)):
        model.fit(X_train[:, features], y_train)
        scores.append(float(model.score(X_test[:, features], y_test)))
    return scores


def measure(
    table: str, seed: int, settings: dict[str, dict[str, str]], ks: list[int] | None, rows: int
) -> list[tuple[str, str, int, int, list[float]]]:
    """Per setting and k, the scores by the three judges on one split."""
    make, default_ks = TABLES[table]
    X, y = make(rows)
    regression = np.issubdtype(y.dtype, np.floating) and len(np.unique(y)) > 20
    split = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=None if regression else y)
    scores = []
    for k in (k for k in ks or default_ks if k < X.shape[1]):
        for name, options in settings.items():
            features = select(split[0], split[2], k, seed, options)
            scores.append((name, table, k, seed, judge(split, features, regression, seed)))
    return scores


def summarise(found: list[tuple[str, str, int, int, list[float]]]) -> dict[str, Any]:
    """Per setting the mean difference to the default over tables, its standard error, and the means by table."""
    default = {
        (table, k, seed): np.array(values) for name, table, k, seed, values in found if name == "default"
    }
    differences: dict[str, dict[str, dict[int, list[np.ndarray]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for name, table, k, seed, values in found:
        differences[name][table][seed].append(np.array(values) - default[table, k, seed])
    result: dict[str, Any] = {}
    for name, tables in differences.items():
        # The splits of a table are the independent draws; its numbers of features share them.
        per_table = {
            table: np.array([np.mean(d, axis=0) for d in by.values()]) for table, by in tables.items()
        }
        means = {table: values.mean(0) for table, values in per_table.items()}
        errors = [values.std(0, ddof=1) / np.sqrt(len(values)) for values in per_table.values()]
        result[name] = {
            "mean": np.mean(list(means.values()), axis=0).tolist(),
            "standard_error": (np.sqrt(np.square(errors).sum(0)) / len(errors)).tolist(),
            "tables": {table: values.tolist() for table, values in means.items()},
        }
    return result


def mean_scores(found: list[tuple[str, str, int, int, list[float]]]) -> dict[str, dict[str, list[float]]]:
    """Per setting the scores by the three judges for every table and k, averaged over the splits."""
    scores: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for name, table, k, _, values in found:
        scores[name][f"{table}, k = {k}"].append(values)
    return {
        name: {row: np.mean(values, axis=0).tolist() for row, values in rows.items()}
        for name, rows in scores.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--set", action="append", default=[], help="NAME=OPTION=VALUE,OPTION=VALUE; repeatable"
    )
    parser.add_argument("--no-methods", action="store_true", help="only the settings, not the other methods")
    parser.add_argument("--only", action="append", choices=list(TABLES), help="a table; repeatable")
    parser.add_argument("--k", type=lambda text: [int(k) for k in text.split(",")], help="such as 1,2,3,5")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a table, at most")
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--name", default="small_tables", help="name of the record")
    options = parser.parse_args()
    settings: dict[str, dict[str, str]] = {"default": {}} | dict(map(parse_setting, options.set))
    if not options.no_methods:
        settings |= {method: {"method": method} for method in METHODS}
    jobs = [(table, seed) for seed in range(options.first, options.first + options.splits)
            for table in options.only or TABLES]  # fmt: skip
    with ProcessPoolExecutor(options.jobs) as pool:
        done = [pool.submit(measure, table, seed, settings, options.k, options.rows) for table, seed in jobs]
        found = [row for future in done for row in future.result()]
    results = summarise(found)
    print_table(
        ["setting", *JUDGES],
        [
            [name, *(f"{m:+.4f} ± {e:.4f}" for m, e in zip(r["mean"], r["standard_error"], strict=True))]
            for name, r in results.items()
        ],
    )
    print()
    print_table(
        ["table (network)", *list(results)[1:]],
        [[table, *(f"{r['tables'][table][0]:+.3f}" for r in list(results.values())[1:])]
         for table in options.only or TABLES],
    )  # fmt: skip
    command = shlex.join(["python", "-m", "benchmarks.small_tables", *sys.argv[1:]])
    write_record(
        options.name, command, {"settings": settings, "results": results, "scores": mean_scores(found)}
    )


if __name__ == "__main__":
    main()
