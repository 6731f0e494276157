"""Downloads are checked, resumed and shared between processes; tested with a local server."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from tests.support.local_server import serve

import seqatt
from seqatt.datasets.catalogue import CATALOGUE
from seqatt.datasets.entry import DataError, DatasetEntry, PublisherFile
from seqatt.datasets.npz import write_arrays

NOISE = np.random.default_rng(0).normal(size=(40, 500))


def matlab_file(values: np.ndarray = NOISE) -> bytes:
    stream = io.BytesIO()
    savemat(stream, {"X": values, "Y": np.arange(len(values))[:, None] % 2 + 1})
    return stream.getvalue()


FILE = matlab_file()


@pytest.fixture
def site():
    with serve() as site:
        site.files["noise.mat"] = FILE
        yield site


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("SEQATT_DATA_DIR", raising=False)
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def add_entry(monkeypatch, url: str, checksum: str | None = None) -> DatasetEntry:
    """Add a data set of 40 rows to the catalogue."""
    entry = dataclasses.replace(
        CATALOGUE["yale"], name="noise", rows=(40,), features=500, classes=2,
        originals=(PublisherFile(f"{url}/noise.mat", checksum),),
    )  # fmt: skip
    monkeypatch.setitem(CATALOGUE, "noise", entry)
    return entry


def sha256(content: bytes = FILE) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def originals(cache: Path) -> Path:
    return cache / "originals" / "noise"


def load() -> seqatt.datasets.Dataset:
    """Load the data set, without the warning about a new checksum."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no checksum of noise.mat is known.*")
        return seqatt.datasets.load("noise")


def assert_fails(message: str) -> None:
    with pytest.raises(DataError) as caught:
        load()
    error = str(caught.value)
    assert message in error
    assert "\n" not in error
    assert error.startswith("noise: ")


def test_a_download_is_stored_as_arrays_and_requested_once(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, sha256())
    np.testing.assert_array_equal(load().X, NOISE)
    np.testing.assert_array_equal(load().X, NOISE)
    assert site.requests == [("noise.mat", None)]
    assert (cache / "extra" / "noise.npz").is_file()
    assert [p.name for p in originals(cache).iterdir()] == [
        ".lock"
    ]  # neither a partial nor an original file remains


def test_a_first_download_records_its_checksum_with_a_warning(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    with pytest.warns(UserWarning, match=f"no checksum of noise.mat is known.*{sha256()}.*recorded"):
        seqatt.datasets.load("noise")
    assert (originals(cache) / "noise.mat.sha256").read_text() == sha256() + "\n"


def test_a_later_download_must_match_the_recorded_checksum(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    load()
    (cache / "extra" / "noise.npz").unlink()
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    assert_fails(f"delete {originals(cache) / 'noise.mat.sha256'}")
    (originals(cache) / "noise.mat.sha256").unlink()
    np.testing.assert_array_equal(load().X, NOISE + 1)


def test_a_wrong_checksum_is_one_sentence_and_leaves_no_file(site, cache, monkeypatch):
    wrong = f"sha256:{'0' * 64}"
    add_entry(monkeypatch, site.url, wrong)
    assert_fails(f"has the sha256 {sha256()[7:]} instead of {'0' * 64} and was deleted")
    assert not list(originals(cache).glob("noise.mat*"))
    assert not (cache / "extra").exists()


def test_an_md5_checksum_is_accepted(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, f"md5:{hashlib.md5(FILE).hexdigest()}")
    assert load().X.shape == NOISE.shape


@pytest.mark.parametrize("known", [True, False])
def test_an_interrupted_download_is_resumed(site, cache, monkeypatch, known):
    add_entry(monkeypatch, site.url, sha256() if known else None)
    site.max_bytes = len(FILE) // 8
    assert_fails(
        f"stopped after {3 * site.max_bytes:,} bytes; run it again"
    )  # three attempts, each an eighth
    assert (originals(cache) / "noise.mat.part").stat().st_size == 3 * (len(FILE) // 8)
    site.max_bytes = None
    site.requests.clear()
    np.testing.assert_array_equal(load().X, NOISE)
    assert site.requests == [("noise.mat", f"bytes={3 * (len(FILE) // 8)}-")]


def test_parts_of_two_versions_of_a_file_are_never_joined(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    site.max_bytes = len(FILE) // 8
    assert_fails("stopped after")
    site.max_bytes = None
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    np.testing.assert_array_equal(load().X, NOISE + 1)


@pytest.mark.parametrize("content", [b"", b"sha256:12", b"\xff\xfe"])
def test_an_empty_or_half_written_checksum_file_is_named(content, site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    recorded = cache / "originals" / "noise" / "noise.mat.sha256"
    recorded.parent.mkdir(parents=True)
    recorded.write_bytes(content)
    with pytest.raises(DataError, match=r"noise\.mat\.sha256: is empty or damaged and holds no checksum"):
        seqatt.datasets.load("noise")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"one\r\ntwo"])
def test_a_damaged_version_file_makes_a_download_start_again(content, site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    folder = cache / "originals" / "noise"
    folder.mkdir(parents=True)
    (folder / "noise.mat.part").write_bytes(b"part of another file")
    (folder / "noise.mat.part.version").write_bytes(content)
    with pytest.warns(UserWarning, match="no checksum of noise"):
        assert seqatt.datasets.load("noise").X.shape == NOISE.shape


def test_without_checksum_or_version_a_download_starts_again(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    site.max_bytes, site.sends_etag = len(FILE) // 8, False
    assert_fails("stopped after")
    site.max_bytes = None
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    site.requests.clear()
    np.testing.assert_array_equal(load().X, NOISE + 1)
    assert site.requests == [("noise.mat", None)]


def test_a_partial_file_longer_than_the_file_is_discarded(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, sha256())
    originals(cache).mkdir(parents=True)
    (originals(cache) / "noise.mat.part").write_bytes(FILE + b"more")
    np.testing.assert_array_equal(load().X, NOISE)


def test_an_error_of_the_server_keeps_the_partial_file(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, sha256())
    site.max_bytes = len(FILE) // 8
    assert_fails("stopped after")
    site.status = 503
    assert_fails("did not send the file (503 Server Error")
    assert (originals(cache) / "noise.mat.part").stat().st_size == 3 * (len(FILE) // 8)


def test_a_missing_file_is_one_sentence(site, cache, monkeypatch):
    add_entry(monkeypatch, f"{site.url}/nowhere", sha256())
    site.files.clear()
    assert_fails("did not send the file (404 Client Error")


def test_no_network_is_one_sentence(cache, monkeypatch):
    with serve() as gone:
        url = gone.url
    add_entry(monkeypatch, url, sha256())
    assert_fails("cannot be reached; connect to a network, or put extra/noise.npz into the folder named by")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_one_sentence(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, sha256())
    originals(cache).mkdir(parents=True)
    (originals(cache) / "noise.mat.part").symlink_to("/dev/full")
    assert_fails(f"no space left in {originals(cache)}; free some, or set SEQATT_CACHE_DIR")


def test_a_cache_that_cannot_be_written_is_one_sentence(site, tmp_path, cache, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    add_entry(monkeypatch, site.url, sha256())
    assert_fails("cannot write to")


def test_a_file_of_another_shape_is_refused_and_not_recorded(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url)
    site.files["noise.mat"] = matlab_file(NOISE[:, :9])
    assert_fails("not as documented: X has shape (40, 9), noise has (40, 500)")
    assert not list(originals(cache).glob("noise.mat*"))


@pytest.mark.parametrize("content", [b"<html>sign in first</html>", FILE[:5000], b"", b"\0" * 500])
def test_a_file_that_is_no_data_is_refused_and_not_recorded(site, cache, monkeypatch, content):
    add_entry(monkeypatch, site.url)
    site.files["noise.mat"] = content
    assert_fails("noise: the download cannot be read (")
    assert not list(originals(cache).glob("noise.mat*"))


def test_two_concurrent_loads_download_once(site, cache, monkeypatch):
    add_entry(monkeypatch, site.url, sha256())
    site.proceed.clear()
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(load().X)) for _ in range(2)]
    for thread in threads:
        thread.start()
    site.proceed.set()
    for thread in threads:
        thread.join(20)
    assert len(results) == 2
    np.testing.assert_array_equal(results[0], results[1])
    assert len(site.requests) == 1


def test_a_killed_download_leaves_no_partial_data_set_and_is_resumed(site, cache, monkeypatch):
    wide = np.tile(NOISE, 10)
    site.files["noise.mat"] = matlab_file(wide)
    entry = add_entry(monkeypatch, site.url)
    monkeypatch.setitem(CATALOGUE, "noise", dataclasses.replace(entry, features=5000))
    site.proceed.clear()
    code = (
        "import dataclasses, seqatt; from seqatt.datasets.catalogue import CATALOGUE as C; "
        "from seqatt.datasets.entry import PublisherFile; C['noise'] = dataclasses.replace(C['yale'], name='noise', "
        f"originals=(PublisherFile('{site.url}/noise.mat'),)); seqatt.datasets.load('noise')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ.copy())
    part = originals(cache) / "noise.mat.part"
    try:
        wait_until(lambda: part.exists() and part.stat().st_size > 0)
    finally:
        process.kill()
        process.wait()
    site.proceed.set()
    assert not (cache / "extra").exists()
    np.testing.assert_array_equal(load().X, wide)
    assert site.requests[1][1] is not None  # a range of the file


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / ".noise.npz.0123abcd.part").write_bytes(b"half")
    write_arrays(tmp_path / "noise.npz", {"X": NOISE}, "noise")
    assert list(tmp_path.iterdir()) == [tmp_path / "noise.npz"]


def wait_until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(400):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail("the other process did not start the download")
