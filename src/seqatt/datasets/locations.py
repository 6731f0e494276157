"""Finds data sets on this machine: in the folder SEQATT_DATA_DIR, then in the user's cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seqatt.datasets.entry import DataError, DatasetEntry

Where = Literal["scikit-learn", "folder", "cache", "download", "absent"]


@dataclass(frozen=True)
class DatasetLocation:
    """Where a data set is; ``path`` is its file, None if it is part of scikit-learn or not on this machine."""

    where: Where
    path: Path | None = None


def data_folder() -> Path | None:
    """The folder in SEQATT_DATA_DIR, which is never written to; None if the variable is not set."""
    named = os.environ.get("SEQATT_DATA_DIR")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(f"SEQATT_DATA_DIR: {folder} is not a folder; correct the variable or unset it")
    return folder


def cache_folder() -> Path:
    """The folder in SEQATT_CACHE_DIR, or the user's cache folder of the operating system."""
    named = os.environ.get("SEQATT_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("seqatt"))


def locate(entry: DatasetEntry) -> DatasetLocation:
    """Where a data set is, without downloading it."""
    if entry.bundled:
        return DatasetLocation("scikit-learn")
    folder = data_folder()
    if folder is not None and (folder / entry.file).is_file():
        return DatasetLocation("folder", folder / entry.file)
    cached = cache_folder() / entry.file
    if cached.is_file():
        return DatasetLocation("cache", cached)
    return DatasetLocation("download" if entry.originals else "absent")
