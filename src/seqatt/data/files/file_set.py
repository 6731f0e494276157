"""Finds files by path, pattern, folder, URL or list of these, and divides them into row groups."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import types as of

from seqatt.data.files.column_types import compatible, describe_type
from seqatt.data.files.errors import SkippedData, read_errors
from seqatt.data.files.formats.file_format import FileFormat, RowGroup, split_ending
from seqatt.data.files.formats.registry import FORMATS
from seqatt.data.files.remote import FilePath, RemoteFile, find_urls, is_url, local_path
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.whole_file import UnreadableFile

BATCH_CELLS = 1 << 22  # cells per batch that is read, within these limits:
MIN_READ_ROWS, MAX_READ_ROWS = 1 << 12, 1 << 16  # rows per batch


@dataclass(frozen=True)
class FileSet:
    """Files with the same columns: Arrow type per column name, and all row groups."""

    types: dict[str, Any]
    row_groups: tuple[RowGroup, ...]
    skipped: tuple[tuple[str, str], ...] = ()  # path and error of each unreadable file

    @property
    def rows(self) -> int | None:
        """Rows of all files; None if some file does not store its number of rows."""
        counts = [group.rows for group in self.row_groups]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def size(self) -> int:
        return sum(group.size for group in self.row_groups)


def find_files(where: Any, argument: str = "X") -> list[FilePath]:
    """Every file that ``where`` names, once; files of one folder or pattern are sorted."""
    return _find(where, argument, None)


def _find(where: Any, argument: str, skipped: list[tuple[str, str]] | None) -> list[FilePath]:
    """What cannot be found is an error if ``skipped`` is None; otherwise it is appended there."""
    found: list[FilePath] = []
    for each in where if isinstance(where, list | tuple) else [where]:
        try:
            found += _expand(os.fspath(each), argument)
        except UnreadableFile as error:
            if skipped is None:
                raise
            _skip(skipped, each, error)
    return _unique(found)


def _skip(skipped: list[tuple[str, str]], path: Any, error: UnreadableFile) -> None:
    skipped.append((str(path), str(error)))
    warnings.warn(f"{error}; the whole file was skipped", SkippedData, stacklevel=3)


def _unique(paths: Iterable[FilePath]) -> list[FilePath]:
    """Each file once, by the first of the paths that lead to it."""
    found: dict[FilePath, FilePath] = {}
    for path in paths:
        found.setdefault(path if isinstance(path, RemoteFile) else path.resolve(), path)
    return list(found.values())


def _expand(name: str, argument: str) -> Sequence[FilePath]:
    if not name:
        raise ValueError(f"{argument}: an empty name is no file; name a file, a folder, a pattern or a URL")
    if is_url(name):
        local = local_path(name)
        if local is None:
            return find_urls(name, _is_table, argument)
        name = local
    path = Path(name)
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and _is_table(p, p.relative_to(path).parts))
        if not inside:
            raise UnreadableFile(f"{argument}: no file in {path} ends in one of {', '.join(FORMATS)}")
        return inside
    if path.exists():
        return [path]
    matched = sorted(Path(p) for p in glob.glob(name, recursive=True) if Path(p).is_file())
    if not matched:
        problem = "no file matches the pattern" if glob.has_magic(name) else "no such file or folder"
        raise UnreadableFile(f"{name}: {problem}")
    return matched


def _is_table(path: FilePath, names: tuple[str, ...]) -> bool:
    """Whether the ending is that of a table and no name starts with ``.`` or ``_``, as ``_SUCCESS`` files do."""
    hidden = any(name.startswith((".", "_")) for name in names)
    return not hidden and split_ending(path)[0] in FORMATS


def open_files(where: Any, argument: str = "X", *, skip: bool = False) -> FileSet:
    """Read the schema of every file, without its rows.

    A file whose columns differ from those of the first file is an error, or is skipped with ``skip``.
    """
    first: dict[str, Any] = {}
    row_groups: list[RowGroup] = []
    skipped: list[tuple[str, str]] = []
    paths = _find(where, argument, skipped if skip else None)
    for path in paths:
        try:
            with read_errors(path):
                types, groups = _describe(path, first)
            _check_same_columns(path, types, row_groups[0].path if row_groups else path, first or types)
        except UnreadableFile as error:
            if not skip:
                raise
            _skip(skipped, path, error)
            continue
        empty = [
            name for name, type_ in first.items() if of.is_null(type_)
        ]  # typed by the first file with values
        first = first | {name: types[name] for name in empty} if first else types
        row_groups += groups
    if skipped and not row_groups:
        raise UnreadableFile(skipped[0][1])
    if not row_groups or all(group.rows == 0 for group in row_groups):
        raise UnreadableFile(f"{paths[0]}: there are no rows")
    return FileSet(first, tuple(group for group in row_groups if group.rows != 0), tuple(skipped))


def _describe(path: FilePath, known_types: dict[str, Any]) -> tuple[dict[str, Any], list[RowGroup]]:
    """Column types and row groups of one file."""
    stat = path.stat()
    if stat.st_size == 0:
        raise UnreadableFile(f"{path}: the file is empty")
    return _find_format(path).describe(path, (stat.st_size, stat.st_mtime_ns), known_types)


def _find_format(path: FilePath) -> FileFormat:
    ending, compression = split_ending(path)
    file_format = FORMATS.get(ending)
    if file_format is None or (compression and not file_format.compressible):
        known = ", ".join(sorted(FORMATS, key=lambda each: FORMATS[each].compressible))
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
    row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind]
) -> Iterator[tuple[Any, float]]:
    """Batches of the columns in ``types``, each with the share of the row group read so far (0 to 1)."""
    batch_rows = min(max(BATCH_CELLS // len(types), MIN_READ_ROWS), MAX_READ_ROWS)
    with read_errors(row_group.path):
        _check_unchanged(row_group)
        yield from _find_format(row_group.path).read(row_group, types, kinds, batch_rows)


def _check_unchanged(row_group: RowGroup) -> None:
    """Check the stamp of a local file; for a remote file this would be one more request per row group."""
    if isinstance(row_group.path, RemoteFile):
        return
    stat = row_group.path.stat()
    if (stat.st_size, stat.st_mtime_ns) != row_group.stamp:
        raise UnreadableFile(
            f"{row_group.path}: has changed since the start; do not change files while they are read"
        )
