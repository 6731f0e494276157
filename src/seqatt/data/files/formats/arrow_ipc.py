"""Reads Arrow and Feather files one record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa

from seqatt.data.files.formats.file_format import RowGroup, check_types, types_by_name
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.tables.containers import Kind


class ArrowFormat:
    compressible = False

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """Column types, and the whole file as one row group."""
        schema, rows = _schema_and_rows(path)
        return types_by_name(path, schema), [RowGroup(path, None, rows, stamp[0], stamp)]

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        for batch, share in _batches(row_group.path, list(types)):
            columns = batch.select(list(types))
            columns.validate(full=True)  # an offset outside a damaged file would end the process
            for start in range(0, batch.num_rows, batch_rows):
                check_types(row_group.path, columns, types)
                yield columns.slice(start, batch_rows), share


def _schema_and_rows(path: FilePath) -> tuple[Any, int | None]:
    """Schema and number of rows; None for the stream format, which does not store the number."""
    with closing(_open(path)) as data:
        try:
            schema = pa.ipc.open_file(data).schema
        except pa.ArrowInvalid:
            data.seek(0)
            return pa.ipc.open_stream(data).schema, None
    import pyarrow.dataset as ds  # here: other formats do without it

    if isinstance(path, RemoteFile):
        return schema, ds.dataset(path.path, filesystem=path.filesystem, format="ipc").count_rows()
    return schema, ds.dataset(path, format="ipc").count_rows()


def _open(path: FilePath) -> Any:
    # Not memory-mapped: access to a part that was cut off meanwhile would end the process (SIGBUS).
    return path.open() if isinstance(path, RemoteFile) else pa.OSFile(str(path))


def _batches(path: FilePath, names: list[str]) -> Iterator[tuple[Any, float]]:
    """These columns in record batches as they are stored, each with the share of the file read so far (0 to 1)."""
    with closing(_open(path)) as data:
        try:
            file = pa.ipc.open_file(data, options=_only(names, pa.ipc.open_file(data).schema))
        except pa.ArrowInvalid:
            data.seek(0)
            options = _only(names, pa.ipc.open_stream(data).schema)
            data.seek(0)
            size = data.size()
            for batch in pa.ipc.open_stream(data, options=options):
                yield batch, data.tell() / size
            return
        for i in range(file.num_record_batches):
            yield file.get_batch(i), (i + 1) / file.num_record_batches


def _only(names: list[str], schema: Any) -> Any:
    """Options by which only these columns are read from the file."""
    positions = {name: position for position, name in enumerate(schema.names)}
    return pa.ipc.IpcReadOptions(included_fields=[positions[name] for name in names])
