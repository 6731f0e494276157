"""Rows to learn from and rows to test on, drawn anew for every seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split

Rows = NDArray[np.intp]


def check_test_size(test_size: Any, rows: int) -> None:
    """A share between 0 and 1, or a number of rows."""
    if isinstance(test_size, bool) or not isinstance(test_size, int | float | np.number):
        raise TypeError(f"test_size: must be a share such as 0.25 or a number of rows, got {test_size!r}")
    share = isinstance(test_size, float | np.floating)
    if not 0 < test_size < (1 if share else rows):
        most = "below 1 as a share" if share else f"below the {rows} rows there are"
        raise ValueError(f"test_size: must be above 0 and {most}, got {test_size}")


def hold_out(
    rows: int,
    test_size: float | int,
    seed: int,
    *,
    classes: NDArray[np.int64] | None,
    stratify: bool,
    groups: NDArray[Any] | None,
) -> tuple[Rows, Rows]:
    """Training and test rows. A class that is not learnt cannot be tested: its rows are learnt from.

    ``classes`` are class numbers, None for other targets. Rows with the same value in ``groups`` stay
    together: of the groups as large a share is drawn as ``test_size`` is of the rows.
    """
    try:
        if groups is not None:
            share = test_size if isinstance(test_size, float | np.floating) else test_size / rows
            draw = GroupShuffleSplit(1, test_size=share, random_state=seed)
            train, test = next(draw.split(np.arange(rows), groups=groups))
        elif stratify and classes is not None:
            train, test = _stratified(classes, test_size, seed)
        else:
            train, test = train_test_split(np.arange(rows), test_size=test_size, random_state=seed)
    except ValueError:
        units = f"{rows} rows" if groups is None else f"{len(np.unique(groups))} groups"
        raise ValueError(f"test_size: {units} are too few to keep {test_size} of the rows aside") from None
    if classes is not None:
        unseen = ~np.isin(classes[test], classes[train])
        if groups is not None:
            unseen = np.isin(groups[test], groups[test][unseen])
        train, test = np.concatenate([train, test[unseen]]), test[~unseen]
    if len(test) == 0:
        raise ValueError("test_size: no test rows are left whose class also occurs elsewhere; raise it")
    return np.sort(train), np.sort(test)


def _stratified(classes: NDArray[np.int64], test_size: float | int, seed: int) -> tuple[Rows, Rows]:
    """Every class on both sides, as far as there are rows for that."""
    alone = np.bincount(classes)[classes] == 1
    many = np.flatnonzero(~alone)
    try:
        train, test = train_test_split(many, test_size=test_size, random_state=seed, stratify=classes[many])
    except ValueError:  # fewer test rows than classes
        return tuple(train_test_split(np.arange(len(classes)), test_size=test_size, random_state=seed))
    return np.concatenate([train, np.flatnonzero(alone)]), test
