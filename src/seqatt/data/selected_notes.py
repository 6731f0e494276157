"""What was noticed about selected features: sentences for ``Selection.notes``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.column_notes import MIN_ROWS, listed
from seqatt.data.tables.table_data import TableData
from seqatt.display_text import NO_NAME

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

HEAD = 200  # rows that are looked at first
MAX_VALUES = 50  # different values of a feature that is compared with the target
ROWS_PER_VALUE = 5  # rows per value, at least: rows that are all different determine everything
SAME = 1e-6  # difference to 1 of the correlation of a feature that is the target


def note_selected(data: TableData | FileData, order: Sequence[int]) -> list[str]:
    """Sentences about the selected features: constants and, in a dense table, row numbers and copies of the target."""
    constant, numbered, copies = [feature for feature in order if data.constant[feature]], [], []
    if isinstance(data, TableData) and isinstance(data.columns, np.ndarray) and data.rows >= MIN_ROWS:
        for feature in set(order) - set(constant):
            # Most features are told apart by the first rows, and a column of a large table takes long to read.
            for rows in (slice(HEAD), slice(None)):
                values = _values(data, feature, rows)
                is_number, is_copy = _is_sorted(values), _determines(values, data, rows)
                if not (is_number or is_copy):
                    break
            numbered += [feature] if is_number else []
            copies += [feature] if is_copy else []
    notes = ((_note_constant, constant), (_note_row_numbers, numbered), (_note_target, copies))
    return [
        note([str(data.given_names[feature]) or NO_NAME for feature in order if feature in features])
        for note, features in notes
        if features
    ]


def _note_constant(names: Sequence[str]) -> str:
    are = "is constant and was" if len(names) == 1 else "are constant and were"
    return f"{listed(names)} {are} selected only because k is larger than the number of other features."


def _note_row_numbers(names: Sequence[str]) -> str:
    rises = "rises or falls" if len(names) == 1 else "rise or fall"
    leave_out = "ignore (--ignore) leaves a column out"
    return f"{listed(names)} {rises} from row to row, as a row number or a time does; {leave_out}."


def _note_target(names: Sequence[str]) -> str:
    determine, known, it = (
        ("determines", "Is it", "it") if len(names) == 1 else ("determine", "Are they", "them")
    )
    return (
        f"{listed(names)} {determine} the target in every row. {known} known before the target is? Else leave {it} out "
        "with ignore (--ignore)."
    )


def _values(data: TableData, feature: int, rows: slice) -> NDArray[Any]:
    """One number per row (n,), the same for equal values of the feature."""
    assert isinstance(data.columns, np.ndarray)
    columns = data.columns[rows, data.feature_of == feature].astype(np.float64)
    codes = data.codes[rows, data.coded_features == feature]
    if columns.shape[1] == 1 and not codes.shape[1]:
        return columns[:, 0]
    weights = np.random.default_rng(0).random(columns.shape[1] + codes.shape[1])
    return np.asarray(np.round(np.hstack([columns, codes]) @ weights, 9))


def _is_sorted(values: NDArray[Any]) -> bool:
    """Whether the values rise from row to row, or fall; some rows may be left out of the table."""
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _determines(values: NDArray[Any], data: TableData, rows: slice) -> bool:
    """Whether in these rows each value of the feature has one class, or the feature is the target up to its scale."""
    classes = data.target.codes
    if classes is None:
        numbers = data.target.values.reshape(data.rows, -1)[rows]
        if data.target.task != "regression" or numbers.shape[1] > 1:
            return False
        if not (numbers.std() and values.std()):  # says nothing, unless these are all rows
            return len(numbers) < data.rows
        return bool(abs(np.corrcoef(values, numbers[:, 0])[0, 1]) > 1 - SAME)
    distinct, number = np.unique(values, return_inverse=True)
    pairs = np.unique(number * (int(classes.max()) + 1) + classes[rows])
    return len(pairs) == len(distinct) <= min(MAX_VALUES, data.rows // ROWS_PER_VALUE)
