"""Notes on extrapolation: with ``time``, values of the latest rows may lie outside the range of the training rows.

Networks do not extrapolate. On a series that grows, even the best features are then no better than none.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.column_notes import listed
from seqatt.data.tables.table_data import TableData
from seqatt.display_text import NO_NAME

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

Rows = NDArray[np.int64]

NUMBERS = ("regression", "poisson", "quantile")  # tasks whose targets may leave a range
MIN_ROWS = 40  # of a table; a fifth of fewer is too few rows
HELD_OUT = 5  # one of this many parts of the rows is the latest ones
# The range is that of all earlier rows but this share at either end, which a few extreme values do not widen.
TAIL = 0.01
MAX_OUTSIDE = 0.4  # share of the latest rows; where a trend is this steep, networks are worse than the mean
MAX_TESTED_ROWS = 1_000  # earlier ones in which features are looked at, and as many later ones
LATEST, OUTSIDE = "of the latest fifth of the rows", "outside the range of nearly all earlier rows"
REMEDY = (
    "Networks do not extrapolate, so scores on held-out rows {say} little: use differences or ratios to an earlier "
    "value (y - y_lag), of features as well, or leave time (--time) out to hold out rows of all times."
)


def note_latest_target(data: TableData | FileData) -> str | None:
    """A sentence for ``Selection.notes``, and a warning, where many of the latest targets are out of range."""
    rows = _split(data)
    if rows is None or not isinstance(data, TableData):
        return None
    targets = data.target.values.reshape(data.rows, -1)
    share = float(_outside(targets[rows[0]], targets[rows[1]]).max())
    if share <= MAX_OUTSIDE:
        return None
    note = f"In {share:.0%} {LATEST}, the target is {OUTSIDE}. {REMEDY.format(say='say')}"
    warnings.warn(f"time: {note[0].lower()}{note[1:]}", stacklevel=2)
    return note


def note_latest_features(
    data: TableData | FileData, order: Sequence[int], *, target_leaves: bool
) -> list[str]:
    """Sentences for ``Selection.notes`` where many of the latest values of selected features are out of range.

    Unlike the target's there is no warning, and with ``target_leaves`` the remedy is not said again.
    """
    rows = _split(data)
    if rows is None or not isinstance(data, TableData):
        return []
    outside = _features_outside(data, *rows, order)
    features = [f for f in order if outside[f] > MAX_OUTSIDE]
    if not features:
        return []
    names = listed([str(data.given_names[f]) or NO_NAME for f in features])
    note = (
        f"In at least {MAX_OUTSIDE:.0%} {LATEST}, {names} {'is' if len(features) == 1 else 'are'} {OUTSIDE}."
    )
    return [note if target_leaves else f"{note} {REMEDY.format(say='may say')}"]


def _split(data: TableData | FileData) -> tuple[Rows, Rows] | None:
    """The earlier rows and the latest ones; None where rows are not in time, or the target is no number."""
    if not isinstance(data, TableData) or data.units is None or not data.units.in_time:
        return None
    if data.target.task not in NUMBERS or data.rows < MIN_ROWS or not data.units.unit.any():
        return None
    return data.units.latest(data.rows // HELD_OUT)


def _outside(earlier: NDArray[np.floating], latest: NDArray[np.floating]) -> NDArray[np.float64]:
    """The share of the latest rows out of the range of the earlier ones, (columns,)."""
    low, high = np.quantile(np.ascontiguousarray(earlier.T), [TAIL, 1 - TAIL], axis=1)
    return np.asarray(((latest < low) | (latest > high)).mean(0))


def _features_outside(
    data: TableData, earlier: Rows, latest: Rows, order: Sequence[int]
) -> NDArray[np.float64]:
    """The share of the latest rows in which these numeric features of a dense table are out of range, (features,)."""
    outside = np.zeros(data.features)
    if not isinstance(data.columns, np.ndarray):
        return outside
    rng = np.random.default_rng(0)
    earlier, latest = (rng.permutation(rows)[:MAX_TESTED_ROWS] for rows in (earlier, latest))
    columns = np.flatnonzero(data.encoder.is_number & np.isin(data.feature_of, order))
    shares = _outside(data.columns[np.ix_(earlier, columns)], data.columns[np.ix_(latest, columns)])
    np.maximum.at(outside, data.feature_of[columns], shares)
    return outside
