"""Files that lie elsewhere, by URL: ``s3://``, ``gs://``, ``hf://``, ``memory://`` and whatever fsspec knows.

pyarrow's own filesystems come first, since they read without holding the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from seqatt.data.tables.whole_file import UnreadableFile

NATIVE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # that pyarrow reads by itself
MAGIC = re.compile(r"[*\[]|\?")


class Stat(NamedTuple):
    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemoteFile:
    """A file elsewhere, in the words of ``Path`` as far as readers use them. Two are one if their URL is."""

    url: str
    path: str = field(compare=False)
    filesystem: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

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


def is_url(named: str) -> bool:
    return re.match(r"[a-zA-Z][\w+.:-]+://", named) is not None


def local_path(url: str) -> str | None:
    """The path that a ``file://`` URL means; None for all others."""
    return unquote(urlsplit(url).path) if url.startswith("file://") else None


def find_urls(
    url: str, is_table: Callable[[RemoteFile, tuple[str, ...]], bool], argument: str
) -> list[RemoteFile]:
    """The file, those in the folder that hold tables, or those that match the pattern, sorted."""
    filesystem, path = _filesystem(url)
    start = url[: url.index("://") + 3]

    def made(info: Any) -> RemoteFile:
        return RemoteFile(start + info.path.lstrip("/"), info.path, filesystem)

    try:
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return [made(info)]
        if info.type == fs.FileType.Directory:
            found = [
                (made(i), PurePosixPath(i.path).relative_to(path).parts) for i in _below(filesystem, path)
            ]
            tables = [file for file, inside in found if is_table(file, inside)]
            if not tables:
                raise UnreadableFile(f"{argument}: no file in {url} has the ending of a table")
        elif MAGIC.search(path):
            base = path[: MAGIC.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
            pattern = _pattern(path, url)
            tables = [made(i) for i in _below(filesystem, base) if pattern.fullmatch(i.path)]
        else:
            raise UnreadableFile(f"{url}: no such file or folder")
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{url}: cannot be reached ({_line(error)})") from None
    if not tables:
        raise UnreadableFile(f"{url}: no file matches the pattern")
    return sorted(tables, key=str)


def _below(filesystem: Any, folder: str) -> list[Any]:
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    return [info for info in filesystem.get_file_info(selector) if info.type == fs.FileType.File]


def _pattern(path: str, url: str) -> re.Pattern[str]:
    """As ``glob`` has it: ``*`` stays within a folder, ``**/`` goes through any number of them."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    found = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]]+\])", path)
    parts = [
        words.get(w) or (_letters(w[1:-1]) if re.fullmatch(r"\[.+\]", w) else re.escape(w)) for w in found
    ]
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise UnreadableFile(
            f"{url}: is no pattern ({error}); letters in [] go from the lower to the higher"
        ) from None


def _letters(inside: str) -> str:
    """What stands between brackets: ``!`` first is "none of these", only ``-`` means more than itself."""
    other = inside[:1] == "!" and len(inside) > 1
    plain = "".join(c if c == "-" else re.escape(c) for c in inside[other:])
    return f"[^/{plain}]" if other else f"[{plain}]"


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        if url.partition("://")[0] in NATIVE:
            filesystem, path = fs.FileSystem.from_uri(url)
            return filesystem, path
        import fsspec

        elsewhere, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(elsewhere)), path
    except ImportError as error:
        raise UnreadableFile(
            f"{url}: a package for such addresses is missing ({_line(error)}); install it beside "
            "fsspec, which comes with pip install 'seqatt[remote]'"
        ) from None
    except (ValueError, pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{url}: cannot be reached ({_line(error)})") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
