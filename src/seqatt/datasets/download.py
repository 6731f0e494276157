"""A download that continues where an earlier one stopped, for pooch to call."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seqatt.datasets.entry import DatasetEntry, PublisherFile
from seqatt.datasets.errors import DataError, no_space, writing_into
from seqatt.progress import progress_bar

ATTEMPTS = 3
TIMEOUT = (15, 60)  # seconds to connect, and of silence
CHUNK = 1 << 18


class BrokenDownload(Exception):
    """The connection ended too early; what came is kept."""


class Download:
    """pooch's downloader: fills ``NAME.part`` across calls, checks it, and hands it over whole.

    Beside the part stands what the server calls this version of the file, so that two versions are
    never sewn together.
    """

    def __init__(
        self, entry: DatasetEntry, original: PublisherFile, folder: Path, expected: str | None, remedy: str
    ) -> None:
        self.name, self.original, self.folder = entry.name, original, folder
        self.or_else = f"put {entry.file} into the folder named by SEQATT_DATA_DIR"
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
        """Go on after a break as long as every attempt brings something."""
        import requests
        import urllib3

        for attempt in range(1, ATTEMPTS + 1):
            before = self._size()
            try:
                self._continue(url)
                return
            except requests.HTTPError as error:
                raise DataError(
                    f"{self.name}: {self.host} did not give the file ({error}); try again later, "
                    f"or {self.or_else}"
                ) from None
            except requests.RequestException:
                raise DataError(
                    f"{self.name}: {self.host} cannot be reached; connect to a network, or {self.or_else}"
                ) from None
            except (BrokenDownload, urllib3.exceptions.HTTPError):
                if self._size() > before and attempt < ATTEMPTS:
                    continue
                raise DataError(
                    f"{self.name}: the download of {self.original.file} broke off after {self._size():,} "
                    "bytes; run it again to continue from there"
                ) from None

    def _continue(self, url: str) -> None:
        import requests

        headers = {"Accept-Encoding": "identity"}
        version = self.version.read_text(encoding="utf-8") if self.version.exists() else ""
        start = self._size() if version or self.expected else 0
        if start:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": version} if version else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code in (206, 416) and not _goes_on(answer, start):
                self.part.unlink()  # the server has nothing to add to it: it is not what we took it for
                return self._continue(url)
            answer.raise_for_status()
            return self._store(answer, start if answer.status_code == 206 else 0)

    def _store(self, answer: Any, start: int) -> None:
        rest = answer.headers.get("Content-Length")
        if rest is not None and int(rest) > shutil.disk_usage(self.folder).free:
            raise no_space(self.folder, self.name)
        total = start + int(rest or 0)
        title = f"{self.name}: {self.original.file}"
        with (
            self.part.open("ab" if start else "wb") as file,
            progress_bar(title, total, shown=True) as advance,
        ):
            if not start:  # only now: an old part must never be taken for the new version
                self.version.write_text(_version(answer.headers), encoding="utf-8")
            advance(start)
            for chunk in answer.raw.stream(CHUNK, decode_content=False):
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
                f"{expected} and was thrown away; {self.remedy}"
            )

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0


def _goes_on(answer: Any, start: int) -> bool:
    span = str(answer.headers.get("Content-Range", ""))
    return bool(answer.status_code == 206 and span.startswith(f"bytes {start}-"))


def _version(headers: Any) -> str:
    """A strong ETag or a date, all that If-Range may carry; empty if the server tells neither."""
    tag = str(headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified", ""))
