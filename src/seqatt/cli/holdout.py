"""Evaluation of a selection on held-out rows, beside as many random features and beside all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from seqatt.api.evaluate import evaluate
from seqatt.api.select import select_trials
from seqatt.progress import progress_bar
from seqatt.selection import Selection


def split_rows(y: Any, holdout: float, seed: int) -> tuple[Any, Any]:
    """Row numbers to train on and to test on, stratified by class where that is possible."""
    rows = np.arange(len(y))
    if not holdout:
        return rows, rows[:0]
    labels = None if hasattr(y, "column_names") else np.array([str(v) for v in y.to_pylist()])
    for stratify in (labels, None):
        try:
            train, test = train_test_split(rows, test_size=holdout, random_state=seed, stratify=stratify)
        except ValueError:  # a class is too rare for both sides, or the target is numeric
            continue
        if labels is not None and stratify is None and _looks_like_classes(labels):
            seen = np.isin(labels[test], labels[train])
            train, test = np.concatenate([train, test[~seen]]), test[seen]
        return np.sort(train), np.sort(test)
    raise ValueError(f"--holdout: {len(rows)} rows are too few to hold out {holdout:.0%} of them")


def _looks_like_classes(labels: Any) -> bool:
    """Whether labels repeat, as classes do: a class without training rows cannot be evaluated."""
    return len(set(labels.tolist())) <= len(labels) / 2


def evaluate_holdout(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    selection: Selection,
    device: str,
    options: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    """Metrics on the test rows with the selected features, with as many random ones, and with all features."""
    table_options = ("task", "class_weight", "sample_weight", "missing_indicator")
    shared = {name: options[name] for name in table_options if name in options} | {"device": device}
    k = len(selection.indices)
    random_selections = select_trials(X, y, k, method="random", seeds=range(5), **shared)
    scores: dict[str, dict[str, Any]] = {}
    with progress_bar("Testing", 7, shown=True) as advance:
        for name, features in (("selected", selection), ("all", None)):
            result = evaluate(X, y, X_test, y_test, features, seeds=range(5), **shared)
            scores[name] = {m: list(result[m]) for m in result}
            advance(1)
        random_results = []
        for draw in random_selections:
            random_results.append(evaluate(X, y, X_test, y_test, draw, seeds=[draw.seed], **shared))
            advance(1)
    scores["random"] = {m: [float(r[m][0]) for r in random_results] for m in random_results[0]}
    sizes = {"selected": k, "random": k, "all": len(selection.names)}
    return {name: {"features": size, **scores[name]} for name, size in sizes.items()}


def nan_to_none(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {name: nan_to_none(item) for name, item in value.items()}
    if isinstance(value, list):
        return [nan_to_none(item) for item in value]
    return None if value != value else value
