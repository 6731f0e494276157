"""Errors about data sets; each message is one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(RuntimeError):
    """A data set cannot be downloaded or read, or has an unexpected shape; the message names the remedy."""


@contextmanager
def writing_into(folder: Path, name: str) -> Iterator[None]:
    """Raise errors of writing into ``folder`` as ``DataError`` about the data set ``name``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
            raise no_space(folder, name) from None
        raise DataError(
            f"{name}: cannot write to {folder} ({error.strerror or error}); "
            "set SEQATT_CACHE_DIR to a folder of yours"
        ) from None


def no_space(folder: Path, name: str) -> DataError:
    return DataError(
        f"{name}: no space left in {folder}; free some, or set SEQATT_CACHE_DIR to a folder on another disk"
    )
