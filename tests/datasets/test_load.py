"""Data sets on this machine are loaded with raw values, split as documented, and refused if damaged."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import seqatt
from seqatt.datasets.catalogue import CATALOGUE
from seqatt.datasets.entry import DataError

BUNDLED = ["iris", "wine", "breast_cancer", "digits", "diabetes"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "data" / "extra").mkdir(parents=True)
    monkeypatch.setenv("SEQATT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def mice(folder, monkeypatch) -> dict[str, np.ndarray]:
    """A small Mice Protein: 48 mice of 5 rows each, 8 classes, some missing values; mice differ strongly."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(48) % 8, 5)
    X = rng.normal(size=(240, 6)) + 3 * np.repeat(rng.normal(size=(48, 6)), 5, axis=0)
    X[rng.random(X.shape) < 0.1] = np.nan
    arrays = {
        "X": X,
        "y": y.astype(np.uint8),
        "feature_names": np.array([f"p{i}" for i in range(6)]),
        "target_names": np.array(list("abcdefgh")),
        "mouse_id": np.array([f"J_{mouse}_{row}" for mouse in range(48) for row in range(1, 6)]),
    }
    np.savez(folder / "mice_protein.npz", **arrays)
    small = dataclasses.replace(CATALOGUE["mice_protein"], rows=(240,), features=6)
    monkeypatch.setitem(CATALOGUE, "mice_protein", small)
    return arrays


@pytest.mark.parametrize("name", BUNDLED)
def test_data_sets_of_scikit_learn_are_complete_and_raw(name):
    data = seqatt.datasets.load(name)
    entry = seqatt.datasets.info(name)
    assert data.X.shape == (*entry.rows, entry.features)
    assert len(data.feature_names) == entry.features
    assert data.task == (
        "regression" if name == "diabetes" else "binary" if name == "breast_cancer" else "multiclass"
    )
    assert data.licence
    assert data.citation
    assert np.abs(data.X.mean(0)).max() > 0.5  # standardised values would be around zero


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_entry_has_licence_citation_and_size(name):
    entry = seqatt.datasets.info(name)
    assert entry.name == name
    assert entry.title
    assert entry.licence
    assert len(entry.citation) > 30
    assert ("official" in entry.splits) == (len(entry.rows) == 2)
    assert entry.image_shape is None or np.prod(entry.image_shape) == entry.features


def test_names_are_those_of_the_catalogue_and_a_wrong_one_gets_a_hint():
    wanted = {"mice_protein", "mnist", "fashion_mnist", "isolet", "coil20", "activity", *BUNDLED}
    assert wanted < set(seqatt.datasets.names())
    with pytest.raises(ValueError, match="no data set 'Fashion-MNIST'; did you mean 'fashion_mnist'"):
        seqatt.datasets.load("Fashion-MNIST")
    with pytest.raises(ValueError, match="the names are mice_protein, mnist"):
        seqatt.datasets.load("xyzzy")


def test_values_are_raw_with_nan_for_missing(mice):
    data = seqatt.datasets.load("mice_protein")
    np.testing.assert_array_equal(data.X, mice["X"])
    assert np.isnan(data.X).any()
    assert data.y.dtype == np.int64
    assert data.groups.tolist() == [f"J_{mouse}" for mouse in range(48) for _ in range(5)]


def test_a_split_by_rows_shares_mice_and_one_by_groups_does_not(mice):
    data = seqatt.datasets.load("mice_protein")
    for seed in range(5):
        train, test = data.split_rows(seed=seed)
        assert sorted([*train, *test]) == list(range(240))
        assert len(test) == 48
        assert set(data.groups[train]) & set(data.groups[test])
        train, test = data.split_rows("groups", seed=seed)
        assert sorted([*train, *test]) == list(range(240))
        assert not set(data.groups[train]) & set(data.groups[test])
        assert set(data.y[train]) == set(range(8))
    first, again, other = (data.split_rows("groups", seed=s)[1].tolist() for s in (0, 0, 1))
    assert first == again != other


def test_a_random_split_keeps_classes_in_proportion():
    data = seqatt.datasets.load("breast_cancer")
    split = data.split(seed=3)
    assert len(split.y_test) == 114
    assert abs(split.y_test.mean() - data.y.mean()) < 0.01
    np.testing.assert_array_equal(split.X_test, data.X[data.split_rows(seed=3)[1]])


def test_an_official_split_is_that_of_the_source_for_every_seed(folder, monkeypatch):
    small = dataclasses.replace(CATALOGUE["isolet"], rows=(52, 26), features=2)
    monkeypatch.setitem(CATALOGUE, "isolet", small)
    X, y = np.arange(156.0).reshape(78, 2), np.arange(78) % 26
    np.savez(
        folder / "isolet.npz", X_train=X[:52], y_train=y[:52], X_test=X[52:], y_test=y[52:],
        subset_train=np.repeat([1, 2], 26), feature_names=np.array(["f1", "f2"]),
        target_names=np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    )  # fmt: skip
    data = seqatt.datasets.load("isolet")
    for seed in (0, 1):
        split = data.split(seed=seed)
        np.testing.assert_array_equal(split.X_train, X[:52])
        np.testing.assert_array_equal(split.X_test, X[52:])
        np.testing.assert_array_equal(split.y_test, y[52:])
    assert set(data.groups[52:]) == {5}
    with pytest.raises(ValueError, match="kind: isolet has no split 'rows'; it has 'official'"):
        data.split("rows")


def test_a_split_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="kind: wine has no split 'official'; it has 'rows'"):
        seqatt.datasets.load("wine").split("official")


def test_a_copy_without_mouse_ids_has_no_split_by_groups(mice, folder):
    del mice["mouse_id"]
    np.savez(folder / "mice_protein.npz", **mice)
    data = seqatt.datasets.load("mice_protein")
    assert len(data.split().y_test) == 48
    with pytest.raises(ValueError, match="has no groups of rows"):
        data.split("groups")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "has no array 'X', mice_protein needs X, y, feature_names, target_names"),
        ({"X": np.zeros((240, 7))}, "X has shape (240, 7), mice_protein has (240, 6)"),
        ({"X": np.full((240, 6), "a")}, "X must hold numbers, not <U1"),
        ({"X": np.full((240, 6), None)}, "cannot be read as a .npz file (Object arrays cannot be loaded"),
        ({"y": np.zeros(240, int)}, "y must hold every class from 0 to 7, as integers"),
        ({"y": np.arange(240) % 8 / 1.0}, "y must hold every class from 0 to 7, as integers"),
        ({"y": np.zeros(239, int)}, "y has shape (239,), mice_protein has (240,)"),
        ({"target_names": np.array(["a"])}, "target_names must be 8 strings"),
        ({"mouse_id": np.array(["1_1"])}, "mouse_id must have 240 values"),
    ],
)
def test_a_file_that_is_not_the_data_set_is_refused(mice, folder, change, message):
    np.savez(folder / "mice_protein.npz", **{k: v for k, v in (mice | change).items() if v is not None})
    with pytest.raises(DataError) as caught:
        seqatt.datasets.load("mice_protein")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder / "mice_protein.npz"))


@pytest.mark.parametrize("keep", [0, 100, 2000, -40])
def test_a_truncated_file_is_refused(mice, folder, keep):
    whole = (folder / "mice_protein.npz").read_bytes()
    (folder / "mice_protein.npz").write_bytes(whole[:keep])
    with pytest.raises(DataError, match=r"cannot be read as a .npz file \(.*\); delete or replace it"):
        seqatt.datasets.load("mice_protein")


def test_a_damaged_file_is_refused(mice, folder):
    whole = bytearray((folder / "mice_protein.npz").read_bytes())
    whole[1000:1010] = bytes(b ^ 255 for b in whole[1000:1010])
    (folder / "mice_protein.npz").write_bytes(whole)
    with pytest.raises(DataError, match=r"cannot be read as a \.npz file"):
        seqatt.datasets.load("mice_protein")


def test_the_folder_is_preferred_to_the_cache_and_need_not_have_all_data_sets(mice, folder, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    np.savez(cache / "mice_protein.npz", **(mice | {"X": mice["X"] + 1}))
    np.testing.assert_array_equal(seqatt.datasets.load("mice_protein").X, mice["X"])
    (folder / "mice_protein.npz").unlink()
    np.testing.assert_array_equal(seqatt.datasets.load("mice_protein").X, mice["X"] + 1)


def test_the_error_about_a_data_set_without_download_names_its_file(folder):
    message = (
        "sylva: .*put extra/sylva.npz into the folder named by SEQATT_DATA_DIR, with the keys X, y, feature"
    )
    with pytest.raises(DataError, match=message):
        seqatt.datasets.load("sylva")


def test_a_folder_that_does_not_exist_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("SEQATT_DATA_DIR", str(tmp_path / "typo"))
    with pytest.raises(DataError, match=r"SEQATT_DATA_DIR: .*typo is not a folder"):
        seqatt.datasets.load("mnist")
    assert len(seqatt.datasets.load("iris").y) == 150


def test_imputation_and_scaling_are_fitted_on_training_rows_only(mice):
    """With missing values on both sides, the score of test rows does not depend on other test rows."""
    split = seqatt.datasets.load("mice_protein").split("groups")
    options = {"seeds": [0], "epochs": 20, "device": "cpu", "task": "multiclass"}
    alone = seqatt.evaluate(*split, **options)
    outliers = np.full((len(split.X_test), 6), 1e9)
    outliers[::2] = np.nan
    outlier_labels = (split.y_test + 1) % 8
    both = seqatt.evaluate(
        split.X_train,
        split.y_train,
        np.concatenate([split.X_test, outliers]),
        np.concatenate([split.y_test, outlier_labels]),
        **options,
    )
    other = seqatt.evaluate(split.X_train, split.y_train, outliers, outlier_labels, **options)
    np.testing.assert_allclose(both["accuracy"], (alone["accuracy"] + other["accuracy"]) / 2)
    assert 0 < alone["accuracy"][0] < 1


def test_a_frame_has_the_original_labels():
    frame = seqatt.datasets.load("wine").frame()
    assert list(frame.columns[:2]) == ["alcohol", "malic_acid"]
    assert set(frame["target"]) == {"class_0", "class_1", "class_2"}
    assert seqatt.datasets.load("diabetes").frame()["target"].mean() > 100


@pytest.mark.slow
def test_the_module_is_imported_on_first_use_and_without_torch():
    code = (
        "import sys, seqatt; assert 'seqatt.datasets' not in sys.modules; seqatt.datasets.load('iris'); "
        "sys.exit(bool({'torch', 'pooch', 'requests'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
