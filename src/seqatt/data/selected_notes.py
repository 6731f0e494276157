"""Notes on selected features: sentences for ``Selection.notes``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.latest_rows import note_latest_features
from seqatt.data.tables.column_notes import MIN_ROWS, listed
from seqatt.data.tables.table_data import TableData
from seqatt.display_text import LEAVES_RANGE, NO_NAME

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

HEAD = 200  # rows that are looked at first, and as many with another target than the first one
MAX_VALUES = 50  # different values of a feature that is compared with the target
ROWS_PER_VALUE = 5  # rows per value, at least: rows that are all different determine everything
SAME = 1e-6  # difference to 1 of the correlation of a feature that is the target
ROUNDED = 2e-3  # share of the variance of the target's ranks that the rounding of a feature may hide
# Columns that are expected to separate the classes, or to be in the order of the target, by chance; at most.
MAX_CHANCE = 1e-6
NUMBERS = ("regression", "quantile", "poisson")  # tasks of one number per row, or several

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]
ALL = slice(None)
EVERY_ROW = "in every row"


def note_selected(
    data: TableData | FileData, order: Sequence[int], settings: Mapping[str, Any], options: Any = None
) -> list[str]:
    """Sentences about the selected features: constants and, in a dense table, row numbers and what is the target.

    Of files that are read batch by batch, the schema sample is looked at. With ``time``, also those that leave their
    range; ``settings`` say whether the target does. ``options`` of the method may hold a loss of the user, which gets a
    standardised target, and those of the data say how files are read.
    """
    found = {feature: {_note_constant} for feature in order if data.constant[feature]}
    table = data if isinstance(data, TableData) else _schema_sample(data, getattr(options, "data", None))
    if table is not None and isinstance(table.columns, np.ndarray) and table.rows >= MIN_ROWS:
        head = _first_rows(table)
        found |= {feature: _examine(table, feature, head) for feature in order if not table.constant[feature]}
    named = {
        note: [str(data.given_names[f]) or NO_NAME for f in order if note in found.get(f, ())]
        for note in (_note_constant, _note_row_numbers, _note_target, _note_ranges, _note_monotone)
    }
    notes = [note(names) for note, names in named.items() if names]
    if table is not None and table is not data:
        notes = [
            note.replace(EVERY_ROW, f"in all {table.rows:,} rows of the schema sample") for note in notes
        ]
    latest = note_latest_features(data, order, target_leaves=LEAVES_RANGE in settings)
    return latest + _note_standardised(data, getattr(options, "method", None)) + notes


def _schema_sample(data: FileData, options: Any) -> TableData | None:
    """The rows from which the encoding of files was fitted, as a table with the same features.

    None where they cannot be read any more: that is no reason to lose a selection.
    """
    from seqatt.data.files.options import FileOptions  # here, because only files need pyarrow
    from seqatt.data.files.validation_rows import sample_table

    try:
        return sample_table(data, options) if isinstance(options, FileOptions) else None
    except (OSError, ValueError):
        return None


def _note_standardised(data: TableData | FileData, options: Any) -> list[str]:
    """What the user's loss in these options gets in place of a numeric target; empty without one."""
    shift, scale = data.target.shift, data.target.scale
    if getattr(options, "loss", None) is None or shift is None or scale is None or not len(shift):
        return []
    each = [
        f"(y - {mean:.6g}) / {deviation:.6g}" if mean else f"y / {deviation:.6g}"
        for mean, deviation in zip(shift, scale, strict=True)
    ]
    more = f" and {len(each) - 3} more" if len(each) > 3 else ""
    return [f"The loss gets the target standardised: {', '.join(each[:3])}{more}."]


def _note_constant(names: Sequence[str]) -> str:
    are = "is constant and was" if len(names) == 1 else "are constant and were"
    return f"{listed(names)} {are} selected only because k is larger than the number of other features."


def _note_row_numbers(names: Sequence[str]) -> str:
    rises = "rises or falls" if len(names) == 1 else "rise or fall"
    leave_out = "ignore (--ignore) leaves a column out"
    return f"{listed(names)} {rises} from row to row, as a row number or a time does; {leave_out}."


def _note_target(names: Sequence[str], how: str = "") -> str:
    determine, known, it = (
        ("determines", "Is it", "it") if len(names) == 1 else ("determine", "Are they", "them")
    )
    return (
        f"{listed(names)} {determine} the target {EVERY_ROW}{how}. {known} known before the target is? Else leave "
        f"{it} out with ignore (--ignore)."
    )


def _note_ranges(names: Sequence[str]) -> str:
    return _note_target(
        names, f": {'in each, ' * (len(names) > 1)}every class has a range of values of its own"
    )


def _note_monotone(names: Sequence[str]) -> str:
    them = "it" if len(names) == 1 else "each of them"
    return _note_target(names, f": the target only rises, or only falls, with {them}")


def _first_rows(data: TableData) -> Rows:
    """The first rows, and the first of those whose target differs from that of the first row."""
    target = data.target.values.reshape(data.rows, -1)[:, 0]
    others = np.flatnonzero(target != target[0])[:HEAD]
    return np.union1d(np.arange(min(HEAD, data.rows)), others)


def _examine(data: TableData, feature: int, head: Rows) -> set[Any]:
    """The notes that a feature of a dense table deserves, as functions of names."""
    of_numbers = data.target.codes is None
    ordered = _note_monotone if of_numbers else _note_ranges
    tests: dict[Any, Callable[[Rows], bool]] = {
        _note_row_numbers: lambda rows: _is_sorted(_values(data, feature, rows)),
        _note_target: lambda rows: _determines(_values(data, feature, rows), data, rows),
        ordered: lambda rows: _is_in_order(data, feature, rows),
    }
    # Most features are told apart by the first rows, and a column of a large table takes long to read.
    first = [note for note, test in tests.items() if test(head)]
    notes = {note for note in first if tests[note](ALL)}
    # A copy of the target is in its order, and so is a row number where the rows are sorted by the target.
    return notes - {ordered} if len(notes) > 1 else notes


def _values(data: TableData, feature: int, rows: Rows) -> NDArray[Any]:
    """One number per row (n,), the same for equal values of the feature."""
    assert isinstance(data.columns, np.ndarray)
    columns: list[NDArray[Any]]
    columns = [data.columns[:, column][rows] for column in np.flatnonzero(data.feature_of == feature)]
    columns += [data.codes[:, column][rows] for column in np.flatnonzero(data.coded_features == feature)]
    if len(columns) == 1:
        return columns[0].astype(np.float64)
    weights = np.random.default_rng(0).random(len(columns))
    return np.asarray(np.round(np.stack(columns, 1) @ weights, 9))


def _is_sorted(values: NDArray[Any]) -> bool:
    """Whether the values rise from row to row, or fall; some rows may be left out of the table."""
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _determines(values: NDArray[Any], data: TableData, rows: Rows) -> bool:
    """Whether in these rows each value of the feature has one class, or the feature is the target up to its scale."""
    classes = data.target.codes
    if classes is None:
        numbers = _target_numbers(data, rows)
        if numbers is None:
            return False
        if not (numbers.std() and values.std()):  # says nothing, unless these are all rows
            return len(numbers) < data.rows
        return bool(abs(np.corrcoef(values, numbers)[0, 1]) > 1 - SAME)
    distinct, number = np.unique(values, return_inverse=True)
    pairs = np.unique(number * (int(classes.max()) + 1) + classes[rows])
    return len(pairs) == len(distinct) <= min(MAX_VALUES, data.rows // ROWS_PER_VALUE)


def _target_numbers(data: TableData, rows: Rows) -> Floats | None:
    """A target of one number per row (n,) in these rows; None for any other."""
    if data.target.task not in NUMBERS or data.target.outputs > 1:
        return None
    return np.asarray(data.target.values.reshape(data.rows, -1)[:, 0][rows], dtype=np.float64)


def _is_in_order(data: TableData, feature: int, rows: Rows) -> bool:
    """Whether a number of the feature separates the classes in these rows, or rises or falls with the target.

    Of all rows, no column of the table might be expected to do so by chance.
    """
    assert isinstance(data.columns, np.ndarray)
    encoder, classes, numbers = data.encoder, data.target.codes, _target_numbers(data, rows)
    target: NDArray[Any] | None = numbers if classes is None else classes[rows]
    if target is None:
        return False
    for column in np.flatnonzero((data.feature_of == feature) & np.isin(encoder.input_of, encoder.numeric)):
        values = data.columns[:, column][rows]
        if classes is None:
            found = any(_rises(sign * values, target) for sign in (1, -1))
        else:
            # Missing numbers are the mean, 0: they may be those of one class.
            apart = (values == 0) & (encoder.missing_shares[column] > 0)
            found = len(np.unique(target[apart])) <= 1 and _separates(values[~apart], target[~apart])
        if found:
            of_numbers, columns = classes is None, data.encoded_columns
            return len(target) < data.rows or not _may_be_chance(target, of_numbers, columns)
    return False


def _separates(values: NDArray[Any], classes: NDArray[np.int64]) -> bool:
    """Whether each class has an interval of the values of its own."""
    by_value = np.lexsort((classes, values))
    values, classes = values[by_value], classes[by_value]
    last = np.flatnonzero(classes[1:] != classes[:-1])  # the last row before another class
    few = len(last) < max(1, len(np.unique(classes)))
    return few and bool((values[last] < values[last + 1]).all())


def _rises(values: NDArray[Any], numbers: Floats) -> bool:
    """Whether the numbers never fall where the values rise, and equal values have nearly equal numbers."""
    by_value = np.lexsort((numbers, values))
    ordered = numbers[by_value]
    if (np.maximum.accumulate(ordered) - ordered).max() > SAME * numbers.std():
        return False
    _, number, rows = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(rows) - rows / 2)[number]
    _, value, rows = np.unique(values, return_inverse=True, return_counts=True)
    means = (np.bincount(value, ranks) / rows)[value]
    return bool(((ranks - means) ** 2).mean() <= ROUNDED * ranks.var())


def _may_be_chance(target: NDArray[Any], of_numbers: bool, columns: int) -> bool:
    """Whether one of so many columns might be in the order of the target if their rows were in any order."""
    _, rows = np.unique(target, return_counts=True)
    sizes, count = np.unique(rows, return_counts=True)
    same = sum(n * math.lgamma(size + 1) for size, n in zip(sizes.tolist(), count.tolist(), strict=True))
    orders = math.log(2) if of_numbers else math.lgamma(len(rows) + 2)  # missing numbers are as another class
    expected = math.log(columns) + orders + same - math.lgamma(len(target) + 1)
    return bool(expected > math.log(MAX_CHANCE))
