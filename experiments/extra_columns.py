"""Real tables with extra columns that a selection should leave out.

The protocol of V. Cherepanova et al.: A Performance-Driven Benchmark for Feature Selection in Tabular Deep
Learning, NeurIPS 2023.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets import Split

KINDS = ("noise", "copies", "products")
MAX_REAL_FEATURES = 100  # features of a wider table are sampled


def add_columns(split: Split, kind: str, share: float, seed: int) -> tuple[Split, NDArray[np.bool_]]:
    """The table with extra columns, ``share`` of all, in shuffled order; and a mask of the extra columns.

    "noise" is standard normal; "copies" are real features with Gaussian noise of the feature's own standard
    deviation added; "products" are those of two real features, or squares of one. Missing values are filled
    with the mean, constant features are left out, and of more than ``MAX_REAL_FEATURES`` features a random
    sample is taken. Means and standard deviations are those of the training rows.
    """
    rng = np.random.default_rng(seed)
    train, test = _real_features(split, rng)
    n_real = train.shape[1]
    n_extra = round(n_real * share / (1 - share))
    rows = np.concatenate([train, test])
    if kind == "noise":
        extra = rng.standard_normal((len(rows), n_extra))
    elif kind == "copies":
        origin = rng.integers(n_real, size=n_extra)
        extra = rows[:, origin] + rng.standard_normal((len(rows), n_extra)) * train.std(0)[origin]
    elif kind == "products":
        first, second = _sample_pairs(n_real, n_extra, rng)
        extra = rows[:, first] * rows[:, second]
    else:
        raise ValueError(f"kind: there is no {kind!r}; use {', '.join(KINDS)}")
    order = rng.permutation(n_real + n_extra)
    table = np.concatenate([rows, extra], axis=1)[:, order]
    n_train = len(train)
    return Split(table[:n_train], split.y_train, table[n_train:], split.y_test), order >= n_real


def _real_features(split: Split, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training and test rows of the features that vary, without missing values."""
    train, test = (np.asarray(X, dtype=np.float64) for X in (split.X_train, split.X_test))
    known = ~np.isnan(train)
    mean = np.where(known, train, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    train, test = (np.where(np.isnan(X), mean, X) for X in (train, test))
    varying = np.flatnonzero(np.ptp(train, axis=0) > 0)
    sampled = np.sort(rng.permutation(varying)[:MAX_REAL_FEATURES])
    return train[:, sampled], test[:, sampled]


def _sample_pairs(n_real: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    first, second = np.triu_indices(n_real)
    if len(first) < count:
        raise ValueError(
            f"products: {n_real} real features have {len(first)} products, but {count} are needed; "
            "use a table with more features or a smaller share"
        )
    picked = rng.permutation(len(first))[:count]
    return first[picked], second[picked]
