"""Weights of rows and classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.target import Target
from seqatt.validation import show

Floats = NDArray[np.float64]

# Two classes are weighted where their rows say no more than this share of balanced ones: with less than 15 % of one.
BALANCED_SHARE = 0.5


def read_row_weights(sample_weight: Any, rows: int) -> Floats | None:
    """Check the weights of the rows."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: must hold numbers, one per row") from None
    if weights.shape != (rows,):
        raise ValueError(
            f"sample_weight: must have one value for each of the {rows} rows, got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight: must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight: every weight is zero; there is nothing to learn from")
    return weights


def effective_sample_size(row_weights: Floats | None, weights: Floats | None, rows: int) -> float:
    """Kish's effective sample size, ``(sum w)^2 / sum w^2``; whole row weights count as repeated rows.

    ``row_weights`` are the user's, ``weights`` are multiplied by class weights.
    """
    if weights is None:
        return float(rows)
    row_weights = np.ones(rows) if row_weights is None else row_weights
    repeats = row_weights if not (row_weights % 1).any() else np.ones(rows)
    per_repeat = weights / weights.max() / np.maximum(repeats, 1)
    return float((repeats * per_repeat).sum() ** 2 / (repeats * per_repeat**2).sum())


def fit_class_weights(
    target: Target,
    base: Floats,
    class_weight: Mapping[Any, float] | str | None,
    negatives_kept: float,
) -> Floats:
    """One weight per class; ``base`` are the weights of the rows.

    With ``negatives_kept`` below 1, each row of the first class also counts for those that a down-sampled log left out.
    """
    codes = target.codes
    if target.classes is None or codes is None:
        option = "negatives_kept" if class_weight is None else "class_weight"
        raise ValueError(f"{option}: needs a target of classes, but the task is {target.task}")
    weights = np.ones(len(target.classes))
    if negatives_kept != 1:
        if target.task != "binary":
            raise ValueError(f"negatives_kept: needs two classes, the target has {len(target.classes)}")
        weights[0] /= negatives_kept
    if class_weight is not None:
        weights *= compute_class_weights(class_weight, target.classes, codes, base * weights[codes])
    return weights


def with_class_weights(
    weights: Floats | None,
    class_weight: Mapping[Any, float] | str | None,
    negatives_kept: float,
    target: Target,
) -> Floats | None:
    """Row weights times class weights, with mean 1; None if neither is given."""
    if class_weight is not None or negatives_kept != 1:
        base = np.ones(len(target.values)) if weights is None else weights
        class_weights = fit_class_weights(target, base, class_weight, negatives_kept)
        weights = base * class_weights[target.codes]
        if not weights.any():
            raise ValueError(
                "class_weight: every row has weight zero; give a class that occurs a weight above zero"
            )
    return None if weights is None else weights / weights.mean()


def balanced_share(target: Target) -> float:
    """The rows of balanced classes that say as much as the rows of this target, as a share of these.

    It is 1 for numbers. Of two classes, one of which has a small share p of the rows, it is about 4 p: the rows of the
    other one say little. Where rows count as much as their weights, weights that balance the classes have this
    effective sample size.
    """
    codes = target.codes
    if codes is None or target.task == "ordinal":
        return 1.0
    shares = np.bincount(codes) / len(codes)
    classes = np.count_nonzero(shares)
    return float(min(1.0, (1 - (shares**2).sum()) / (1 - 1 / classes))) if classes > 1 else 1.0


def compute_class_weights(
    class_weight: Mapping[Any, float] | str,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    base: Floats,
) -> Floats:
    """One weight per class; "balanced" gives all classes the same total of ``base`` (row weights)."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.array([base[codes == code].sum() for code in range(len(classes))])
        return np.asarray(base.sum() / (len(classes) * totals))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight: use 'balanced' or a dict, got {show(class_weight)}")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight: {show(unknown[0])} is not a label; the labels are {labels}")
    values = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("class_weight: must be finite and not negative")
    return values
