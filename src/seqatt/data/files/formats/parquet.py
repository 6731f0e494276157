"""Reads Parquet files one row group at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as of

from seqatt.data.files.encoding.column_types import value_bits
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.formats.file_format import RowGroup, check_types, types_by_name
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.tables.containers import Kind

PAGE_BYTES = 1 << 20  # bytes of the largest pages of a column, as files are usually written
LARGE_PAGES = 1 << 28  # bytes of the pages of all columns from which a row group may be decoded as a whole
COLUMNS_PER_READ = 64  # columns that are decoded at a time


class ParquetFormat:
    compressible = False

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """Column types and row groups, both from the metadata."""
        with _open(path) as file:
            groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
            types = types_by_name(path, file.schema_arrow)
            return {name: type_ for name, type_ in types.items() if not is_pandas_index(name)}, [
                RowGroup(path, g, group.num_rows, group.total_byte_size, stamp)
                for g, group in enumerate(groups)
            ]

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        path, group, rows = row_group.path, row_group.group or 0, 0
        # Text is read dictionary-encoded, as it is stored: each distinct value is then hashed only once.
        texts = [name for name, type_ in types.items() if of.is_string(type_) or of.is_large_string(type_)]
        with _open(path, read_dictionary=texts, page_checksum_verification=True) as file:
            metadata = file.metadata
            count = metadata.row_group(group).num_rows if group < metadata.num_row_groups else 0
            if count != row_group.stored_rows:
                raise UnreadableFile(
                    f"{path}: has {count:,} rows where it had {row_group.stored_rows:,}: it has changed"
                )
            for batch in _batches(file, row_group, types, batch_rows):
                check_types(path, batch, types)
                batch.select(texts).validate(full=True)  # a damaged page may have codes without a text
                rows += batch.num_rows
                yield batch, rows / max(1, count)


def is_pandas_index(name: str) -> bool:
    """Whether pandas has written an index without a name as this column: a row number, which pandas does not read as a
    column either."""
    return re.fullmatch(r"__index_level_\d+__", name) is not None


def _batches(file: Any, row_group: RowGroup, types: dict[str, Any], batch_rows: int) -> Iterator[Any]:
    """Batches of a row group, decoded in the way that takes less memory.

    A reader of batches holds a page of every column, decompressed, with its dictionary; a table of thousands of
    columns can be smaller than its pages, and is then decoded whole, some columns at a time.
    """
    names, group = list(types), row_group.group or 0
    pages = min(row_group.size, len(names) * PAGE_BYTES)
    if pages <= LARGE_PAGES or (row_group.rows or 0) * _row_bytes(types) > pages:
        yield from file.iter_batches(
            batch_size=batch_rows, row_groups=[group], columns=names, use_threads=False
        )
        return
    columns: dict[str, Any] = {}
    for start in range(0, len(names), COLUMNS_PER_READ):
        names_read = names[start : start + COLUMNS_PER_READ]
        table = file.read_row_group(group, columns=names_read, use_threads=False).combine_chunks()
        # In one buffer per block: buffers of single columns leave as much memory unused between them.
        for batch in table.to_batches():
            block = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
            columns |= dict(zip(block.schema.names, block.columns, strict=True))
    yield from pa.table({name: columns[name] for name in names}).to_batches(max_chunksize=batch_rows)


def _row_bytes(types: dict[str, Any]) -> float:
    """Bytes per decoded row; infinite if a column has no fixed width."""
    bits = [None if of.is_dictionary(type_) else value_bits(type_) for type_ in types.values()]
    return float("inf") if None in bits else sum(filter(None, bits)) / 8


def _open(path: FilePath, **options: Any) -> Any:
    """Open a Parquet file: a remote one is fetched in few large reads, a local one as it is decoded."""
    if isinstance(path, RemoteFile):
        return pq.ParquetFile(path.path, filesystem=path.filesystem, pre_buffer=True, **options)
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16, **options)
