"""Training and test rows, drawn for every seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from seqatt.validation import show

Rows = NDArray[np.intp]


def check_test_size(test_size: Any, rows: int) -> None:
    """Raise unless ``test_size`` is a share between 0 and 1 or a number of rows."""
    if isinstance(test_size, bool) or not isinstance(test_size, int | float | np.number):
        raise TypeError(f"test_size: must be a share such as 0.25 or a number of rows, got {show(test_size)}")
    share = isinstance(test_size, float | np.floating)
    if not 0 < test_size < (1 if share else rows):
        limit = "below 1 as a share" if share else f"below the {rows} rows of X"
        raise ValueError(f"test_size: must be above 0 and {limit}, got {test_size}")


def hold_out(
    rows: int,
    test_size: float | int,
    seed: int,
    *,
    classes: NDArray[np.int64] | None,
    stratify: bool,
    groups: NDArray[Any] | None,
) -> tuple[Rows, Rows]:
    """Sorted indices of training and test rows.

    Test rows of a class without training rows are moved to the training rows. ``classes`` are class numbers
    per row, None for other targets. Rows with the same value in ``groups`` stay on the same side; the share
    of groups drawn is the share of rows that ``test_size`` is.
    """
    try:
        if groups is not None:
            share = test_size if isinstance(test_size, float | np.floating) else test_size / rows
            splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
            train, test = next(splitter.split(np.arange(rows), groups=groups))
        elif stratify and classes is not None:
            train, test = _stratified_split(classes, test_size, seed)
        else:
            train, test = train_test_split(np.arange(rows), test_size=test_size, random_state=seed)
    except ValueError:
        units = f"{rows} rows" if groups is None else f"{len(np.unique(groups))} groups"
        raise ValueError(f"test_size: {units} are too few to hold out {test_size} of the rows") from None
    if classes is not None:
        unseen = ~np.isin(classes[test], classes[train])
        if groups is not None:
            unseen = np.isin(groups[test], groups[test][unseen])
        train, test = np.concatenate([train, test[unseen]]), test[~unseen]
    if len(test) == 0:
        raise ValueError("test_size: no test row has a class that occurs in the training rows; increase it")
    return np.sort(train), np.sort(test)


def _stratified_split(classes: NDArray[np.int64], test_size: float | int, seed: int) -> tuple[Rows, Rows]:
    """A stratified split; classes of one row are in the training rows."""
    singleton = np.bincount(classes)[classes] == 1
    repeated = np.flatnonzero(~singleton)
    try:
        train, test = train_test_split(
            repeated, test_size=test_size, random_state=seed, stratify=classes[repeated]
        )
    except ValueError:  # fewer test rows than classes
        return tuple(train_test_split(np.arange(len(classes)), test_size=test_size, random_state=seed))
    return np.concatenate([train, np.flatnonzero(singleton)]), test
