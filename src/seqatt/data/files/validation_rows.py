"""Rows of files that are held out for validation, and the schema sample as a table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from seqatt.data.files.encoding.rows import EncodedRows, concatenate
from seqatt.data.files.file_data import FileData, read_sample_columns
from seqatt.data.files.options import FileOptions
from seqatt.data.files.schema_sample import SAMPLED_GROUPS
from seqatt.data.files.shards import ShardSlice
from seqatt.data.tables.options import Categories
from seqatt.data.tables.table_data import TableData, read_table_data

MIN_DISTANCE, MAX_DISTANCE = 5, 32  # rows from one held-out row of a row group to the next


def hold_out_rows(data: FileData, count: int, options: FileOptions) -> tuple[FileData, EncodedRows | None]:
    """The data with about ``count`` rows held out, at most a fifth, and these rows; None if there are too few rows.

    They are taken at equal distances from the beginning of a few row groups that are spread over the files. If bad
    files are skipped, an error about a row group is not raised here: the loader reports what it skips.
    """
    groups = data.files.row_groups
    spread = dict.fromkeys(groups[i * len(groups) // SAMPLED_GROUPS] for i in range(SAMPLED_GROUPS))
    per_group = -(-min(count, data.rows // MIN_DISTANCE) // len(spread))
    if per_group == 0:
        return data, None
    slices, blocks = [], []
    for group in spread:
        step = MAX_DISTANCE if group.rows is None else group.rows // per_group
        step = min(max(step, MIN_DISTANCE), MAX_DISTANCE)
        slices.append(ShardSlice(group, 0, per_group * step, step))
        try:
            for rows, _ in data.read_slice(slices[-1], 0):
                blocks.append(rows)
        except ValueError:
            if not options.skips_bad_files:
                raise
    validation = concatenate(blocks) if blocks else None
    return replace(data, held_out=tuple(slices)), validation


def sample_table(data: FileData, options: FileOptions, categories: Categories = "mixed") -> TableData:
    """The schema sample as a table whose features are those of ``data``, in the same order."""
    sample = pa.table(read_sample_columns(data, options))
    columns = [[data.input_names[c] for c in inputs] for inputs in data.input_columns]
    groups = {name: inputs for name, inputs in zip(data.names, columns, strict=True) if inputs != [name]}
    log1p = options.log1p
    return read_table_data(
        sample,
        data.target_column.column,
        sample_weight=options.sample_weight,
        class_weight=options.class_weight,
        groups=groups or None,
        task=data.target.task,
        missing_indicator=options.missing_indicator,
        # Categories are text in the schema sample: state their type, so that they are not examined for numbers again.
        column_types={name: kind for name, kind in data.kinds.items() if kind == "categorical"},
        max_categories=options.max_categories,
        categories=categories,
        log1p=log1p if isinstance(log1p, bool) else [name for name in log1p if name in data.kinds],
        negatives_kept=options.negatives_kept,
    )
