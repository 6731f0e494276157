"""Reads Arrow and Feather files one record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from seqatt.data.files.remote import FilePath, RemoteFile


def describe(path: FilePath) -> tuple[Any, int | None]:
    """Schema and number of rows; None for the stream format, which does not store the number."""
    with closing(_open(path)) as data:
        try:
            schema = pa.ipc.open_file(data).schema
        except pa.ArrowInvalid:
            data.seek(0)
            return pa.ipc.open_stream(data).schema, None
    if isinstance(path, RemoteFile):
        return schema, ds.dataset(path.path, filesystem=path.filesystem, format="ipc").count_rows()
    return schema, ds.dataset(path, format="ipc").count_rows()


def _open(path: FilePath) -> Any:
    return path.open() if isinstance(path, RemoteFile) else pa.memory_map(str(path))


def read(path: FilePath, names: list[str], rows: int) -> Iterator[tuple[Any, float]]:
    """Batches of at most ``rows`` rows of some columns, each with the share of the file read so far (0 to 1)."""
    for batch, share in _batches(path):
        columns = batch.select(names)
        for start in range(0, batch.num_rows, rows):
            yield columns.slice(start, rows), share


def _batches(path: FilePath) -> Iterator[tuple[Any, float]]:
    with closing(_open(path)) as data:
        try:
            file = pa.ipc.open_file(data)
        except pa.ArrowInvalid:
            data.seek(0)
            size = data.size()
            for batch in pa.ipc.open_stream(data):
                yield batch, data.tell() / size
            return
        for i in range(file.num_record_batches):
            yield file.get_batch(i), (i + 1) / file.num_record_batches
