"""seqatt against other libraries on the same rows of the same machine, one process each.

    pip install lassonet stg
    SEQATT_DATA_DIR=... python benchmarks/peers.py --most 420

On ISOLET (6,238 rows, 617 features, k=50): the ``lassonet`` and ``stg`` packages and scikit-learn's RFE. On
breast cancer (426 training rows, 30 features, k=3): scikit-learn's SequentialFeatureSelector around its own
MLP. Every library runs with its defaults; stg, which has none, with those of its own example. All selections
are evaluated by ``seqatt.evaluate`` on the test rows. A method that takes longer than ``--most`` seconds is
stopped, and its time is a lower bound. ``--only "seqatt's lassonet" lassonet`` runs these two alone; times are
then multiples of the first one's.
"""

from __future__ import annotations

import argparse
import collections.abc
import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from datasets import Rows, load
from record_file import print_table, write_record

import seqatt

Columns = list[int]


def load_cancer() -> tuple[Rows, Rows]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    return (X_train, y_train), (X_test, y_test)


def standardise(X: np.ndarray) -> np.ndarray:
    return ((X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1)).astype(np.float32)


def by_seqatt(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    return list(seqatt.select(X, y, k).indices)


def by_our_lassonet(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    return list(seqatt.select(X, y, k, method="lassonet").indices)


def by_our_stg(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    return list(seqatt.select(X, y, k, method="stochastic_gates").indices)


def by_lassonet(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    from lassonet import LassoNetClassifier

    model = LassoNetClassifier(verbose=False)
    model.path(standardise(X), y.astype(np.int64))
    return list(np.argsort(-model.feature_importances_.numpy(), kind="stable")[:k])


def by_stg(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    # stg 0.1.2 expects the abstract base classes in collections, where Python before 3.10 had them.
    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    from stg import STG

    model = STG(
        task_type="classification",
        input_dim=X.shape[1],
        output_dim=int(y.max()) + 1,
        hidden_dims=[60, 20],
        activation="tanh",
        optimizer="SGD",
        learning_rate=0.1,
        batch_size=len(X),
        feature_selection=True,
        sigma=0.5,
        lam=0.5,
        random_state=1,
        device="cpu",
    )
    inputs, labels = standardise(X), y.astype(np.int64)
    model.fit(inputs, labels, nr_epochs=3000, valid_X=inputs, valid_y=labels, print_interval=1000)
    return list(np.argsort(-model.get_gates(mode="raw"), kind="stable")[:k])


def by_rfe(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LogisticRegression

    return list(
        np.flatnonzero(RFE(LogisticRegression(), n_features_to_select=k).fit(standardise(X), y).support_)
    )


def by_sfs(X: np.ndarray, y: np.ndarray, k: int) -> Columns:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.neural_network import MLPClassifier

    search = SequentialFeatureSelector(MLPClassifier(random_state=0), n_features_to_select=k)
    return list(np.flatnonzero(search.fit(standardise(X), y).get_support()))


ON_ISOLET = {
    "seqatt": by_seqatt,
    "seqatt's lassonet": by_our_lassonet,
    "lassonet": by_lassonet,
    "seqatt's stochastic_gates": by_our_stg,
    "stg": by_stg,
    "RFE": by_rfe,
}
ON_CANCER = {"seqatt": by_seqatt, "SequentialFeatureSelector": by_sfs}
COMPARISONS = {
    "isolet": (lambda: load("isolet"), 50, ON_ISOLET),
    "breast cancer": (load_cancer, 3, ON_CANCER),
}


def measure(data: str, name: str) -> dict[str, Any]:
    """Seconds of one method's selection on one data set, and its mean test accuracy over three networks."""
    warnings.filterwarnings("ignore")
    load_rows, k, methods = COMPARISONS[data]
    train, test = load_rows()
    started = time.perf_counter()
    columns = [int(i) for i in methods[name](*train, k)]
    seconds = time.perf_counter() - started
    evaluation = seqatt.evaluate(*train, *test, columns, seeds=range(3))
    return {"seconds": seconds, "accuracy": float(evaluation["accuracy"].mean()), "finished": True}


def measure_in_process(data: str, name: str, max_seconds: float) -> dict[str, Any]:
    """``measure`` in a new process, stopped a minute after ``max_seconds``: the evaluation takes time too."""
    command = [sys.executable, __file__, "--one", data, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max_seconds + 60, check=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"seconds": max_seconds + 60, "accuracy": None, "finished": False}
    except subprocess.CalledProcessError as error:
        return {"seconds": None, "accuracy": None, "finished": False, "error": error.stderr[-500:]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--most", type=float, default=420, help="seconds per method")
    parser.add_argument("--only", nargs="+", help="methods to run; times are multiples of the first one's")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    results = []
    for data, (_, k, methods) in COMPARISONS.items():
        first_seconds = None
        for name in methods if options.only is None else [name for name in options.only if name in methods]:
            row = {"data": data, "k": k, "by": name, **measure_in_process(data, name, options.most)}
            first_seconds = first_seconds or row["seconds"]
            row["times_seqatt"] = row["seconds"] / first_seconds if row["seconds"] else None
            results.append(row)
            print(row, flush=True)
    keys = ("data", "k", "by", "seconds", "accuracy", "finished", "times_seqatt")
    print_table(list(keys), [[row[key] for key in keys] for row in results])
    name = "peers" if options.only is None else f"peers-{options.only[-1]}"
    write_record(name, " ".join(["python", "benchmarks/peers.py", *sys.argv[1:]]), {"contests": results})


if __name__ == "__main__":
    main()
