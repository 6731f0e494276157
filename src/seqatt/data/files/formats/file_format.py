"""What every file format provides: column types and row groups of a file, and the batches of a row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from seqatt.data.files.column_types import compatible
from seqatt.data.files.remote import FilePath
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.whole_file import COMPRESSED, UnreadableFile


@dataclass(frozen=True)
class RowGroup:
    """The unit of reading: row group number ``group`` of a Parquet file, or a whole file of another format.

    ``rows`` is None if the file does not store it (text); ``size`` is in bytes. ``stamp`` is the size in bytes
    and the modification time in nanoseconds of the whole file; a file that has changed has another stamp.
    """

    path: FilePath
    group: int | None
    rows: int | None
    size: int
    stamp: tuple[int, int] = (0, 0)


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
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise UnreadableFile(f"{path}: column {repeated[0]!r} appears twice; rename one")


def types_by_name(path: FilePath, schema: Any) -> dict[str, Any]:
    """The Arrow type of each column of a schema."""
    check_unique_names(path, schema.names)
    return dict(zip(schema.names, schema.types, strict=True))


def check_types(path: FilePath, batch: Any, types: dict[str, Any]) -> None:
    """Check that the columns of a batch still have the types that the file was described with."""
    for name in types:
        if not compatible(batch.schema.field(name).type, types[name]):
            raise UnreadableFile(f"{path}: column {name!r} is of another type than at the start")
