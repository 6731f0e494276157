"""Divides rows into training and test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of training and test rows
TEST_SHARE = 0.2


def official_rows(rows: tuple[int, ...]) -> Rows:
    """The split of the source, whose training rows come first."""
    return np.arange(rows[0]), np.arange(rows[0], sum(rows))


def random_rows(y: NDArray[Any], seed: int, *, stratify: bool) -> Rows:
    """A random fifth of the rows for testing, stratified by class if ``stratify``."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=y if stratify else None
    )
    return np.sort(train), np.sort(test)


def grouped_rows(groups: NDArray[Any], y: NDArray[Any], seed: int) -> Rows:
    """A random fifth of the groups for testing, stratified by class; no group is on both sides."""
    names, first = np.unique(groups, return_index=True)
    _, test = random_rows(y[first], seed, stratify=True)
    is_test = np.isin(groups, names[test])
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
