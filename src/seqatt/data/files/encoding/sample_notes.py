"""What was noticed about the columns of files, as far as the schema sample shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqatt.data.files.encoding.columns import NumericColumn, encode_dictionary, read_numbers
from seqatt.data.tables.column_notes import MAX_TESTED_ROWS, note_extremes, note_identifiers, note_missing
from seqatt.data.tables.numbers.extremes import Extremes
from seqatt.data.tables.numbers.moments import signed_log1p
from seqatt.data.tables.target import Target


def note_sample(
    sample: dict[str, Any],
    numbers: Sequence[NumericColumn],
    categorical: Sequence[str],
    target: Target,
    *,
    missing_indicator: bool,
) -> tuple[str, ...]:
    """The sentences of ``note_columns`` about the columns of the schema sample."""
    size = len(target.values)
    distinct = [(name, len(encode_dictionary(sample[name])[0])) for name in categorical]
    clipped = [number for number in numbers if number.clipped]
    counts, farthest = [], []
    for number in clipped:
        values = read_numbers(sample[number.name], number.name)
        values = signed_log1p(values) if number.log1p else values
        beyond = values[(values < number.low) | (values > number.high)]
        counts.append(len(beyond))
        farthest.append(beyond[np.argmax(np.maximum(number.low - beyond, beyond - number.high))])
    extremes = Extremes(
        np.arange(len(clipped)),
        rows=np.array(counts, dtype=np.int64),
        farthest=np.array(farthest, dtype=np.float64),
    )
    logarithms = np.array([number.log1p for number in clipped], dtype=bool)
    notes = [
        note_identifiers(distinct, size),
        note_extremes([number.name for number in clipped], extremes, logarithms),
    ]
    if not missing_indicator:
        rows = np.arange(size) % -(-size // MAX_TESTED_ROWS) == 0
        missing = {each.name: np.isnan(read_numbers(sample[each.name], each.name)[rows]) for each in numbers}
        missing = {name: column for name, column in missing.items() if column.any() and not column.all()}
        if missing:
            notes.append(note_missing(list(missing), np.stack([*missing.values()], axis=1), target, rows))
    return tuple(note for note in notes if note)
