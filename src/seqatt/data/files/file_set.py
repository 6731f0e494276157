"""Finds files by path, pattern, folder, URL or list of these, and divides them into row groups."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pyarrow import types as of

from seqatt.data.files.encoding.column_types import compatible, describe_type, reads_text
from seqatt.data.files.errors import SkippedData, UnreadableFile, read_errors, report_ignored
from seqatt.data.files.formats.arrow_ipc import ArrowFormat
from seqatt.data.files.formats.delimited import DelimitedFormat
from seqatt.data.files.formats.file_format import FileFormat, RowGroup, split_ending, with_numbers
from seqatt.data.files.formats.fragment import FragmentFile, FragmentFormat
from seqatt.data.files.formats.hive import Partition, add_partition, parse_partition, partition_type
from seqatt.data.files.formats.iterable import BatchSource, IterableFormat
from seqatt.data.files.formats.parquet import ParquetFormat
from seqatt.data.files.options import FileOptions
from seqatt.data.files.remote import FilePath, RemoteFile, find_urls, is_url, local_path
from seqatt.data.tables.containers import Kind

# The format of each file ending: a new format is one module in ``formats`` and one row here.
FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".parquet", ".pq"), ParquetFormat()),
    ".csv": DelimitedFormat(","),
    **dict.fromkeys((".tsv", ".tab", ".txt"), DelimitedFormat("\t")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ArrowFormat()),
}
BATCH_BYTES = 24 << 20  # bytes per encoded batch, within these limits:
MIN_READ_ROWS, MAX_READ_ROWS = 1 << 8, 1 << 16  # rows per batch
STANDARD_INPUT = ("-", "/dev/stdin")


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


class FoundFile(NamedTuple):
    """A file; the folders above it that may be partitions; whether it was found by listing a folder."""

    path: FilePath
    folders: tuple[str, ...]
    listed: bool = False

    @property
    def may_be_prose(self) -> bool:
        """Whether this may be a README beside the data."""
        return self.listed and split_ending(self.path)[0] == ".txt"


def find_files(
    where: Any, argument: str, skipped: list[tuple[str, str]] | None, ignored: list[str]
) -> list[FoundFile]:
    """Every file that ``where`` names, once; files of one folder or pattern are sorted.

    What cannot be found is an error if ``skipped`` is None; otherwise it is appended there. Files of folders that are
    no tables are appended to ``ignored``.
    """
    found: list[FoundFile] = []
    for name in where if isinstance(where, list | tuple) else [where]:
        try:
            found += _expand(os.fspath(name), argument, ignored)
        except UnreadableFile as error:
            if skipped is None:
                raise
            _skip(skipped, name, error)
    return _unique(found)


def _skip(skipped: list[tuple[str, str]], path: Any, error: UnreadableFile) -> None:
    skipped.append((str(path), str(error)))
    warnings.warn(f"{error}; the whole file was skipped", SkippedData, stacklevel=3)


def _unique(files: Iterable[FoundFile]) -> list[FoundFile]:
    """Each file once, by the first of the paths that lead to it."""
    unique: dict[FilePath, FoundFile] = {}
    for file in files:
        path = file.path
        unique.setdefault(path if isinstance(path, RemoteFile) else path.resolve(), file)
    return list(unique.values())


def _expand(name: str, argument: str, ignored: list[str]) -> list[FoundFile]:
    if not name:
        raise ValueError(f"{argument}: an empty name is no file; name a file, a folder, a pattern or a URL")

    def is_table(path: FilePath, names: tuple[str, ...]) -> bool:
        """Whether the ending is that of a table and no name starts with ``.`` or ``_``, as ``_SUCCESS`` files do."""
        hidden = any(part.startswith((".", "_")) for part in names)
        if hidden or split_ending(path)[0] not in FORMATS:
            ignored.append("/".join(names))
            return False
        return True

    if is_url(name):
        local = local_path(name)
        if local is None:
            files, folder = find_urls(name, is_table, argument)
            return [
                FoundFile(f, PurePosixPath(f.path[len(folder) :]).parts[:-1], bool(folder)) for f in files
            ]
        name = local
    path = Path(name)
    if path.is_dir():
        inside = [(p, p.relative_to(path).parts) for p in sorted(path.rglob("*")) if p.is_file()]
        tables = [FoundFile(p, names[:-1], True) for p, names in inside if is_table(p, names)]
        if not tables:
            raise UnreadableFile(f"{argument}: no file in {path} ends in one of {', '.join(FORMATS)}")
        return tables
    if name in STANDARD_INPUT or (path.exists() and not path.is_file()):
        what = "standard input" if name in STANDARD_INPUT else "a pipe or a device"
        raise UnreadableFile(
            f"{name}: {what} cannot be read, because files are read several times; write it to a file first"
        )
    if path.exists():
        return [FoundFile(path, path.parts[:-1])]
    matched = sorted(Path(p) for p in glob.glob(name, recursive=True) if Path(p).is_file())
    if not matched:
        problem = "no file matches the pattern" if glob.has_magic(name) else "no such file or folder"
        raise UnreadableFile(f"{name}: {problem}")
    return [FoundFile(p, p.parts[:-1]) for p in matched]


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
                _skip(skipped, path, error)
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
    file_format, stamp = _find_format(path), (stat.st_size, stat.st_mtime_ns)
    if not isinstance(file_format, DelimitedFormat):
        return file_format.describe(path, stamp, known_types)
    delimiter = options.delimiter
    sniff = delimiter is None and not file.may_be_prose  # prose often has as many commas in each line
    stated = DelimitedFormat(delimiter or file_format.delimiter, sniff, options.decimal)
    types, groups = stated.describe(path, stamp, known_types)
    return types, [replace(group, delimiter=delimiter or group.delimiter) for group in groups]


def _find_format(path: FilePath) -> FileFormat:
    if isinstance(path, BatchSource):
        return IterableFormat()
    if isinstance(path, FragmentFile):
        return FragmentFormat()
    ending, compression = split_ending(path)
    file_format = FORMATS.get(ending)
    if file_format is None or (compression and not file_format.compressible):
        known = ", ".join(sorted(FORMATS, key=lambda ending: FORMATS[ending].compressible))
        raise UnreadableFile(
            f"{path}: cannot be read in batches; use one of {known} (text may be compressed)"
        )
    return file_format


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
        batches = _find_format(row_group.path).read(row_group, in_file, kinds, batch_rows)
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
