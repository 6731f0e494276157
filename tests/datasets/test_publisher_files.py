"""Every publisher's format is downloaded and parsed; tested with small archives and a local server."""

from __future__ import annotations

import dataclasses
import gzip
import io
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image
from scipy.io import savemat
from tests.support.archives import activity_files, compress, idx_file, workbook, zip_archive
from tests.support.local_server import serve

import seqatt
from seqatt.datasets.catalogue import CATALOGUE
from seqatt.datasets.entry import DataError

RNG = np.random.default_rng(0)


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """A function that loads a data set whose catalogue entry has the given files and size."""
    monkeypatch.delenv("SEQATT_DATA_DIR", raising=False)
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path))

    def load(name: str, files: dict[str, bytes], **size) -> seqatt.datasets.Dataset:
        entry = CATALOGUE[name]
        with serve() as site:
            site.files = files
            local = tuple(
                dataclasses.replace(o, url=f"{site.url}/{o.file}", checksum=None) for o in entry.originals
            )
            monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(entry, originals=local, **size))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*no checksum of .* is known.*")
                first = seqatt.datasets.load(name)
        again = seqatt.datasets.load(name)  # without a server: from the cache
        np.testing.assert_array_equal(first.X, again.X)
        return again

    return load


@pytest.mark.parametrize(("name", "label"), [("mnist", "7"), ("fashion_mnist", "Sneaker")])
def test_idx_files(fetch, name, label):
    images = RNG.integers(0, 256, (30, 28, 28))
    labels = np.arange(30) % 10
    files = {
        "train-images-idx3-ubyte.gz": idx_file(images[:20]),
        "train-labels-idx1-ubyte.gz": idx_file(labels[:20]),
        "t10k-images-idx3-ubyte.gz": idx_file(images[20:]),
        "t10k-labels-idx1-ubyte.gz": idx_file(labels[20:]),
    }
    data = fetch(name, files, rows=(20, 10))
    np.testing.assert_array_equal(data.X.reshape(-1, *data.image_shape), images)
    np.testing.assert_array_equal(data.y, labels)
    assert data.target_names[7] == label
    assert data.feature_names[29] == "pixel_01_01"
    assert len(data.split().X_train) == 20


def test_an_idx_file_that_ends_early_is_refused(fetch):
    short = gzip.compress(gzip.decompress(idx_file(np.zeros((20, 28, 28))))[:-1])
    files = {
        "train-images-idx3-ubyte.gz": short,
        "train-labels-idx1-ubyte.gz": idx_file(np.arange(20) % 10),
        "t10k-images-idx3-ubyte.gz": short,
        "t10k-labels-idx1-ubyte.gz": idx_file(np.arange(20) % 10),
    }
    with pytest.raises(DataError, match="mnist: the download cannot be read"):
        fetch("mnist", files, rows=(20, 20))


def test_mice_protein_workbook(fetch):
    labels = ["t-SC-s", "c-SC-s", "t-SC-m", "c-SC-m", "t-CS-s", "c-CS-s", "t-CS-m", "c-CS-m"]
    values = RNG.normal(size=(16, 3))
    values[4, 1] = np.nan
    mouse_ids = [f"{300 + row // 2}_{row % 2 + 1}" for row in range(16)]
    classes = [labels[row // 2] for row in range(16)]
    content = workbook(mouse_ids, ["DYRK1A_N", "ITSN1_N", "BDNF_N"], values, classes)
    archive = zip_archive({"Data_Cortex_Nuclear.xls": content})
    data = fetch("mice_protein", {"mice+protein+expression.zip": archive}, rows=(16,), features=3)
    np.testing.assert_array_equal(data.X, values)
    np.testing.assert_array_equal(data.y, np.arange(16) // 2)
    assert data.target_names == tuple(labels)
    assert data.feature_names == ("DYRK1A_N", "ITSN1_N", "BDNF_N")
    assert data.groups.tolist() == [str(300 + row // 2) for row in range(16)]


def test_isolet_archives(fetch):
    values = RNG.uniform(-1, 1, size=(78, 9)).round(4)
    labels = np.arange(78) % 26
    rows = [", ".join(f"{v:.4f}" for v in row) for row in values]
    lines = [f"{row}, {label + 1}.\n" for row, label in zip(rows, labels, strict=True)]
    text = ["".join(lines[:52]).encode(), "".join(lines[52:]).encode()]
    assert len(compress(text[0])) > 1000  # long enough for codes to grow
    archive = zip_archive(
        {"isolet1+2+3+4.data.Z": compress(text[0]), "isolet5.data.Z": compress(text[1]), "isolet.info": b"x"}
    )
    data = fetch("isolet", {"isolet.zip": archive}, rows=(52, 26), features=9)
    np.testing.assert_array_equal(data.X, values.astype(np.float32))
    np.testing.assert_array_equal(data.y, labels)
    assert data.target_names[0] == "A"
    assert data.split().y_test.tolist() == list(range(26))


@pytest.mark.parametrize("nested", [True, False])
def test_activity_archives(fetch, nested):
    values, labels = RNG.normal(size=(18, 3)), np.arange(18) % 6
    archive = zip_archive(activity_files(values, labels))
    if nested:
        archive = zip_archive({"UCI HAR Dataset.zip": archive, "UCI HAR Dataset.names": b"x"})
    file = "human+activity+recognition+using+smartphones.zip"
    data = fetch("activity", {file: archive}, rows=(12, 6), features=3)
    np.testing.assert_allclose(data.X, values, rtol=1e-6)
    np.testing.assert_array_equal(data.y, labels)
    assert data.target_names == tuple("ABCDEF")
    assert not set(data.groups[:12]) & set(data.groups[12:])
    assert list(data.frame().columns) == [
        "tBodyAcc-mean()-X", "angle(X,gravityMean) [1]", "angle(X,gravityMean) [2]", "target",
    ]  # fmt: skip


def test_coil20_images(fetch):
    images = {}
    for number in range(1, 21):
        for pose in (0, 1, 10):  # in the archive obj10 is before obj2 and pose 10 before pose 2
            stream = io.BytesIO()
            Image.new("L", (128, 128), color=10 * number + pose).save(stream, "PNG")
            images[f"coil-20-proc/obj{number}__{pose}.png"] = stream.getvalue()
    archive = zip_archive(dict(sorted(images.items())))
    data = fetch("coil20", {"coil-20-proc.zip": archive}, rows=(60,))
    expected = [10 * number + pose for number in range(1, 21) for pose in (0, 1, 10)]
    np.testing.assert_array_equal(data.X, np.repeat(expected, 400).reshape(60, 400))
    np.testing.assert_array_equal(data.y, np.repeat(np.arange(20), 3))
    assert data.target_names[9] == "obj10"


@pytest.mark.parametrize("layout", [np.asarray, sp.csc_matrix])
def test_matlab_files(fetch, layout):
    values = RNG.integers(0, 3, (30, 12)).astype(float)
    stream = io.BytesIO()
    savemat(stream, {"X": layout(values), "Y": np.where(np.arange(30) % 2, 1, -1)[:, None]})
    data = fetch("pcmac", {"PCMAC.mat": stream.getvalue()}, rows=(30,), features=12)
    np.testing.assert_array_equal(data.X, values)
    np.testing.assert_array_equal(data.y, np.arange(30) % 2)
    assert data.target_names == ("-1", "1")


def test_an_archive_without_the_file_is_refused(fetch):
    with pytest.raises(DataError, match=r"isolet1.*is not in the archive"):
        fetch("isolet", {"isolet.zip": zip_archive({"readme": b"moved"})})


@pytest.mark.parametrize(
    ("name", "archive", "member"),
    [
        ("mice_protein", "mice+protein+expression.zip", "Data_Cortex_Nuclear.xls"),
        ("isolet", "isolet.zip", "isolet1+2+3+4.data.Z"),
        ("coil20", "coil-20-proc.zip", "coil-20-proc/obj1__0.png"),
        ("activity", "human+activity+recognition+using+smartphones.zip", "UCI HAR Dataset.zip"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"not at all what it says", bytes(3000)])
def test_a_damaged_archive_is_refused(fetch, name, archive, member, content):
    with pytest.raises(DataError, match=f"{name}: the download cannot be read"):
        fetch(name, {archive: zip_archive({member: content})})


@pytest.mark.parametrize(
    ("name", "package"), [("mice_protein", "xlrd"), ("isolet", "unlzw3"), ("coil20", "PIL")]
)
def test_a_missing_package_is_named_before_any_download(fetch, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)  # as if the package were not installed
    message = rf"{name}: the package {package} is needed.*pip install 'seqatt\[data\]'"
    with pytest.raises(DataError, match=message):
        fetch(name, {})


@pytest.mark.parametrize("name", [n for n, e in CATALOGUE.items() if e.originals])
def test_every_download_has_a_parser_and_a_valid_url(name):
    from seqatt.datasets.parsers import PARSERS

    entry = CATALOGUE[name]
    assert entry.parser in PARSERS
    for original in entry.originals:
        assert original.url.startswith(("https://", "http://fashion-mnist."))
        kind, _, digits = (original.checksum or "sha256:" + "0" * 64).partition(":")
        assert len(digits) == {"sha256": 64, "md5": 32}[kind]
