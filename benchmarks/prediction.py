"""``SequentialAttentionClassifier`` and ``Regressor`` beside scikit-learn's ``MLPClassifier`` and ``MLPRegressor``.

    SEQATT_DATA_DIR=... python -m benchmarks.prediction              # every table, and a record
    SEQATT_DATA_DIR=... python -m benchmarks.prediction wine adult   # some tables, without a record

Log loss and accuracy, or R², on test rows, a quarter of the rows of every split. scikit-learn's networks have their
defaults, with ``early_stopping`` and without, on standardised numbers (and targets) and one-hot categories: of all
columns, and of those that the classifier or regressor selected.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.record_file import print_table, write_record
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from seqatt import SequentialAttentionClassifier, SequentialAttentionRegressor

Table = tuple[pd.DataFrame, Any]
OURS = "seqatt, k columns"


def planted(rows: int = 2000) -> Table:
    """Four of 30 columns decide, one of them by an even function and two by their product; classes overlap."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 30))).add_prefix("x")
    score = X["x0"] + X["x1"] * X["x2"] + X["x3"].abs() - 0.8
    return X, (score + 0.7 * rng.logistic(size=rows) > 0).astype(int)


def adult() -> Table:
    """Incomes of 48,842 people: six numbers and eight categories."""
    path = Path(os.environ.get("SEQATT_DATA_DIR", "")) / "extra" / "adult.parquet"
    frame = pd.read_parquet(path)
    return frame.drop(columns=["split", "income"]), frame["income"]


def friedman() -> Table:
    """1,000 rows of ten columns, five of which determine a number; noise has a standard deviation of 2."""
    X, y = make_friedman1(1000, n_features=10, noise=2.0, random_state=0)
    return pd.DataFrame(X).add_prefix("x"), y


def of_scikit_learn(load: Callable[..., Any]) -> Callable[[], Table]:
    return lambda: load(return_X_y=True, as_frame=True)


TABLES: dict[str, tuple[Callable[[], Table], int, int]] = {  # how it is made, k, and the number of splits
    "wine": (of_scikit_learn(load_wine), 4, 10),
    "breast cancer": (of_scikit_learn(load_breast_cancer), 5, 10),
    "digits": (of_scikit_learn(load_digits), 20, 5),
    "planted": (planted, 4, 5),
    "adult": (adult, 6, 3),
    "diabetes": (of_scikit_learn(load_diabetes), 4, 10),
    "friedman": (friedman, 5, 5),
}
NUMBERS = ("diabetes", "friedman")  # tables whose target is a number


def mlp(numeric: bool, early_stopping: bool, seed: int) -> Any:
    numbers, texts = (
        make_column_selector(dtype_include="number"),
        make_column_selector(dtype_exclude="number"),
    )
    encoded = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts), sparse_threshold=0
    )
    network = (MLPRegressor if numeric else MLPClassifier)(early_stopping=early_stopping, random_state=seed)
    pipeline = make_pipeline(encoded, network)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if numeric else pipeline


def measure(name: str) -> dict[str, dict[str, Any]]:
    """Log loss and accuracy, or R², and seconds per model, one value per split."""
    load, k, splits = TABLES[name]
    X, y = load()
    results: dict[str, dict[str, Any]] = {}

    def add(model_name: str, model: Any, columns: list[str], rows: list[Any]) -> Any:
        train, test, y_train, y_test = rows
        started = time.perf_counter()
        model.fit(train[columns], y_train)
        seconds = time.perf_counter() - started
        predicted = model.predict(test[columns])
        if name in NUMBERS:
            values = {"r2": r2_score(y_test, predicted)}
        else:
            probabilities = model.predict_proba(test[columns])
            loss = log_loss(y_test, probabilities, labels=model.classes_)
            values = {"log_loss": loss, "accuracy": accuracy_score(y_test, predicted)}
        values["seconds"] = seconds
        for metric, value in values.items():
            results.setdefault(model_name, {}).setdefault(metric, []).append(float(value))
        return model

    everything = list(X.columns)
    for split in range(splits):
        numeric = name in NUMBERS
        rows = train_test_split(X, y, test_size=0.25, random_state=split, stratify=None if numeric else y)
        estimator = SequentialAttentionRegressor if numeric else SequentialAttentionClassifier
        ours = add(OURS, estimator(k, random_state=split), everything, rows)
        selected = ours.get_feature_names_out().tolist()
        for columns, which in ((everything, "all columns"), (selected, "k columns")):
            for early in (False, True):
                stopping = ", early stopping" if early else ""
                add(f"MLP{stopping}, {which}", mlp(numeric, early, split), columns, rows)
    return results


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    tables = {}
    for name in names or TABLES:
        tables[name] = {"k": TABLES[name][1], "models": measure(name)}
        print(f"\n{name}, k = {TABLES[name][1]}, mean of {TABLES[name][2]} splits")
        models = tables[name]["models"]
        metrics = list(models[OURS])
        rows = [
            [model, *(float(np.mean(values[each])) for each in metrics)] for model, values in models.items()
        ]
        print_table(["model", *metrics], rows)
    if not names:
        write_record("prediction", "SEQATT_DATA_DIR=... python -m benchmarks.prediction", {"tables": tables})


if __name__ == "__main__":
    main(sys.argv[1:])
