"""Files that fit in memory: all of their rows, or some spread over all of them, as one Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as of

from seqatt.data.files.encoding.column_types import common_type, is_text
from seqatt.data.files.encoding.target_column import count_unusable, unusable_target
from seqatt.data.files.errors import UnreadableFile, warn_skipped
from seqatt.data.files.file_set import FileSet, read_row_group
from seqatt.data.files.formats.file_format import RowGroup
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.arrow_columns import as_category_values
from seqatt.data.tables.categories import MIN_CATEGORY_ROWS, ONE_HOT_VALUES, min_level_rows
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.numbers.moments import infinity_message
from seqatt.data.tables.options import Categories

Skips = list[dict[str, Any]]


def read_whole_table(
    files: FileSet,
    names: list[str],
    kinds: dict[str, Kind],
    options: FileOptions = FileOptions(),
    skips: Skips | None = None,
) -> pa.Table:
    """All rows of the columns ``names``, row groups in the order of ``files``.

    ``kinds`` are the kinds of those that are features. Numbers keep the type of the files, and text is
    dictionary-encoded where that saves memory. An error about a value names the file. If ``options`` say so, what
    cannot be read is skipped instead, with one warning per file, and appended to the list ``skips``.
    """
    types = {name: files.types[name] for name in names}
    batches = (_encode_texts(batch) for batch in _checked_batches(files, types, kinds, options, skips))
    table = concatenate_batches(batches, names)
    if not table.num_rows:
        raise UnreadableFile(f"{files.row_groups[0].path}: no row of any file could be read")
    return pa.table({name: _as_described(table[name], files.types[name]) for name in names})


def sample_rows(
    files: FileSet,
    kinds: dict[str, Kind],
    types: dict[str, Any],
    rows: int,
    seed: int,
    options: FileOptions = FileOptions(),
    skips: Skips | None = None,
) -> pa.Table:
    """About ``rows`` rows of the columns of ``types`` at equal distances over all files; the seed decides the first."""
    step = max(1.0, count_rows(files, types, kinds) / rows)
    offset = np.random.default_rng(seed).random() * step

    def picked() -> Iterator[Any]:
        first = 0  # the number of the batch's first row
        for batch in _checked_batches(files, types, kinds, options, skips):
            steps = np.arange(first // step - 1, (first + batch.num_rows) // step + 1)
            numbers = np.floor(offset + steps * step).astype(np.int64) - first
            numbers = numbers[(numbers >= 0) & (numbers < batch.num_rows)]
            first += batch.num_rows
            # As plain text: a dictionary would keep the values of the rows that are left out.
            yield _encode_texts(_decode_texts(batch.take(pa.array(numbers))))

    table = concatenate_batches(picked(), list(types))
    return pa.table({name: _as_described(table[name], type_) for name, type_ in types.items()})


def count_rows(files: FileSet, types: dict[str, Any], kinds: dict[str, Kind]) -> float:
    """The number of rows of all files; if some file does not store it, an estimate from the first batch."""
    if files.rows is not None:
        return float(files.rows)
    group, batch, share = _first_batch(files, types, kinds)
    return float(batch.num_rows * files.size / max(1.0, share * group.size))


def estimate_table_bytes(
    files: FileSet,
    inputs: list[str],
    kinds: dict[str, Kind],
    types: dict[str, Any],
    categories: Categories,
    max_categories: int,
) -> int:
    """Estimated bytes of the encoded table and of the Arrow table it is made from.

    An encoded row has 4 bytes per number, code or one-hot column of ``inputs``; the Arrow table has all columns of
    ``types``. Widths of text and the number of values of a category are those of the first batch.
    """
    group, batch, share = _first_batch(files, types, kinds)
    rows = files.rows or batch.num_rows * files.size / max(1.0, share * group.size)
    encoded = stored = 0.0
    for name in types:
        column = batch.column(name)
        width = 1
        if kinds.get(name) == "categorical":
            values = as_category_values(column)
            values = values if of.is_dictionary(values.type) else values.dictionary_encode()
            counts = np.bincount(values.indices.fill_null(len(values.dictionary)).to_numpy())
            counts = counts[counts > 0]
            # Values that occur once may be identifiers, which do not become more frequent in more rows.
            rare = max(2.0, MIN_CATEGORY_ROWS * len(column) / rows)
            limit = {"codes": 0, "mixed": ONE_HOT_VALUES, "one_hot": len(counts)}[categories]
            if np.count_nonzero(counts >= rare) <= limit:
                rare = max(2.0, min_level_rows(int(rows)) * len(column) / rows)
                repeated = int(np.count_nonzero(counts >= rare))
                width = 1 if len(counts) == 2 else max(1, min(max_categories, repeated))
            column = values
        stored += column.nbytes / max(1, len(column))
        encoded += 4 * width if name in inputs else 0
    return int(rows * (encoded + stored))


def concatenate_batches(batches: Iterable[Any], names: list[str]) -> pa.Table:
    """One table of record batches whose columns may have several types of one kind."""
    chunks: dict[str, list[Any]] = {name: [] for name in names}
    for batch in batches:
        for name in names:
            chunks[name].append(batch.column(name))
    # One column after the other: its chunks are free before the next one is joined.
    return pa.table({name: _join(chunks.pop(name)) for name in names})


def _join(chunks: list[Any]) -> Any:
    type_ = common_type({chunk.type for chunk in chunks})
    joined = pa.chunked_array([_cast(chunk, type_) for chunk in chunks], type_)
    chunks.clear()
    if of.is_dictionary(type_):
        joined = joined.unify_dictionaries().combine_chunks()
        if len(joined.dictionary) > len(joined) // 2:
            return joined.cast(type_.value_type)
        return joined
    if of.is_string(type_) or of.is_large_string(type_):
        return joined  # in chunks: one array of text is limited to 2 GiB
    return joined.combine_chunks()


def _cast(chunk: Any, type_: Any) -> Any:
    if chunk.type == type_:
        return chunk
    return (chunk.dictionary_decode() if of.is_dictionary(chunk.type) else chunk).cast(type_, safe=False)


def _as_described(column: Any, type_: Any) -> Any:
    """Whole numbers of text files, which are parsed as floats, as whole numbers."""
    if of.is_integer(type_) and of.is_floating(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column


def _encode_texts(batch: Any) -> Any:
    return _map_columns(batch, lambda column: column.dictionary_encode() if is_text(column.type) else column)


def _decode_texts(batch: Any) -> Any:
    return _map_columns(
        batch, lambda column: column.dictionary_decode() if of.is_dictionary(column.type) else column
    )


def _map_columns(batch: Any, convert: Any) -> Any:
    return pa.RecordBatch.from_arrays([convert(column) for column in batch.columns], batch.schema.names)


def _first_batch(
    files: FileSet, types: dict[str, Any], kinds: dict[str, Kind]
) -> tuple[RowGroup, Any, float]:
    """The first batch with rows, its row group, and the share of that read; unreadable files are passed over."""
    failure: Exception | None = None
    for group in files.row_groups:
        try:
            for batch, share in read_row_group(group, types, kinds):
                if batch.num_rows:
                    return group, batch, share
        except UnreadableFile as error:
            failure = failure or error
    raise failure or UnreadableFile(f"{files.row_groups[0].path}: there are no rows")


def _checked_batches(
    files: FileSet,
    types: dict[str, Any],
    kinds: dict[str, Kind],
    options: FileOptions,
    skips: Skips | None,
) -> Iterator[Any]:
    skip = options.skips_bad_files
    for path, groups in groupby(files.row_groups, lambda group: group.path):
        lost: Skips = []
        for group in groups:
            done = 0
            try:
                for batch, _ in read_row_group(group, types, kinds, row_bytes=len(types)):
                    _check_values(batch, kinds, None if skip else files)
                    yield batch
                    done += batch.num_rows
            except ValueError as error:
                reason = str(error) if isinstance(error, UnreadableFile) else f"{path}: {error}"
                if not skip:
                    raise type(error)(reason) from None
                rows = None if group.rows is None else group.rows - done
                lost.append({"file": str(path), "group": group.group, "rows": rows, "reason": reason})
        if lost:
            warn_skipped(lost[0]["reason"], [part["rows"] for part in lost])
            if skips is not None:
                skips += lost


def _check_values(batch: Any, kinds: dict[str, Kind], files: FileSet | None) -> None:
    """Check that no number is infinite, and no target or weight missing: what a pass over the files refuses too.

    ``files`` are those in which the rows without a target are counted; None counts in this batch.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if of.is_floating(column.type) and name in kinds and pc.any(pc.is_inf(column)).as_py():
            raise ValueError(infinity_message(name))
        if name not in kinds and (bad := count_unusable(column)):
            rows = batch.num_rows
            if files is not None:
                of_one = {name: files.types[name]}
                read = [b for group in files.row_groups for b, _ in read_row_group(group, of_one, {})]
                bad, rows = sum(count_unusable(b.column(name)) for b in read), sum(b.num_rows for b in read)
            raise ValueError(unusable_target(name, f"{bad:,} of {rows:,} rows"))
