"""Whatever goes wrong with a file is said with its name, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from seqatt.data.files.remote import FilePath
from seqatt.data.tables.whole_file import UnreadableFile


class SkippedData(UserWarning):
    """A part of the data could not be read, and the run went on without it."""


@contextmanager
def read_errors(path: FilePath) -> Iterator[None]:
    """Errors of the reader, as ours."""
    try:
        yield
    except UnreadableFile:
        raise
    except FileNotFoundError:
        raise UnreadableFile(f"{path}: the file is no longer there") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnreadableFile(f"{path}: cannot be read as a table ({reason}){_remedy(reason)}") from None


def _remedy(reason: str) -> str:
    if "conversion error" not in reason:
        return ""
    return "; if that column is text, say so with kinds={name: 'categorical'}"
