"""The catalogue's description of a data set, and errors about data sets; each message is one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SplitKind = Literal["official", "rows", "groups"]


@dataclass(frozen=True)
class PublisherFile:
    """A file to download from its publisher; ``checksum`` is "sha256:..." or "md5:...", None if unknown."""

    url: str
    checksum: str | None = None

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class DatasetEntry:
    """Size, licence, citation and sources of a data set.

    ``rows`` is (all,), or (training, test) if the source has an official split; ``classes`` is 0 for
    regression. ``splits`` are the available kinds of split, the default first. ``originals`` are the
    publisher's files, read by ``parser``, for which the packages in ``needs`` must be installed. ``bundled`` data
    sets are part of scikit-learn.
    """

    name: str
    title: str
    rows: tuple[int, ...]
    features: int
    classes: int
    licence: str
    citation: str
    splits: tuple[SplitKind, ...] = ("rows",)
    folder: str = ""
    image_shape: tuple[int, int] | None = None
    originals: tuple[PublisherFile, ...] = ()
    parser: str = ""
    needs: tuple[str, ...] = ()
    bundled: bool = False

    @property
    def file(self) -> str:
        """Path of its .npz file, relative to a folder of data sets."""
        return f"{self.folder}/{self.name}.npz" if self.folder else f"{self.name}.npz"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the arrays that its .npz file must contain."""
        data = ("X_train", "y_train", "X_test", "y_test") if len(self.rows) == 2 else ("X", "y")
        return (*data, "feature_names", "target_names")


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
