"""The schema sample: the rows of files from which the encoding is fitted before the rest is read, and notes on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as of

from seqatt.data.files.encoding.categories import encode_dictionary
from seqatt.data.files.encoding.column_types import column_kind, value_bits
from seqatt.data.files.encoding.numbers import NumericColumn, read_numbers
from seqatt.data.files.encoding.target_column import check_target_values, read_weights
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_set import FileSet, read_row_group
from seqatt.data.files.options import FileOptions
from seqatt.data.files.whole_files import concatenate_batches
from seqatt.data.tables.arrow_columns import as_category_values
from seqatt.data.tables.column_notes import MAX_TESTED_ROWS, note_extremes, note_identifiers, note_missing
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.numbers.extremes import Extremes
from seqatt.data.tables.numbers.moments import signed_log1p
from seqatt.data.tables.target import Target

SAMPLE_BYTES = 128 << 20  # bytes of the largest schema sample, with 4 bytes or more per value
TEXT_BYTES = 16  # bytes assumed per text, for the size of the sample
SAMPLED_GROUPS = 8  # row groups of the schema sample, spread over all of them: files are often sorted by time


def read_sample(
    files: FileSet, types: dict[str, Any], kinds: dict[str, Kind], options: FileOptions
) -> tuple[dict[str, Any], float]:
    """The columns of the schema sample, the first rows of some row groups, and the number of rows of all files.

    The sample has at most ``schema_rows`` rows, and fewer if these take more than ``SAMPLE_BYTES``.

    Columns of ``types`` that have no kind are the target and, if there is one, the weight. An error about a value names
    the file; if bad files are skipped, it is not raised here but reported when that row group is read in a pass.
    """
    groups = files.row_groups
    target_and_weight = [name for name in types if name not in kinds]
    rows = max(2, min(options.schema_rows, SAMPLE_BYTES // sum(map(_sample_bytes, types.values()))))
    spread = dict.fromkeys(groups[i * len(groups) // SAMPLED_GROUPS] for i in range(SAMPLED_GROUPS))
    rows_per_group = -(-rows // len(spread))
    batches, sampled, seen, size = [], 0, 0, 0.0
    errors: list[ValueError] = []
    for group in dict.fromkeys([*spread, *groups]):
        wanted, share = min(rows_per_group, rows - sampled), 1.0
        if wanted <= 0:
            break
        try:
            for batch, share in read_row_group(group, types, kinds):  # noqa: B007
                head = batch.slice(0, wanted)
                batches.append(_plain_columns(head, kinds, *target_and_weight))
                wanted -= head.num_rows
                sampled += head.num_rows
                seen += batch.num_rows
                if wanted <= 0:
                    break
        except ValueError as error:
            names_file = isinstance(error, UnreadableFile)
            errors.append(error if names_file else ValueError(f"{group.path}: {error}"))
            if not options.skips_bad_files:
                raise errors[0] from None
        size += share * group.size
    if not seen:
        if errors:
            raise errors[0]
        raise UnreadableFile(f"{groups[0].path}: there are no rows")
    table = concatenate_batches(batches, list(types))
    sample = {name: table[name].combine_chunks() for name in table.column_names}
    return sample, float(files.rows or seen * files.size / max(size, 1.0))


def _sample_bytes(type_: Any) -> int:
    """Bytes per value of the schema sample; a number takes 4 once it is encoded."""
    bits = 0 if of.is_null(type_) else value_bits(type_)
    if bits is None or column_kind(type_) == "categorical":
        return TEXT_BYTES
    return max(4, bits // 8)


def _plain_columns(batch: Any, kinds: dict[str, Kind], target: str, weight: str | None = None) -> Any:
    """A batch with categories as text, checked for values that cannot be used."""
    check_target_values(batch.column(target), target)
    if weight is not None:
        read_weights(batch.column(weight), weight)
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if kinds.get(name, "categorical") != "categorical":
            if of.is_floating(column.type):
                read_numbers(column, name)  # an error here is about this file
            columns[name] = column
        elif name in kinds or column_kind(column.type) == "categorical":
            columns[name] = as_category_values(column).cast(pa.string())
        else:
            columns[name] = as_category_values(column)
    return pa.RecordBatch.from_pydict(columns)


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
        missing = {n.name: np.isnan(read_numbers(sample[n.name], n.name)[rows]) for n in numbers}
        missing = {name: column for name, column in missing.items() if column.any() and not column.all()}
        if missing:
            notes.append(note_missing(list(missing), np.stack([*missing.values()], axis=1), target, rows))
    return tuple(note for note in notes if note)
