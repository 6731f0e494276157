"""Downloads the publisher's files of a data set and stores their arrays in the cache."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from seqatt.datasets.download import Download
from seqatt.datasets.entry import DataError, DatasetEntry, PublisherFile, writing_into
from seqatt.datasets.locations import cache_folder
from seqatt.datasets.npz import check_arrays, write_arrays
from seqatt.datasets.parsers import PARSE_ERRORS, parse


def fetch_entry(entry: DatasetEntry) -> Path:
    """Download, parse and check a data set; returns its .npz file in the cache.

    A second process waits for the first and uses its file. The downloaded files are deleted once the .npz file
    is written; their checksums are kept.
    """
    _check_available(entry)
    from filelock import FileLock

    folder = cache_folder() / "originals" / entry.name
    with writing_into(folder, entry.name):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire()
    try:
        path = cache_folder() / entry.file
        if not path.is_file():
            _download_and_parse(entry, folder, path)
        return path
    finally:
        lock.release()


def _download_and_parse(entry: DatasetEntry, folder: Path, path: Path) -> None:
    files = {original.file: _download(entry, original, folder) for original in entry.originals}
    remedy = f"try again later, or put {entry.file} into the folder named by SEQATT_DATA_DIR"
    try:
        arrays = parse(entry, files)
        check_arrays(arrays, entry, f"{entry.name}: the download is not as documented", remedy)
    except PARSE_ERRORS as error:
        _delete(files)
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise DataError(f"{entry.name}: the download cannot be read ({reason}); {remedy}") from None
    except DataError:
        _delete(files)
        raise
    write_arrays(path, arrays, entry.name)
    _record_checksums(entry, folder)
    _delete(files)


def _delete(files: dict[str, Path]) -> None:
    for file in files.values():
        file.unlink(missing_ok=True)


def _check_available(entry: DatasetEntry) -> None:
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

    recorded = _checksum_file(original, folder)
    expected, remedy = original.checksum, "try again later"
    if expected is None and recorded.is_file():
        expected = _read_checksum(recorded)
        remedy = f"if the source has published a new version, delete {recorded} and try again"
    download = Download(entry, original, folder, expected, remedy)
    with _quiet(pooch.get_logger()), writing_into(folder, entry.name):
        return Path(pooch.retrieve(original.url, expected, original.file, folder, downloader=download))


def _read_checksum(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    if not re.fullmatch("sha256:[0-9a-f]{64}", text):
        raise DataError(f"{path}: is empty or damaged and holds no checksum; delete it and try again")
    return text


def _record_checksums(entry: DatasetEntry, folder: Path) -> None:
    """Store the checksum of files whose checksum is not in the catalogue, after they parsed without error."""
    import pooch

    for original in entry.originals:
        recorded = _checksum_file(original, folder)
        if original.checksum is None and not recorded.is_file():
            checksum = f"sha256:{pooch.file_hash(str(folder / original.file))}"
            with writing_into(folder, entry.name):
                recorded.write_text(checksum + "\n", encoding="utf-8")
            warnings.warn(
                f"{entry.name}: no checksum of {original.file} is known; that of this download ({checksum}) is "
                f"now recorded in {recorded}, and later downloads must match it",
                stacklevel=2,
            )


def _checksum_file(original: PublisherFile, folder: Path) -> Path:
    return folder / f"{original.file}.sha256"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Show only warnings and errors of a logger."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
