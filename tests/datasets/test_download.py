"""What a download promises, held against a real server on this machine."""

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
from seqatt.datasets.entry import DatasetEntry, PublisherFile
from seqatt.datasets.errors import DataError

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


def add(monkeypatch, url: str, checksum: str | None = None) -> DatasetEntry:
    """A set of 40 rows in the catalogue."""
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
    """With a known checksum, or where the note about a new one is not the point."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no checksum of noise.mat is known.*")
        return seqatt.datasets.load("noise")


def fails(message: str) -> None:
    with pytest.raises(DataError) as caught:
        load()
    said = str(caught.value)
    assert message in said
    assert "\n" not in said
    assert said.startswith("noise: ")


def test_a_download_is_kept_as_arrays_and_asked_for_once(site, cache, monkeypatch):
    add(monkeypatch, site.url, sha256())
    np.testing.assert_array_equal(load().X, NOISE)
    np.testing.assert_array_equal(load().X, NOISE)
    assert site.asked == [("noise.mat", None)]
    assert (cache / "extra" / "noise.npz").is_file()
    assert [p.name for p in originals(cache).iterdir()] == [".lock"]  # neither part nor original is left


def test_a_first_download_records_its_checksum_and_says_so(site, cache, monkeypatch):
    add(monkeypatch, site.url)
    with pytest.warns(UserWarning, match=f"no checksum of noise.mat is known.*{sha256()}.*recorded"):
        seqatt.datasets.load("noise")
    assert (originals(cache) / "noise.mat.sha256").read_text() == sha256() + "\n"


def test_a_later_download_must_match_the_record(site, cache, monkeypatch):
    add(monkeypatch, site.url)
    load()
    (cache / "extra" / "noise.npz").unlink()
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    fails(f"delete {originals(cache) / 'noise.mat.sha256'}")
    (originals(cache) / "noise.mat.sha256").unlink()
    np.testing.assert_array_equal(load().X, NOISE + 1)


def test_a_wrong_checksum_is_one_sentence_and_leaves_nothing(site, cache, monkeypatch):
    wrong = f"sha256:{'0' * 64}"
    add(monkeypatch, site.url, wrong)
    fails(f"has the sha256 {sha256()[7:]} instead of {'0' * 64} and was thrown away")
    assert not list(originals(cache).glob("noise.mat*"))
    assert not (cache / "extra").exists()


def test_md5_pins_too(site, cache, monkeypatch):
    add(monkeypatch, site.url, f"md5:{hashlib.md5(FILE).hexdigest()}")
    assert load().X.shape == NOISE.shape


@pytest.mark.parametrize("pinned", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(site, cache, monkeypatch, pinned):
    add(monkeypatch, site.url, sha256() if pinned else None)
    site.cut = len(FILE) // 8
    fails(f"broke off after {3 * site.cut:,} bytes; run it again")  # three attempts, each an eighth
    assert (originals(cache) / "noise.mat.part").stat().st_size == 3 * (len(FILE) // 8)
    site.cut = None
    site.asked.clear()
    np.testing.assert_array_equal(load().X, NOISE)
    assert site.asked == [("noise.mat", f"bytes={3 * (len(FILE) // 8)}-")]


def test_two_versions_of_a_file_are_never_sewn_together(site, cache, monkeypatch):
    add(monkeypatch, site.url)
    site.cut = len(FILE) // 8
    fails("broke off")
    site.cut = None
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    np.testing.assert_array_equal(load().X, NOISE + 1)


def test_without_checksum_or_version_a_download_starts_again(site, cache, monkeypatch):
    add(monkeypatch, site.url)
    site.cut, site.tells_version = len(FILE) // 8, False
    fails("broke off")
    site.cut = None
    site.files["noise.mat"] = matlab_file(NOISE + 1)
    site.asked.clear()
    np.testing.assert_array_equal(load().X, NOISE + 1)
    assert site.asked == [("noise.mat", None)]


def test_a_part_longer_than_the_file_is_given_up(site, cache, monkeypatch):
    add(monkeypatch, site.url, sha256())
    originals(cache).mkdir(parents=True)
    (originals(cache) / "noise.mat.part").write_bytes(FILE + b"more")
    np.testing.assert_array_equal(load().X, NOISE)


def test_a_server_in_trouble_does_not_cost_what_is_here(site, cache, monkeypatch):
    add(monkeypatch, site.url, sha256())
    site.cut = len(FILE) // 8
    fails("broke off")
    site.status = 503
    fails("did not give the file (503 Server Error")
    assert (originals(cache) / "noise.mat.part").stat().st_size == 3 * (len(FILE) // 8)


def test_a_missing_file_is_one_sentence(site, cache, monkeypatch):
    add(monkeypatch, f"{site.url}/nowhere", sha256())
    site.files.clear()
    fails("did not give the file (404 Client Error")


def test_no_network_is_one_sentence(cache, monkeypatch):
    with serve() as gone:
        url = gone.url
    add(monkeypatch, url, sha256())
    fails("cannot be reached; connect to a network, or put extra/noise.npz into the folder named by")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_one_sentence(site, cache, monkeypatch):
    add(monkeypatch, site.url, sha256())
    originals(cache).mkdir(parents=True)
    (originals(cache) / "noise.mat.part").symlink_to("/dev/full")
    fails(f"no space left in {originals(cache)}; make some, or set SEQATT_CACHE_DIR")


def test_a_cache_that_cannot_be_written_is_one_sentence(site, tmp_path, cache, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    add(monkeypatch, site.url, sha256())
    fails("cannot write to")


def test_a_file_of_another_shape_is_refused_and_not_recorded(site, cache, monkeypatch):
    add(monkeypatch, site.url)
    site.files["noise.mat"] = matlab_file(NOISE[:, :9])
    fails("not as documented: X has shape (40, 9), noise has (40, 500)")
    assert not list(originals(cache).glob("noise.mat*"))


@pytest.mark.parametrize("content", [b"<html>sign in first</html>", FILE[:5000], b"", b"\0" * 500])
def test_a_file_that_is_no_data_is_refused_and_not_recorded(site, cache, monkeypatch, content):
    add(monkeypatch, site.url)
    site.files["noise.mat"] = content
    fails("noise: what was downloaded cannot be read (")
    assert not list(originals(cache).glob("noise.mat*"))


def test_two_at_once_download_once(site, cache, monkeypatch):
    add(monkeypatch, site.url, sha256())
    site.gate.clear()
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(load().X)) for _ in range(2)]
    for thread in threads:
        thread.start()
    site.gate.set()
    for thread in threads:
        thread.join(20)
    assert len(found) == 2
    np.testing.assert_array_equal(found[0], found[1])
    assert len(site.asked) == 1


def test_a_download_that_is_killed_leaves_no_half_file_and_goes_on(site, cache, monkeypatch):
    wide = np.tile(NOISE, 10)
    site.files["noise.mat"] = matlab_file(wide)
    entry = add(monkeypatch, site.url)
    monkeypatch.setitem(CATALOGUE, "noise", dataclasses.replace(entry, features=5000))
    site.gate.clear()
    code = (
        "import dataclasses, seqatt; from seqatt.datasets.catalogue import CATALOGUE as C; "
        "from seqatt.datasets.entry import Original; C['noise'] = dataclasses.replace(C['yale'], name='noise', "
        f"originals=(Original('{site.url}/noise.mat'),)); seqatt.datasets.load('noise')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ.copy())
    part = originals(cache) / "noise.mat.part"
    try:
        wait_until(lambda: part.exists() and part.stat().st_size > 0)
    finally:
        process.kill()
        process.wait()
    site.gate.set()
    assert not (cache / "extra").exists()
    np.testing.assert_array_equal(load().X, wide)
    assert site.asked[1][1] is not None  # a range of the file


def wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(400):
        if true():
            return
        pause.wait(0.05)
    pytest.fail("the other process never came so far")
