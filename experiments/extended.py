"""Real tables with extra columns, so that choosing matters.

The protocol of V. Cherepanova et al.: A Performance-Driven Benchmark for Feature Selection in Tabular Deep
Learning, NeurIPS 2023.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets import Split

KINDS = ("noise", "copies", "products")
MOST_REAL = 100  # features kept of a wider table


def extend(split: Split, kind: str, share: float, seed: int) -> tuple[Split, NDArray[np.bool_]]:
    """The table with extra columns, ``share`` of all, in mixed order; and which columns are extra.

    "noise" is standard normal; "copies" are real features, each with as much Gaussian noise added as the
    feature itself varies; "products" are those of two real features, or of one with itself. What is missing
    is filled with the training rows' mean, constant features and those beyond the first hundred drawn are
    left out, and all that is measured is measured on the training rows.
    """
    rng = np.random.default_rng(seed)
    train, test = _real(split, rng)
    real = train.shape[1]
    count = round(real * share / (1 - share))
    rows = np.concatenate([train, test])
    if kind == "noise":
        extra = rng.standard_normal((len(rows), count))
    elif kind == "copies":
        origin = rng.integers(real, size=count)
        extra = rows[:, origin] + rng.standard_normal((len(rows), count)) * train.std(0)[origin]
    elif kind == "products":
        first, second = _pairs(real, count, rng)
        extra = rows[:, first] * rows[:, second]
    else:
        raise ValueError(f"kind: there is no {kind!r}; use {', '.join(KINDS)}")
    mixed = rng.permutation(real + count)
    table = np.concatenate([rows, extra], axis=1)[:, mixed]
    cut = len(train)
    return Split(table[:cut], split.y_train, table[cut:], split.y_test), mixed >= real


def _real(split: Split, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training and test rows of the features that vary, a hundred at most, with nothing missing."""
    train, test = (np.asarray(X, dtype=np.float64) for X in (split.X_train, split.X_test))
    known = ~np.isnan(train)
    mean = np.where(known, train, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    train, test = (np.where(np.isnan(X), mean, X) for X in (train, test))
    varies = np.flatnonzero(np.ptp(train, axis=0) > 0)
    kept = np.sort(rng.permutation(varies)[:MOST_REAL])
    return train[:, kept], test[:, kept]


def _pairs(real: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    first, second = np.triu_indices(real)
    if len(first) < count:
        raise ValueError(
            f"products: {real} real features have {len(first)} products, {count} are asked for; "
            "take a table with more features or a smaller share"
        )
    picked = rng.permutation(len(first))[:count]
    return first[picked], second[picked]
