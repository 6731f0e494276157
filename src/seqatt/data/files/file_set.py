"""Files as one table: their columns and types, and their row groups, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyarrow import types as of

from seqatt.data.files.encoding.column_types import compatible, describe_type, reads_text
from seqatt.data.files.errors import UnreadableFile, read_errors, report_ignored
from seqatt.data.files.formats.delimited import DelimitedFormat
from seqatt.data.files.formats.file_format import RowGroup, with_numbers
from seqatt.data.files.formats.hive import Partition, add_partition, parse_partition, partition_type
from seqatt.data.files.found_files import FoundFile, find_files, find_format, skip_file
from seqatt.data.files.options import FileOptions
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.tables.containers import Kind

BATCH_BYTES = 24 << 20  # bytes per encoded batch, within these limits:
MIN_READ_ROWS, MAX_READ_ROWS = 1 << 8, 1 << 16  # rows per batch


@dataclass(frozen=True)
class FileSet:
    """Files with the same columns: Arrow type per column name, and all row groups."""

    types: dict[str, Any]
    row_groups: tuple[RowGroup, ...]
    skipped: tuple[tuple[str, str], ...] = ()  # path and error of each unreadable file
    # Keeps a temporary folder alive while the files are used.
    owner: Any = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> int | None:
        """Rows of all files; None if some file does not store its number of rows."""
        counts = [group.rows for group in self.row_groups]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def unopened(self) -> list[dict[str, Any]]:
        """The unreadable files, as ``Selection.settings`` reports what was skipped; their rows are unknown."""
        return [{"file": path, "reason": reason, "rows": None} for path, reason in self.skipped]

    @property
    def size(self) -> int:
        return sum(group.size for group in self.row_groups)

    @property
    def count(self) -> int:
        """The number of files."""
        return len({group.path for group in self.row_groups})

    def split(self, step: int, offset: int) -> tuple[FileSet, FileSet]:
        """Rows to train on and rows to test on: every ``step``-th of each row group, from row ``offset`` on."""
        if not (step > 1 and 0 <= offset < step):
            raise ValueError(f"split: needs a step above 1 and an offset below it, got {step} and {offset}")
        if any(group.subset is not None for group in self.row_groups):
            raise ValueError("split: these files are split already; split the whole ones")
        sides = [[g.take(step, offset, others=others) for g in self.row_groups] for others in (True, False)]
        train, test = (replace(self, row_groups=tuple(g for g in side if g.rows != 0)) for side in sides)
        return train, test


def open_files(
    where: Any, argument: str = "X", options: FileOptions = FileOptions(), like: FileSet | None = None
) -> FileSet:
    """Read the schema of every file, without its rows.

    A file that lacks a column of the first file is an error, or is skipped if ``options`` say so; columns that the
    first file does not have are ignored. Folders named ``key=value`` are columns too. Columns of text files have the
    types that they have in ``like``, the training files, if these are given.
    """
    if isinstance(where, FileSet):
        return where
    known = {} if like is None else like.types
    first: dict[str, Any] = {}
    row_groups: list[RowGroup] = []
    partitions: list[Partition] = []  # of each row group
    skipped: list[tuple[str, str]] = []
    ignored: list[str] = []
    failures: list[UnreadableFile] = []
    extra: dict[str, FilePath] = {}  # columns that the first file does not have
    found = find_files(where, argument, skipped if options.skips_bad_files else None, ignored)
    # What may be prose comes last: the columns of the tables are known by then.
    for file in sorted(found, key=lambda file: file.may_be_prose):
        path = file.path
        types: dict[str, Any] = {}
        try:
            with read_errors(path):
                types, groups = _describe(file, first or known, options)
            _check_same_columns(path, types, row_groups[0].path if row_groups else path, first or types)
        except UnreadableFile as error:
            failures.append(error)
            if file.may_be_prose and not set(types) & set(first):
                ignored.append(path.name)
            elif options.skips_bad_files:
                skip_file(skipped, path, error)
            else:
                raise
            continue
        if first:
            extra |= {name: path for name in types if name not in first and name not in extra}
        empty = [name for name in first if of.is_null(first[name])]  # typed by the first file with values
        first = first | {name: types[name] for name in empty} if first else types
        row_groups += groups
        partitions += [parse_partition(file.folders)] * len(groups)
    if failures and not row_groups:
        raise failures[0]
    if not row_groups or all(group.rows == 0 for group in row_groups):
        raise UnreadableFile(f"{found[0].path if found else argument}: there are no rows")
    report_ignored(row_groups, ignored, extra, argument, options)
    # In some files, no number of the first block may have a fraction.
    decimals = [group.decimal for group in (*row_groups, *(like.row_groups if like else ())) if group.decimal]
    row_groups = [
        replace(g, decimal=decimals[0]) if decimals and g.delimiter == ";" else g for g in row_groups
    ]
    keys = {key: None for partition in partitions for key in partition if key not in first}
    first |= {key: partition_type([partition.get(key) for partition in partitions]) for key in keys}
    row_groups = [
        replace(group, partition=tuple((key, partition.get(key)) for key in keys))
        for group, partition in zip(row_groups, partitions, strict=True)
    ]
    return FileSet(first, tuple(group for group in row_groups if group.rows != 0), tuple(skipped))


def _describe(
    file: FoundFile, known_types: dict[str, Any], options: FileOptions
) -> tuple[dict[str, Any], list[RowGroup]]:
    """Column types and row groups of one file."""
    path = file.path
    stat = path.stat()
    if stat.st_size == 0:
        raise UnreadableFile(f"{path}: the file is empty")
    file_format, stamp = find_format(path), (stat.st_size, stat.st_mtime_ns)
    if not isinstance(file_format, DelimitedFormat):
        return file_format.describe(path, stamp, known_types)
    delimiter = options.delimiter
    sniff = delimiter is None and not file.may_be_prose  # prose often has as many commas in each line
    stated = DelimitedFormat(delimiter or file_format.delimiter, sniff, options.decimal)
    types, groups = stated.describe(path, stamp, known_types)
    return types, [replace(group, delimiter=delimiter or group.delimiter) for group in groups]


def _check_same_columns(
    path: FilePath, types: dict[str, Any], other: FilePath, first: dict[str, Any]
) -> None:
    for name, type_ in first.items():
        if name not in types:
            raise UnreadableFile(f"{path}: column {name!r} is missing, which {other} has")
        if not compatible(types[name], type_):
            raise UnreadableFile(
                f"{path}: column {name!r} holds {describe_type(types[name])}, but {describe_type(type_)} in {other}"
            )


def read_row_group(
    row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], row_bytes: int | None = None
) -> Iterator[tuple[Any, float]]:
    """Batches of the columns in ``types``, each with the share of the row group read so far (0 to 1).

    ``row_bytes`` are the bytes per encoded row, by default 4 per column.
    """
    batch_rows = min(max(BATCH_BYTES // (row_bytes or 4 * len(types)), MIN_READ_ROWS), MAX_READ_ROWS)
    partition = dict(row_group.partition)
    texts = [name for name, kind in kinds.items() if name in types and reads_text(types[name], kind)]
    in_file = {name: type_ for name, type_ in types.items() if name not in partition}
    with read_errors(row_group.path):
        _check_unchanged(row_group)
        batches = find_format(row_group.path).read(row_group, in_file, kinds, batch_rows)
        if row_group.subset is not None:
            batches = row_group.subset.read(batches)
        for batch, share in batches:
            if len(in_file) < len(types):
                batch = add_partition(batch, partition, types)
            yield with_numbers(row_group.path, batch, texts) if texts else batch, share


def _check_unchanged(row_group: RowGroup) -> None:
    """Check the stamp of a local file; for a remote file this would be one more request per row group."""
    if isinstance(row_group.path, RemoteFile):
        return
    stat = row_group.path.stat()
    if (stat.st_size, stat.st_mtime_ns) != row_group.stamp:
        raise UnreadableFile(
            f"{row_group.path}: has changed since the start; do not change files while they are read"
        )
