"""Arrow and Feather files, a record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds


def describe(path: Path) -> tuple[Any, int | None]:
    """Schema, and rows where the file has a list of its batches."""
    with closing(pa.memory_map(str(path))) as data:
        try:
            schema = pa.ipc.open_file(data).schema
        except pa.ArrowInvalid:
            data.seek(0)
            return pa.ipc.open_stream(data).schema, None
    return schema, ds.dataset(path, format="ipc").count_rows()


def read(path: Path, names: list[str], rows: int) -> Iterator[tuple[Any, float]]:
    for batch, share in _batches(path):
        chosen = batch.select(names)
        for start in range(0, batch.num_rows, rows):
            yield chosen.slice(start, rows), share


def _batches(path: Path) -> Iterator[tuple[Any, float]]:
    with closing(pa.memory_map(str(path))) as data:
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
