"""Which rows to learn from and which to test on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]
TEST_SHARE = 0.2


def official_rows(rows: tuple[int, ...]) -> Rows:
    """The source's own: training rows come first."""
    return np.arange(rows[0]), np.arange(rows[0], sum(rows))


def random_rows(y: NDArray[Any], seed: int, *, stratify: bool) -> Rows:
    """Any fifth of the rows for testing, every class in proportion."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=y if stratify else None
    )
    return np.sort(train), np.sort(test)


def grouped_rows(groups: NDArray[Any], y: NDArray[Any], seed: int) -> Rows:
    """A fifth of the groups for testing, classes in proportion; no group is on both sides."""
    names, first = np.unique(groups, return_index=True)
    _, test = random_rows(y[first], seed, stratify=True)
    away = np.isin(groups, names[test])
    return np.flatnonzero(~away), np.flatnonzero(away)
