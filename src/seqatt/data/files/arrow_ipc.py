"""Arrow and Feather files, a record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from seqatt.data.files.remote import FilePath, RemoteFile


def describe(path: FilePath) -> tuple[Any, int | None]:
    """Schema, and rows where the file has a list of its batches."""
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
    for batch, share in _batches(path):
        chosen = batch.select(names)
        for start in range(0, batch.num_rows, rows):
            yield chosen.slice(start, rows), share


def _batches(path: FilePath) -> Iterator[tuple[Any, float]]:
    with closing(_open(path)) as data:
        try:
            listed = pa.ipc.open_file(data)
        except pa.ArrowInvalid:
            data.seek(0)
            size = data.size()
            for batch in pa.ipc.open_stream(data):
                yield batch, data.tell() / size
            return
        for i in range(listed.num_record_batches):
            yield listed.get_batch(i), (i + 1) / listed.num_record_batches
