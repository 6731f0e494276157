"""The interface of file formats: column types and row groups of a file, and the batches of a row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from seqatt.data.files.encoding.column_types import compatible
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.remote import FilePath
from seqatt.data.number_texts import ReadAs, not_a_number, to_numbers_or_dates
from seqatt.data.tables.containers import Kind

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}


class RowSubset(NamedTuple):
    """Every ``step``-th row of a row group from row ``offset`` on, or, with ``others``, all other rows."""

    step: int
    offset: int
    others: bool
    stored_rows: int | None  # of the whole row group

    def read(self, batches: Iterator[tuple[Any, float]]) -> Iterator[tuple[Any, float]]:
        """These rows of the batches of the whole row group."""
        first = 0
        for batch, share in batches:
            picked = np.arange(first, first + batch.num_rows) % self.step == self.offset
            part = batch.filter(pa.array(~picked if self.others else picked))
            first += batch.num_rows
            if part.num_rows:
                yield part, share


@dataclass(frozen=True)
class RowGroup:
    """The unit of reading: row group number ``group`` of a Parquet file, or a whole file of another format.

    ``rows`` is None if the file does not store it (text); ``size`` is in bytes. ``stamp`` is the size in bytes
    and the modification time in nanoseconds of the whole file; a file that has changed has another stamp.
    ``delimiter`` is that of a text file, None for the one of its ending, and ``decimal`` None for the point.
    ``partition`` are the columns that the folders above the file give it, each with its value as text. ``subset`` are
    the rows that are used, if not all. ``read_as`` are columns of a text file whose values allow several types.
    """

    path: FilePath
    group: int | None
    rows: int | None
    size: int
    stamp: tuple[int, int] = (0, 0)
    delimiter: str | None = None
    decimal: str | None = None
    partition: tuple[tuple[str, str | None], ...] = ()
    subset: RowSubset | None = None
    read_as: tuple[tuple[str, ReadAs], ...] = field(default=(), compare=False, repr=False)

    @property
    def stored_rows(self) -> int | None:
        """The number of rows, also of those that are not in the subset."""
        return self.rows if self.subset is None else self.subset.stored_rows

    def take(self, step: int, offset: int, *, others: bool) -> RowGroup:
        """Every ``step``-th row from row ``offset`` on, or all others."""
        rows, share = None, (step - 1 if others else 1) / step
        if self.rows is not None:
            picked = len(range(offset, self.rows, step))
            rows = self.rows - picked if others else picked
        size = max(1, round(self.size * share))
        return replace(self, rows=rows, size=size, subset=RowSubset(step, offset, others, self.rows))


class FileFormat(Protocol):
    """Describes and reads the files of one format.

    Errors of pyarrow and of the file system need not be caught: the caller turns them into ``UnreadableFile``.
    """

    @property
    def compressible(self) -> bool:
        """Whether a file may be compressed as a whole, as in ``.csv.gz``."""

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """Arrow type per column name, and the row groups, each with the ``stamp`` of the file.

        ``known_types`` are the types of earlier files, for formats that do not store types.
        """

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of at most ``batch_rows`` rows, each with the share of the row group read so far (0 to 1).

        ``types`` are the types of the columns to read, ``kinds`` the kinds of those that are features.
        """


def split_ending(path: FilePath) -> tuple[str, str | None]:
    """The ending that decides the format, and the compression."""
    suffixes = [s.lower() for s in path.suffixes]
    compression = COMPRESSED.get(suffixes[-1]) if suffixes else None
    return ([""] + (suffixes[:-1] if compression else suffixes))[-1], compression


def check_unique_names(path: FilePath, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        repeated = [name for name in names if names.count(name) > 1]
        raise UnreadableFile(f"{path}: column {repeated[0]!r} appears twice; rename one")


def types_by_name(path: FilePath, schema: Any) -> dict[str, Any]:
    """The Arrow type of each column of a schema."""
    check_unique_names(path, schema.names)
    return dict(zip(schema.names, schema.types, strict=True))


def check_types(path: FilePath, batch: Any, types: dict[str, Any]) -> None:
    """Check that the columns of a batch still have the types that the file was described with."""
    found = dict(zip(batch.schema.names, batch.schema.types, strict=True))
    for name, type_ in types.items():
        if found[name] != type_ and not compatible(found[name], type_):
            raise UnreadableFile(f"{path}: column {name!r} is of another type than at the start")


def numbers_of_text(column: Any) -> tuple[Any, str | None]:
    """A column of text as numbers, dates in microseconds; and a text that is neither, if there is one."""
    values, example = to_numbers_or_dates(column)
    if values is not None and pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    return values, example


def with_numbers(path: FilePath, batch: Any, texts: list[str]) -> Any:
    """A batch with these columns of text as numbers."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in texts:
        columns[name], example = numbers_of_text(columns[name])
        if example is not None:
            raise UnreadableFile(f"{path}: {not_a_number(name, example)}")
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
