"""Turns errors of a file reader into errors of one sentence that name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from seqatt.data.files.remote import FilePath
from seqatt.data.tables.whole_file import UnreadableFile


class SkippedData(UserWarning):
    """Warning: some rows could not be read, and the run continued without them."""


@contextmanager
def read_errors(path: FilePath) -> Iterator[None]:
    """Raise every reading error inside the block as ``UnreadableFile``."""
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
    return "; if that column is text, pass column_types={name: 'categorical'}"
