"""Remote files by URL: ``s3://``, ``gs://``, ``hf://``, ``memory://`` and every other protocol of fsspec.

pyarrow's own filesystems are preferred, since they release Python's global interpreter lock while reading.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from seqatt.data.files.errors import UnreadableFile

NATIVE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # protocols of pyarrow's own filesystems


class Stat(NamedTuple):
    """Size in bytes and modification time in nanoseconds, named as in ``os.stat_result``."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemoteFile:
    """A remote file with those methods of ``Path`` that readers use. Files are equal if their URLs are."""

    url: str
    path: str = field(compare=False)
    filesystem: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def parent(self) -> PurePosixPath:
        return PurePosixPath(self.path).parent

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.path).suffixes

    def stat(self) -> Stat:
        info = self.filesystem.get_file_info(self.path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(self.url)
        return Stat(info.size, info.mtime_ns or 0)

    def open(self) -> Any:
        return self.filesystem.open_input_file(self.path)


FilePath = Path | RemoteFile


def is_url(name: str) -> bool:
    return re.match(r"[a-zA-Z][\w+.:-]+://", name) is not None


def local_path(url: str) -> str | None:
    """The path of a ``file://`` URL; None for all other URLs."""
    return unquote(urlsplit(url).path) if url.startswith("file://") else None


def find_urls(
    url: str, is_table: Callable[[RemoteFile, tuple[str, ...]], bool], argument: str
) -> tuple[list[RemoteFile], str]:
    """The file at ``url``, all tables in a folder, or all files that match a pattern, sorted.

    The second value is the folder, "" if it is none.
    """
    filesystem, path = _filesystem(url)
    protocol = url[: url.index("://") + 3]

    def remote_file(info: Any) -> RemoteFile:
        return RemoteFile(protocol + info.path.lstrip("/"), info.path, filesystem)

    try:
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return [remote_file(info)], ""
        if info.type == fs.FileType.Directory:
            found = [
                (remote_file(i), PurePosixPath(i.path).relative_to(path).parts)
                for i in _list_files(filesystem, path)
            ]
            tables = [file for file, names in found if is_table(file, names)]
            if not tables:
                raise UnreadableFile(f"{argument}: no file in {url} has the ending of a table")
        elif glob.has_magic(path):
            patterns = path.split("/")
            folder = "/".join(takewhile(lambda name: not glob.has_magic(name), patterns))
            files = _list_files(filesystem, folder)
            tables = [remote_file(i) for i in files if _matches(i.path.split("/"), patterns)]
        else:
            raise UnreadableFile(f"{url}: no such file or folder")
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{url}: cannot be reached ({_one_line(error)})") from None
    if not tables:
        raise UnreadableFile(f"{url}: no file matches the pattern")
    return sorted(tables, key=str), path if info.type == fs.FileType.Directory else ""


def _list_files(filesystem: Any, folder: str) -> list[Any]:
    """All files below a folder in one recursive listing, which on S3 is one request per 1,000 files."""
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    return [info for info in filesystem.get_file_info(selector) if info.type == fs.FileType.File]


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the components of a path match those of a pattern, as in ``glob.glob(..., recursive=True)``."""
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_matches(names[i:], patterns[1:]) for i in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def _filesystem(url: str) -> tuple[Any, str]:
    """The pyarrow filesystem of a URL, and the path in it."""
    try:
        if url.partition("://")[0] in NATIVE:
            filesystem, path = fs.FileSystem.from_uri(url)
            return filesystem, path
        import fsspec

        handler, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(handler)), path
    except ImportError as error:
        raise UnreadableFile(
            f"{url}: a package for such URLs is missing ({_one_line(error)}); install it beside "
            "fsspec, which comes with pip install 'seqatt[remote]'"
        ) from None
    except (ValueError, pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{url}: cannot be reached ({_one_line(error)})") from None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
