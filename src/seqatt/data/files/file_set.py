"""Which files: a path, a pattern, a folder, a URL or a list of them, and the parts they are read in."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyarrow import types as of

from seqatt.data.files import arrow_ipc as ipc
from seqatt.data.files import delimited as text
from seqatt.data.files.column_types import compatible, describe_type, reading_type
from seqatt.data.files.errors import SkippedData, read_errors
from seqatt.data.files.remote import FilePath, RemoteFile, find_urls, is_url, local_path
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.whole_file import ARROW, COMPRESSED, PARQUET, TEXT, UnreadableFile

CELLS, FEWEST, MOST = 1 << 22, 1 << 12, 1 << 16  # values, and rows at least and at most, read at a time


@dataclass(frozen=True)
class RowGroup:
    """What is read in one go and in order: a row group of a Parquet file, or a whole other file.

    ``rows`` is None where the file does not say; ``size`` is in bytes, as they lie on the disk. ``stamp`` is
    the size and the time of the whole file, by which one that was replaced is noticed.
    """

    path: FilePath
    group: int | None
    rows: int | None
    size: int
    stamp: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class FileSet:
    """Files of one make: the types of their columns, by name, and the parts."""

    types: dict[str, Any]
    parts: tuple[RowGroup, ...]
    bad: tuple[tuple[str, str], ...] = ()  # files left out, and why

    @property
    def rows(self) -> int | None:
        """All of them, where every file says how many it has."""
        counts = [part.rows for part in self.parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


def find_files(where: Any, argument: str = "X") -> list[FilePath]:
    """Every file that is meant, once, sorted within each thing that was named."""
    return _find(where, argument, None)


def _find(where: Any, argument: str, bad: list[tuple[str, str]] | None) -> list[FilePath]:
    """What cannot be found is an error, or is noted in ``bad``."""
    found: list[FilePath] = []
    for each in where if isinstance(where, list | tuple) else [where]:
        try:
            found += _expand(os.fspath(each), argument)
        except UnreadableFile as error:
            if bad is None:
                raise
            _leave_out(bad, each, error)
    return _once(found)


def _leave_out(bad: list[tuple[str, str]], path: Any, error: UnreadableFile) -> None:
    bad.append((str(path), str(error)))
    warnings.warn(f"{error}; the whole file was skipped", SkippedData, stacklevel=3)


def _once(paths: Iterable[FilePath]) -> list[FilePath]:
    """One file may have been named by several paths; the first of them stays."""
    found: dict[FilePath, FilePath] = {}
    for path in paths:
        found.setdefault(path if isinstance(path, RemoteFile) else path.resolve(), path)
    return list(found.values())


def _expand(named: str, argument: str) -> Sequence[FilePath]:
    if not named:
        raise ValueError(f"{argument}: an empty name is no file; name a file, a folder, a pattern or a URL")
    if is_url(named):
        here = local_path(named)
        if here is None:
            return find_urls(named, _is_table, argument)
        named = here
    path = Path(named)
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and _is_table(p, p.relative_to(path).parts))
        if not inside:
            known = ", ".join([*PARQUET, *TEXT, *ARROW])
            raise UnreadableFile(f"{argument}: no file in {path} ends in one of {known}")
        return inside
    if path.exists():
        return [path]
    matched = sorted(Path(p) for p in glob.glob(named, recursive=True) if Path(p).is_file())
    if not matched:
        what = "no file matches the pattern" if glob.has_magic(named) else "no such file or folder"
        raise UnreadableFile(f"{named}: {what}")
    return matched


def _is_table(path: FilePath, names: tuple[str, ...]) -> bool:
    """By its ending, and not hidden: engines leave ``_SUCCESS``, ``.crc`` and the like beside tables."""
    hidden = any(name.startswith((".", "_")) for name in names)
    return not hidden and _ending(path)[0] in (*PARQUET, *TEXT, *ARROW)


def _ending(path: FilePath) -> tuple[str, str | None]:
    suffixes = [s.lower() for s in path.suffixes]
    compression = COMPRESSED.get(suffixes[-1]) if suffixes else None
    return ([""] + (suffixes[:-1] if compression else suffixes))[-1], compression


def open_files(where: Any, argument: str = "X", *, skip: bool = False) -> FileSet:
    """Look at every file's own description; a file of another make is named and refused, or left out."""
    first: dict[str, Any] = {}
    parts: list[RowGroup] = []
    bad: list[tuple[str, str]] = []
    paths = _find(where, argument, bad if skip else None)
    for path in paths:
        try:
            with read_errors(path):
                types, its = _describe(path, first)
            _insist_on_same(path, types, parts[0].path if parts else path, first or types)
        except UnreadableFile as error:
            if not skip:
                raise
            _leave_out(bad, path, error)
            continue
        unknown = [name for name, kind in first.items() if of.is_null(kind)]  # until a file has values there
        first = first | {name: types[name] for name in unknown} if first else types
        parts += its
    if bad and not parts:
        raise UnreadableFile(bad[0][1])
    if not parts or all(part.rows == 0 for part in parts):
        raise UnreadableFile(f"{paths[0]}: there are no rows")
    return FileSet(first, tuple(part for part in parts if part.rows != 0), tuple(bad))


def _describe(path: FilePath, first: dict[str, Any]) -> tuple[dict[str, Any], list[RowGroup]]:
    ending, compression = _ending(path)
    now = path.stat()
    size, stamp = now.st_size, (now.st_size, now.st_mtime_ns)
    if size == 0:
        raise UnreadableFile(f"{path}: the file is empty")
    if ending in TEXT:
        return text.describe(path, TEXT[ending], compression, first), [
            RowGroup(path, None, None, size, stamp)
        ]
    if ending not in (*PARQUET, *ARROW) or compression:
        known = ", ".join([*PARQUET, *ARROW, *TEXT])
        raise UnreadableFile(
            f"{path}: cannot be read a part at a time; use one of {known} (text may be compressed)"
        )
    if ending in ARROW:
        schema, rows = ipc.describe(path)
        return _types(path, schema), [RowGroup(path, None, rows, size, stamp)]
    with _parquet(path) as file:
        groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
        sizes = [group.total_byte_size for group in groups]
        return _types(path, file.schema_arrow), [
            RowGroup(path, g, group.num_rows, sizes[g], stamp) for g, group in enumerate(groups)
        ]


def _parquet(path: FilePath, **how: Any) -> Any:
    """What lies elsewhere is fetched in few large reads."""
    if isinstance(path, RemoteFile):
        return pq.ParquetFile(path.path, filesystem=path.filesystem, pre_buffer=True, **how)
    return pq.ParquetFile(path, **how)


def _types(path: FilePath, schema: Any) -> dict[str, Any]:
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{path}: column {twice[0]!r} stands twice; rename one")
    return dict(zip(schema.names, schema.types, strict=True))


def _insist_on_same(path: FilePath, types: dict[str, Any], other: FilePath, first: dict[str, Any]) -> None:
    for name, kind in first.items():
        if name not in types:
            raise UnreadableFile(f"{path}: column {name!r} is missing, which {other} has")
        if not compatible(types[name], kind):
            raise UnreadableFile(
                f"{path}: column {name!r} holds {describe_type(types[name])}, but {describe_type(kind)} in {other}"
            )


def read_row_group(
    part: RowGroup, types: dict[str, Any], kinds: dict[str, Kind]
) -> Iterator[tuple[Any, float]]:
    """Some columns, a few rows at a time, and how much of the part has been read by then (0 to 1)."""
    ending, compression = _ending(part.path)
    rows = min(max(CELLS // len(types), FEWEST), MOST)
    with read_errors(part.path):
        _insist_on_unchanged(part)
        if ending in TEXT:
            types = {name: reading_type(type_, kinds.get(name)) for name, type_ in types.items()}
            batches = text.read(part.path, TEXT[ending], compression, types, rows)
        elif ending in ARROW:
            batches = ipc.read(part.path, list(types), rows)
        else:
            batches = _row_group(part, types, rows)
        for batch, share in batches:
            for name in types:
                if not compatible(batch.schema.field(name).type, types[name]):
                    raise UnreadableFile(f"{part.path}: column {name!r} is of another type than at the start")
            yield batch, share


def _insist_on_unchanged(part: RowGroup) -> None:
    """Where the system says so at once; of a file elsewhere that would be one more request a part."""
    if isinstance(part.path, RemoteFile):
        return
    now = part.path.stat()
    if (now.st_size, now.st_mtime_ns) != part.stamp:
        raise UnreadableFile(
            f"{part.path}: has changed since the start; leave files alone while they are read"
        )


def _row_group(part: RowGroup, types: dict[str, Any], at_once: int) -> Iterator[tuple[Any, float]]:
    rows, group = 0, part.group or 0
    # Text comes as the file has it, codes and a list of the words: each word is then looked at once.
    describe_type = [
        name for name, type_ in types.items() if of.is_string(type_) or of.is_large_string(type_)
    ]
    with _parquet(part.path, read_dictionary=describe_type, page_checksum_verification=True) as file:
        about = file.metadata
        now = about.row_group(group).num_rows if group < about.num_row_groups else 0
        if now != part.rows:
            raise UnreadableFile(f"{part.path}: has {now:,} rows where it had {part.rows:,}: it has changed")
        for batch in file.iter_batches(
            batch_size=at_once, row_groups=[group], columns=list(types), use_threads=False
        ):
            rows += batch.num_rows
            yield batch, rows / max(1, now)
