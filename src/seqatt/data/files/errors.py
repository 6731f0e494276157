"""Turns errors of a file reader into errors of one sentence that name the file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seqatt.validation import name_some

if TYPE_CHECKING:
    from seqatt.data.files.options import FileOptions
    from seqatt.data.files.remote import FilePath

LISTED = 8  # names in a warning
# The first bytes of files that are no text, what they are, and what to do.
FIRST_BYTES = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet and no text; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet and no text; save the sheet as CSV",
    b"\x1f\x8b": "compressed by gzip; name it {name}.gz",
    b"BZh91AY&SY": "compressed by bzip2; name it {name}.bz2",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; name it {name}.zst",
    b"\xfd7zXZ": "compressed by xz; decompress it with xz -d",
    b"PAR1\x15": "Parquet and no text; name it with the ending .parquet",
}


class UnreadableFile(ValueError):
    """A file that does not exist, is not a table or is damaged; the message is one sentence that names it."""


class SkippedData(UserWarning):
    """Warning: some rows could not be read, and the run continued without them."""


class IgnoredFiles(UserWarning):
    """Warning: a folder has files, or a file has columns, that are no part of the data."""


def warn_skipped(reason: str, rows: Sequence[int | None]) -> None:
    """Warn about one file; ``rows`` are the rows skipped in each of its row groups, None if their number is unknown."""
    lost = "an unknown number of" if None in rows else f"{sum(count or 0 for count in rows):,}"
    warnings.warn(f"{reason}; {lost} rows were skipped", SkippedData, stacklevel=3)


@contextmanager
def read_errors(path: FilePath) -> Iterator[None]:
    """Raise every reading error inside the block as ``UnreadableFile``."""
    try:
        yield
    except UnreadableFile:
        raise
    except FileNotFoundError:
        raise UnreadableFile(f"{path}: the file is no longer there") from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(_not_utf8(path, error.object)) from None
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        if "invalid UTF8" in reason:
            raise UnreadableFile(_not_utf8(path)) from None
        raise UnreadableFile(f"{path}: cannot be read as a table ({reason}){_remedy(reason)}") from None


def refuse_binary(path: FilePath, block: bytes) -> None:
    """Refuse a file that is no text in spite of its ending, by its first bytes."""
    for start, what in FIRST_BYTES.items():
        if block.startswith(start):
            raise UnreadableFile(f"{path}: is {what.format(name=path.name)}")


def _not_utf8(path: FilePath, text: bytes = b"") -> str:
    """The message about text in another encoding; that of Western Europe is the most frequent one."""
    encoding = "UTF-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"
    return (
        f"{path}: the text is not UTF-8; save it as UTF-8, or convert it, for example from {encoding} with "
        f"iconv -f {encoding} -t UTF-8 {path.name} > utf8.csv"
    )


def _remedy(reason: str) -> str:
    if "conversion error" not in reason:
        return ""
    return "; if that column is text, pass column_types={name: 'categorical'}"


def report_ignored(
    row_groups: Sequence[Any],
    ignored: list[str],
    extra: dict[str, FilePath],
    argument: str,
    options: FileOptions,
) -> None:
    """Warn, once each, about files that are no tables, ignored columns, and a delimiter or a decimal comma that was
    guessed, because the user stated none."""
    if ignored:
        warnings.warn(
            f"{argument}: files that are no tables were left out: {_some(ignored)}",
            IgnoredFiles,
            stacklevel=3,
        )
    if extra:
        path = next(iter(extra.values()))
        warnings.warn(
            f"{path}: columns that {row_groups[0].path} does not have are ignored: {_some(list(extra))}",
            IgnoredFiles,
            stacklevel=3,
        )
    other = next((group for group in row_groups if group.delimiter), None)
    if options.delimiter is None and other is not None:
        warnings.warn(
            f"{other.path}: the columns are separated by {other.delimiter!r}, not as usual for this ending; "
            f"pass delimiter={other.delimiter!r} if that is right",
            stacklevel=3,
        )
    other = next((group for group in row_groups if group.decimal), None)
    if options.decimal is None and other is not None:
        warnings.warn(
            f"{other.path}: numbers are read with a decimal comma; pass decimal={other.decimal!r} if that is right",
            stacklevel=3,
        )


def _some(names: list[str]) -> str:
    return name_some(names[:LISTED], len(names))
