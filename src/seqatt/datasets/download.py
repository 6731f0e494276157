"""A downloader for pooch that resumes interrupted downloads, which pooch's own downloaders do not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seqatt.datasets.entry import DataError, DatasetEntry, PublisherFile, no_space, writing_into
from seqatt.progress import progress_bar

ATTEMPTS = 3  # per call, as long as each one receives something
TIMEOUT = (15, 60)  # seconds to connect, and between two packets
CHUNK = 1 << 18  # bytes per write


class BrokenDownload(Exception):
    """The connection ended before the end of the file; the bytes received so far are kept."""


class Download:
    """Downloads into ``NAME.part`` across calls, checks the checksum and moves the complete file.

    ``NAME.part.version`` holds the server's ETag or date of the file, so that parts of two versions are never
    joined.
    """

    def __init__(
        self, entry: DatasetEntry, original: PublisherFile, folder: Path, expected: str | None, remedy: str
    ) -> None:
        self.name, self.original, self.folder = entry.name, original, folder
        self.alternative = f"put {entry.file} into the folder named by SEQATT_DATA_DIR"
        self.expected, self.remedy = expected, remedy
        self.part = folder / f"{original.file}.part"
        self.version = folder / f"{original.file}.part.version"
        self.host = urlsplit(original.url).netloc

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        with writing_into(self.folder, self.name):
            self._receive(url)
            self._check()
            os.replace(self.part, output_file)
            self.version.unlink(missing_ok=True)

    def _receive(self, url: str) -> None:
        """Download the rest of the file, in up to ``ATTEMPTS`` attempts."""
        import requests
        import urllib3

        for attempt in range(1, ATTEMPTS + 1):
            before = self._size()
            try:
                self._continue(url)
                return
            except requests.HTTPError as error:
                raise DataError(
                    f"{self.name}: {self.host} did not send the file ({error}); try again later, "
                    f"or {self.alternative}"
                ) from None
            except requests.RequestException:
                raise DataError(
                    f"{self.name}: {self.host} cannot be reached; connect to a network, or {self.alternative}"
                ) from None
            except (BrokenDownload, urllib3.exceptions.HTTPError):
                if self._size() > before and attempt < ATTEMPTS:
                    continue
                raise DataError(
                    f"{self.name}: the download of {self.original.file} stopped after {self._size():,} "
                    "bytes; run it again to continue from there"
                ) from None

    def _continue(self, url: str) -> None:
        import requests

        headers = {"Accept-Encoding": "identity"}
        version = self.version.read_text("utf-8", errors="replace") if self.version.exists() else ""
        if not (version.isascii() and version.isprintable()):
            version = ""  # damaged: without it, the download starts again
        start = self._size() if version or self.expected else 0
        if start:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": version} if version else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code in (206, 416) and not _continues(response, start):
                self.part.unlink()  # the server cannot continue it: it belongs to another version
                return self._continue(url)
            response.raise_for_status()
            return self._store(response, start if response.status_code == 206 else 0)

    def _store(self, response: Any, start: int) -> None:
        rest = response.headers.get("Content-Length")
        if rest is not None and int(rest) > shutil.disk_usage(self.folder).free:
            raise no_space(self.folder, self.name)
        total = start + int(rest or 0)
        title = f"{self.name}: {self.original.file}"
        with (
            self.part.open("ab" if start else "wb") as file,
            progress_bar(title, total, shown=True) as advance,
        ):
            if not start:  # only now that the part is empty: it must never get the version of another part
                self.version.write_text(_version(response.headers), encoding="utf-8")
            advance(start)
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                advance(len(chunk))
        if rest is not None and self._size() != total:
            raise BrokenDownload

    def _check(self) -> None:
        from pooch import file_hash

        if self.expected is None:
            return
        kind, expected = self.expected.split(":")
        found = file_hash(str(self.part), alg=kind)
        if found != expected:
            self.part.unlink()
            self.version.unlink(missing_ok=True)
            raise DataError(
                f"{self.name}: {self.original.file} from {self.host} has the {kind} {found} instead of "
                f"{expected} and was deleted; {self.remedy}"
            )

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0


def _continues(response: Any, start: int) -> bool:
    """Whether the response is the rest of the file from byte ``start`` on."""
    span = str(response.headers.get("Content-Range", ""))
    return bool(response.status_code == 206 and span.startswith(f"bytes {start}-"))


def _version(headers: Any) -> str:
    """A strong ETag or the date, which If-Range accepts; empty if the server sends neither."""
    tag = str(headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified", ""))
