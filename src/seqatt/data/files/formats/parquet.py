"""Reads Parquet files one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
from pyarrow import types as of

from seqatt.data.files.formats.file_format import RowGroup, check_types, types_by_name
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.whole_file import UnreadableFile


class ParquetFormat:
    compressible = False

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """Column types and row groups, both from the metadata."""
        with _open(path) as file:
            groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
            return types_by_name(path, file.schema_arrow), [
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
            if count != row_group.rows:
                raise UnreadableFile(
                    f"{path}: has {count:,} rows where it had {row_group.rows:,}: it has changed"
                )
            for batch in file.iter_batches(
                batch_size=batch_rows, row_groups=[group], columns=list(types), use_threads=False
            ):
                check_types(path, batch, types)
                rows += batch.num_rows
                yield batch, rows / max(1, count)


def _open(path: FilePath, **options: Any) -> Any:
    """Open a Parquet file; a remote one is fetched in few large reads."""
    if isinstance(path, RemoteFile):
        return pq.ParquetFile(path.path, filesystem=path.filesystem, pre_buffer=True, **options)
    return pq.ParquetFile(path, **options)
