"""Finds files by path, pattern, folder, URL or list of these, and the format of each."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from seqatt.data.files.errors import SkippedData, UnreadableFile
from seqatt.data.files.formats.arrow_ipc import ArrowFormat
from seqatt.data.files.formats.delimited import DelimitedFormat
from seqatt.data.files.formats.file_format import FileFormat, split_ending
from seqatt.data.files.formats.fragment import FragmentFile, FragmentFormat
from seqatt.data.files.formats.iterable import BatchSource, IterableFormat
from seqatt.data.files.formats.parquet import ParquetFormat
from seqatt.data.files.remote import FilePath, RemoteFile, find_urls, is_url, local_path

# The format of each file ending: a new format is one module in ``formats`` and one row here.
FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".parquet", ".pq"), ParquetFormat()),
    ".csv": DelimitedFormat(","),
    **dict.fromkeys((".tsv", ".tab", ".txt"), DelimitedFormat("\t")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ArrowFormat()),
}
# What other files are, by their ending, and what to do with them.
ARCHIVE = "is an archive; unpack it, and name the files in it"
SHEET = "is a spreadsheet; save the sheet as CSV, or pass pandas.read_excel({name!r}) in Python"
JSON = "is JSON; save it as Parquet, or pass pandas.read_json({name!r}{lines}) in Python"
OTHER_ENDINGS = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), ARCHIVE),
    **dict.fromkeys((".xz", ".lzma"), "is compressed by xz; decompress it with xz -d"),
    ".z": "is compressed; decompress it with gzip -d",
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), SHEET),
    ".json": JSON.replace("{lines}", ""),
    **dict.fromkeys((".jsonl", ".ndjson"), JSON.replace("{lines}", ", lines=True")),
}
STANDARD_INPUT = ("-", "/dev/stdin")


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
            skip_file(skipped, name, error)
    return _unique(found)


def skip_file(skipped: list[tuple[str, str]], path: Any, error: UnreadableFile) -> None:
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
            remedies = (f"; {p.relative_to(path)} {what}" for p, _ in inside if (what := _what_to_do(p)))
            raise UnreadableFile(
                f"{argument}: no file in {path} ends in one of {', '.join(FORMATS)}{next(remedies, '')}"
            )
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


def find_format(path: FilePath) -> FileFormat:
    if isinstance(path, BatchSource):
        return IterableFormat()
    if isinstance(path, FragmentFile):
        return FragmentFormat()
    ending, compression = split_ending(path)
    file_format = FORMATS.get(ending)
    if file_format is None or (compression and not file_format.compressible):
        known = ", ".join(sorted(FORMATS, key=lambda ending: FORMATS[ending].compressible))
        other = f"its ending is not that of a table; use one of {known} (text may be compressed)"
        raise UnreadableFile(f"{path}: {_what_to_do(path) or other}")
    return file_format


def _what_to_do(path: FilePath) -> str:
    """The kind of a file that is not read, and the remedy; empty where the ending does not tell."""
    return OTHER_ENDINGS.get(split_ending(path)[0], "").format(name=path.name)
