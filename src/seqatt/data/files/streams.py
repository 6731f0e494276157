"""Data that are no files, read like files: a ``torch.utils.data.DataLoader`` or any other iterable of batches with a
length, a query (polars LazyFrame, DuckDB relation), a stream or a Dataset of Arrow.

A ``pyarrow.dataset.Dataset`` is read where it is. Every other stream is read once, because a query may give its rows
in another order the next time: into memory while the rows fit, else into a temporary Parquet file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.formats.file_format import RowGroup, types_by_name
from seqatt.data.files.formats.fragment import FragmentFile, FragmentFormat, find_fragments
from seqatt.data.files.formats.iterable import TARGET, WEIGHTS, BatchSource, IterableFormat
from seqatt.data.files.remote import RemoteFile

__all__ = ["TARGET", "WEIGHTS", "open_batches", "open_stream", "read_batches"]

GROUP_ROWS, GROUP_BYTES = 1 << 17, 64 << 20  # a row group of the temporary file ends at either of them
NAME = "stream.parquet"


class TemporaryFolder:
    """A folder that is removed when nothing refers to this object, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="seqatt-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def open_stream(X: Any, check: Callable[[FileSet], Any], budget: int, ranks: int) -> FileSet:
    """The rows of a stream as files. ``check`` gets the columns alone, before any row is read.

    Rows are kept in memory as long as the table that they make takes at most ``budget`` bytes.
    """
    import pyarrow.dataset as ds  # here: files of other kinds do without it

    if isinstance(X, ds.Dataset):
        return _open_fragments(find_fragments(X))
    if ranks > 1:
        raise TypeError(
            f"X: each of {ranks} ranks would read the {type(X).__name__} by itself, perhaps in another order; write "
            "it to Parquet files and pass these"
        )
    schema, batches = _read_polars(X) if hasattr(X, "collect_schema") else _read_arrow(X)
    check(FileSet(types_by_name(RemoteFile("X", "", None), schema), ()))
    gathered, size = [], 0
    for batch in batches:
        gathered.append(batch)
        # As it is here, joined to one table, and encoded.
        size += 2 * batch.nbytes + 4 * batch.num_rows * batch.num_columns
        if size > budget:
            folder = TemporaryFolder()
            path = _write(folder.path / NAME, schema, gathered, batches)
            return replace(open_files(path), owner=folder)
    if not any(batch.num_rows for batch in gathered):
        raise UnreadableFile("X: the stream has no rows; a record-batch reader can be read only once")
    return _open_fragments(find_fragments(ds.dataset(pa.Table.from_batches(gathered, schema))))


def _open_fragments(fragments: list[FragmentFile]) -> FileSet:
    row_groups: list[RowGroup] = []
    types: dict[str, Any] = {}
    for fragment in fragments:
        stat = fragment.stat()
        types, groups = FragmentFormat().describe(fragment, (stat.st_size, stat.st_mtime_ns), {})
        row_groups += [group for group in groups if group.rows]
    if not row_groups:
        raise UnreadableFile("X: the dataset has no rows")
    return FileSet(types, tuple(row_groups))


def _read_polars(frame: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches of a polars LazyFrame, whose streaming engine runs when the first one is read."""
    if not hasattr(frame, "collect_batches"):
        raise TypeError(
            "X: this release of polars cannot stream a LazyFrame; update polars, pass X.collect() if it fits in "
            "memory, or write it with X.sink_parquet(path) and pass the path"
        )
    tables = frame.collect_batches(maintain_order=True, lazy=True, engine="streaming")
    return frame.collect_schema().to_frame().to_arrow().schema, (
        batch for table in tables for batch in table.to_arrow().to_batches()
    )


def _read_arrow(stream: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches of anything that has Arrow's stream interface."""
    reader = pa.RecordBatchReader.from_stream(stream)
    views = [field for field in reader.schema if str(field.type) == "string_view"]
    if views:
        schema = reader.schema
        for field in views:
            schema = schema.set(schema.get_field_index(field.name), field.with_type(pa.string()))
        reader = reader.cast(schema)
    return reader.schema, iter(reader)


def _write(path: Path, schema: Any, gathered: list[Any], batches: Iterator[Any]) -> Path:
    """Write the gathered batches, which are freed one by one, and all others."""
    with pq.ParquetWriter(path, schema) as writer:
        group: list[Any] = []
        rows = size = 0
        gathered.reverse()
        while (batch := gathered.pop() if gathered else next(batches, None)) is not None:
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group, schema))
                group, rows, size = [], 0, 0
        if rows:
            writer.write_table(pa.Table.from_batches(group, schema))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    # Checkpoints know a file by its name, size and time: the same rows have the same time, whenever they are written.
    time = int.from_bytes(digest[:6], "big")
    os.utime(path, ns=(time, time))
    return path


def open_batches(batches: Any) -> FileSet:
    """Batches ``(X, y)`` or ``(X, y, weights)`` as one file that is read by iterating over them anew.

    The columns are ``x0``, ``x1``, ..., ``y`` and, if the batches have them, ``weights``. The number of rows is
    estimated from the number of batches until the first pass is over.
    """
    source = _source(batches)
    types, row_groups = IterableFormat().describe(source, (len(batches), 0), {})
    return FileSet(types, tuple(row_groups))


def read_batches(batches: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """All batches in memory: features (n, d), targets (n,) or (n, outputs), and weights (n,) or None."""
    parts = list(_source(batches).arrays())
    if not parts:
        raise ValueError("X: there are no batches")
    weights = [part.weights for part in parts if part.weights is not None]
    return (
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def _source(batches: Any) -> BatchSource:
    if not hasattr(batches, "__iter__") or iter(batches) is batches:
        raise TypeError(
            f"X: {type(batches).__name__} can be read only once; pass an object that can be iterated over again, "
            "such as a DataLoader"
        )
    try:
        length = len(batches)
    except TypeError:  # also raised by a DataLoader of an IterableDataset without a length
        raise TypeError(
            f"X: {type(batches).__name__} has no length; define __len__, the number of batches"
        ) from None
    if not length:
        raise ValueError("X: there are no batches")
    return BatchSource(type(batches).__name__, "", None, batches)
