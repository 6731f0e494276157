"""From the publishers' files to arrays in the cache."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from seqatt.datasets.download import Download
from seqatt.datasets.entry import DatasetEntry, PublisherFile
from seqatt.datasets.errors import DataError, writing_into
from seqatt.datasets.locations import cache_folder
from seqatt.datasets.npz import check_arrays, write_arrays
from seqatt.datasets.parsers import UNREADABLE, parse


def fetch_entry(entry: DatasetEntry) -> Path:
    """Download, read, check and keep; the .npz file in the cache.

    A second process waits for the first and finds its work done. The originals go once their arrays
    are safe; what stays of them is their checksum.
    """
    _insist_on_a_way(entry)
    from filelock import FileLock

    folder = cache_folder() / "originals" / entry.name
    with writing_into(folder, entry.name):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire()
    try:
        path = cache_folder() / entry.file
        if not path.is_file():
            _make(entry, folder, path)
        return path
    finally:
        lock.release()


def _make(entry: DatasetEntry, folder: Path, path: Path) -> None:
    files = {original.file: _download(entry, original, folder) for original in entry.originals}
    remedy = f"try again later, or put {entry.file} into the folder named by SEQATT_DATA_DIR"
    try:
        arrays = parse(entry, files)
        check_arrays(arrays, entry, f"{entry.name}: what was downloaded is not as documented", remedy)
    except UNREADABLE as error:
        _throw_away(files)
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise DataError(f"{entry.name}: what was downloaded cannot be read ({reason}); {remedy}") from None
    except DataError:
        _throw_away(files)
        raise
    write_arrays(path, arrays, entry.name)
    _record(entry, folder)
    _throw_away(files)


def _throw_away(files: dict[str, Path]) -> None:
    for file in files.values():
        file.unlink(missing_ok=True)


def _insist_on_a_way(entry: DatasetEntry) -> None:
    if not entry.originals:
        raise DataError(
            f"{entry.name}: is not on this machine and has no download; put {entry.file} into the folder "
            f"named by SEQATT_DATA_DIR, with the keys {', '.join(entry.keys)}"
        )
    missing = [package for package in entry.needs if find_spec(package) is None]
    if missing:
        raise DataError(
            f"{entry.name}: the package {missing[0]} is needed to read its original file; "
            "pip install 'seqatt[data]'"
        )


def _download(entry: DatasetEntry, original: PublisherFile, folder: Path) -> Path:
    import pooch

    record = _record_of(original, folder)
    expected, remedy = original.checksum, "try again later"
    if expected is None and record.is_file():
        expected = record.read_text(encoding="utf-8").strip()
        remedy = f"if the source has changed it for good, delete {record} and try again"
    download = Download(entry, original, folder, expected, remedy)
    with _quiet(pooch.get_logger()), writing_into(folder, entry.name):
        found = pooch.retrieve(original.url, expected, original.file, folder, downloader=download)
    return Path(found)


def _record(entry: DatasetEntry, folder: Path) -> None:
    """Keep the checksum of files that came without one, now that they turned out to be good."""
    import pooch

    for original in entry.originals:
        record = _record_of(original, folder)
        if original.checksum is None and not record.is_file():
            checksum = f"sha256:{pooch.file_hash(str(folder / original.file))}"
            with writing_into(folder, entry.name):
                record.write_text(checksum + "\n", encoding="utf-8")
            warnings.warn(
                f"{entry.name}: no checksum of {original.file} is known; this one's ({checksum}) is now "
                f"recorded in {record}, and later downloads must match it",
                stacklevel=2,
            )


def _record_of(original: PublisherFile, folder: Path) -> Path:
    return folder / f"{original.file}.sha256"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
