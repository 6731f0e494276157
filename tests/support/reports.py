"""Selections and comparisons with everything that a report can show, made without training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import seqatt
from seqatt import Comparison, Selection
from seqatt.comparison.runs import ComparisonRun

HOSTILE = "<script>alert(1)</script>"
CURVE = {
    "metric": "auc",
    "folds": 3,
    "no_features": 0.5,
    "all_features": 0.99,
    "sizes": [1, 2, 3, 6],
    "means": [0.9, 0.95, 0.98, 0.985],
    "standard_errors": [0.02, 0.015, 0.01, 0.01],
    "random_features": 0.93,
    "random_size": 3,
    "chosen": 3,
}


def make_table() -> tuple[pd.DataFrame, pd.Series]:
    """Breast cancer: 569 rows, 30 features, of which the first has a name that is a script."""
    data = load_breast_cancer(as_frame=True)
    return data.data.rename(columns={"mean radius": HOSTILE}), data.target


def make_selection(**changes: Any) -> Selection:
    """Three of 30 features, the first with a hostile name, in two phases."""
    X, y = make_table()
    quick = seqatt.select(X, y, 3, method="f_test")
    names = list(X.columns)
    order = [0, 27, 22]
    rest = [i for i in range(30) if i not in order]
    ranking = np.empty(30, dtype=np.int64)
    ranking[order + rest] = np.arange(1, 31)
    scores = {name: 2.0 - i / 30 for i, name in enumerate(names)}
    phases = [{"taken": [names[i]], "scores": scores} for i in order]
    history = [{"steps": 5, "sees": "all", "loss": 0.1, "seconds": 0.1, "dropped": [], **p} for p in phases]
    selection = replace(
        quick,
        method="sequential_attention",
        indices=np.array(order),
        columns=np.array(order),
        features=[names[i] for i in order],
        scores=np.array([2.0, 1.5, 1.2]),
        ranking=ranking,
        support=np.isin(np.arange(30), order),
        history=history,
    )
    return replace(selection, **changes)


def make_full_selection() -> Selection:
    """A selection with a curve and all that says how sure it is."""
    frequency = [0.0] * 30
    for index, share in ((0, 1.0), (27, 0.9), (22, 0.6), (2, 0.4)):
        frequency[index] = share
    return make_selection(
        scores=np.array([1.0, 0.9, 0.6]),  # shares of the repeats
        curve=CURVE,
        importance={
            "loss": 0.1,
            "rows": 100,
            "networks": 4,
            "increases": [0.3, 0.1, 0.02],
            "standard_errors": [0.05, 0.02, 0.01],
            "stand_ins": [[["mean perimeter", 0.99]], [], []],
        },
        stability={
            "repeats": 10,
            "rows": 284,
            "frequency": frequency,
            "clusters": [{"features": [0, 2], "frequency": 1.0}],
            "bounded": 3,
            "threshold": 0.6,
            "false_choices": 0.4,
            "false_choices_any": 0.7,
        },
        chance={
            "metric": "auc",
            "folds": 3,
            "score": 0.98,
            "standard_error": 0.01,
            "random_features": 0.9,
            "no_features": 0.5,
            "better": True,
        },
    )


def make_evaluation() -> dict[str, Any]:
    """The contents of evaluation.json."""
    sets = {
        "selected": {"features": 3, "accuracy": [0.95, 0.96], "auc": [0.98, 0.99]},
        "all": {"features": 30, "accuracy": [0.96, 0.97], "auc": [0.99, 0.99]},
        "random": {"features": 3, "accuracy": [0.9, 0.85], "auc": [0.95, None]},
    }
    return {"format": 1, "rows": "171 held-out rows", "holdout": sets}


def make_comparison(ks: tuple[int, ...] = (2, 4, 8)) -> Comparison:
    """Three methods and all features, two seeds; one method fails at the largest k."""
    methods = {"sequential_attention": 0.9, HOSTILE: 0.88, "random": 0.7}
    runs = [
        ComparisonRun(
            method,
            k,
            seed,
            [f"x{seed}", HOSTILE],
            {"accuracy": base + 0.01 * k + 0.005 * seed},
            0.5,
            "ValueError: <b>no</b>" if method == HOSTILE and k == max(ks) and seed else None,
        )
        for method, base in methods.items()
        for k in ks
        for seed in (0, 1)
    ]
    runs += [ComparisonRun("all", 13, seed, [], {"accuracy": 0.95}, 0.1) for seed in (0, 1)]
    settings = {
        "methods": [*methods, "all"],
        "k": list(ks),
        "seeds": [0, 1],
        "metric": "accuracy",
        "task": "multiclass",
        "rows": 100,
        "features": 13,
        "options": {"sequential_attention": {"epochs": 3}},
        "test": {"size": 0.2, "stratified": True, "grouped": False},
        "split_rows": [[80, 20]] * 2,
    }
    return Comparison(runs, settings, {"device": "cpu"})
