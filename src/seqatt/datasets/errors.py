"""What can go wrong with a data set, in one sentence each."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(RuntimeError):
    """A data set cannot be had, or is not what it should be; the message says what to do."""


@contextmanager
def writing_into(folder: Path, name: str) -> Iterator[None]:
    """Turn what a disk can refuse into a sentence."""
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
        f"{name}: no space left in {folder}; make some, or set SEQATT_CACHE_DIR to a folder on another disk"
    )
