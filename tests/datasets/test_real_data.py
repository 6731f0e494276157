"""The real data sets; tests are skipped for those that are not in SEQATT_DATA_DIR."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.support.archives import idx_file, workbook, zip_archive

import seqatt
from seqatt.datasets.catalogue import CATALOGUE
from seqatt.datasets.locations import locate
from seqatt.datasets.parsers import PARSERS

pytestmark = pytest.mark.data


def load(name: str) -> seqatt.datasets.Dataset:
    path = Path(os.environ.get("SEQATT_DATA_DIR", "")) / CATALOGUE[name].file
    if "SEQATT_DATA_DIR" not in os.environ or not path.is_file():
        pytest.skip(f"{CATALOGUE[name].file} is not in the folder named by SEQATT_DATA_DIR")
    assert locate(CATALOGUE[name]).where == "folder"
    return seqatt.datasets.load(name)


@pytest.mark.parametrize("name", [n for n, e in CATALOGUE.items() if not e.bundled])
def test_every_data_set_has_the_documented_shape_and_splits(name):
    data = load(name)
    entry = seqatt.datasets.info(name)
    assert data.X.shape == (sum(entry.rows), entry.features)
    assert len(data.target_names) == max(entry.classes, 1)
    for kind in data.splits:
        split = data.split(kind)
        assert len(split.y_train) + len(split.y_test) == len(data.y)
        assert data.task == "regression" or set(split.y_test) <= set(split.y_train)
    assert np.isnan(data.X).any() == (name == "mice_protein")


def test_mice_protein_has_72_mice_of_15_rows():
    data = load("mice_protein")
    mice, rows = np.unique(data.groups, return_counts=True)
    assert len(mice) == 72
    assert set(rows) == {15}
    assert np.isnan(data.X).sum() == 1396
    train, test = data.split_rows("groups")
    assert len(set(data.groups[test])) == 15
    assert not set(data.groups[train]) & set(data.groups[test])


def test_the_split_by_groups_is_harder_than_the_one_by_rows():
    data = load("mice_protein")
    score = {
        kind: seqatt.evaluate(*data.split(kind), seeds=[0], task=data.task, device="cpu")["accuracy"][0]
        for kind in ("rows", "groups")
    }
    assert score["rows"] > 0.95
    assert score["groups"] < score["rows"] - 0.05


def test_no_subject_of_activity_and_isolet_is_on_both_sides():
    activity, isolet = load("activity"), load("isolet")
    assert [len(rows) for rows in activity.split_rows()] == [7352, 2947]
    assert not set(activity.groups[:7352]) & set(activity.groups[7352:])
    assert set(isolet.groups[:6238]) == {1, 2, 3, 4}
    assert len(isolet.split().y_test) == 1559


def test_the_original_files_of_mnist_are_parsed():
    """The idx files are rebuilt from the arrays; their published checksums prove that they are the originals."""
    data = load("mnist")
    images, labels = data.X.reshape(-1, 28, 28), data.y.astype(np.uint8)
    originals = {
        "train-images-idx3-ubyte.gz": (images[:60000], "6bbc9ace898e44ae57da46a324031adb"),
        "train-labels-idx1-ubyte.gz": (labels[:60000], "a25bea736e30d166cdddb491f175f624"),
        "t10k-images-idx3-ubyte.gz": (images[60000:], "2646ac647ad5339dbf082846283269ea"),
        "t10k-labels-idx1-ubyte.gz": (labels[60000:], "27ae3e4e09519cfbb04c329615203637"),
    }
    files = {}
    for name, (values, md5) in originals.items():
        files[name] = idx_file(values)
        assert hashlib.md5(gzip.decompress(files[name])).hexdigest() == md5
    arrays = PARSERS["mnist"](files)
    np.testing.assert_array_equal(arrays["X_train"], data.X[:60000])
    np.testing.assert_array_equal(arrays["y_test"], data.y[60000:])
    assert arrays["feature_names"].tolist() == list(data.feature_names)
    assert arrays["target_names"].tolist() == list(data.target_names)


def test_coil20_images_are_resized_to_the_stored_ones():
    data = load("coil20")
    with np.load(locate(CATALOGUE["coil20"]).path, allow_pickle=False) as file:
        large, pose = file["images_128"], file["pose"]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for image, number, angle in zip(large, data.y, pose, strict=True):
            png = io.BytesIO()
            Image.fromarray(image).save(png, "PNG", compress_level=1)
            archive.writestr(f"coil-20-proc/obj{number + 1}__{angle}.png", png.getvalue())
    arrays = PARSERS["coil20"]({"coil-20-proc.zip": stream.getvalue()})
    np.testing.assert_array_equal(arrays["X"], data.X)
    np.testing.assert_array_equal(arrays["y"], data.y)
    assert arrays["target_names"].tolist() == list(data.target_names)
    assert arrays["feature_names"].tolist() == list(data.feature_names)


def test_mice_protein_values_are_unchanged_by_a_workbook():
    data = load("mice_protein")
    with np.load(locate(CATALOGUE["mice_protein"]).path, allow_pickle=False) as file:
        mice = file["mouse_id"].tolist()
    book = workbook(mice, data.feature_names, data.X, np.array(data.target_names)[data.y].tolist())
    arrays = PARSERS["mice_protein"]({"a.zip": zip_archive({"Data_Cortex_Nuclear.xls": book})})
    np.testing.assert_array_equal(arrays["X"], data.X)
    np.testing.assert_array_equal(arrays["y"], data.y)
    assert arrays["feature_names"].tolist() == list(data.feature_names)
    assert arrays["target_names"].tolist() == list(data.target_names)
    assert arrays["mouse_id"].tolist() == mice
