"""Parsers of the publishers' files; each returns the arrays of the .npz file."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from struct import error as struct_error
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets.entry import DatasetEntry
from seqatt.datasets.npz import Arrays

PARSE_ERRORS = (
    ValueError, KeyError, IndexError, TypeError, OSError, EOFError, NotImplementedError, AssertionError,
    struct_error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip

MICE = ("t-SC-s", "c-SC-s", "t-SC-m", "c-SC-m", "t-CS-s", "c-CS-s", "t-CS-m", "c-CS-m")
CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def parse(entry: DatasetEntry, files: dict[str, Path]) -> Arrays:
    """The arrays of a data set from its downloaded files, by file name."""
    return PARSERS[entry.parser]({name: path.read_bytes() for name, path in files.items()})


def _digits(files: dict[str, bytes], labels: tuple[str, ...]) -> Arrays:
    arrays = {"feature_names": _pixels(28, 28), "target_names": np.array(labels)}
    for side, prefix in (("train", "train"), ("test", "t10k")):
        images = _idx(files[f"{prefix}-images-idx3-ubyte.gz"], dimensions=3)
        arrays[f"X_{side}"] = images.reshape(len(images), -1)
        arrays[f"y_{side}"] = _idx(files[f"{prefix}-labels-idx1-ubyte.gz"], dimensions=1)
    return arrays


def _idx(packed: bytes, dimensions: int) -> NDArray[np.uint8]:
    """An idx file: two zeros, 8 (unsigned bytes), the number of dimensions, each size as 4 bytes, the values."""
    data = gzip.decompress(packed)
    if data[:4] != bytes([0, 0, 8, dimensions]):
        raise ValueError("not an idx file of bytes")
    shape = np.frombuffer(data, ">u4", count=dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _mice_protein(files: dict[str, bytes]) -> Arrays:
    import xlrd

    content = _member(_only(files), "Data_Cortex_Nuclear.xls")
    try:
        sheet = xlrd.open_workbook(file_contents=content).sheet_by_index(0)
    except (xlrd.XLRDError, xlrd.compdoc.CompDocError) as error:
        raise ValueError(str(error)) from None
    header, *rows = (sheet.row_values(i) for i in range(sheet.nrows))
    column = {str(name): [row[i] for row in rows] for i, name in enumerate(header)}
    proteins = [name for name in column if name.endswith("_N")]
    values = [[np.nan if v == "" else float(v) for v in column[name]] for name in proteins]
    notes = {"mouse_id": "MouseID", "genotype": "Genotype", "treatment": "Treatment", "behavior": "Behavior"}
    return {
        "X": np.array(values).T.copy(),
        "y": np.array([MICE.index(label) for label in column["class"]]),
        "feature_names": np.array(proteins),
        "target_names": np.array(MICE),
        **{key: np.array([str(value) for value in column[name]]) for key, name in notes.items()},
    }


def _isolet(files: dict[str, bytes]) -> Arrays:
    import unlzw3

    arrays: Arrays = {"target_names": np.array(LETTERS)}
    for side, file in (("train", "isolet1+2+3+4.data.Z"), ("test", "isolet5.data.Z")):
        text = unlzw3.unlzw(_member(_only(files), file))
        table = np.loadtxt(io.BytesIO(text), delimiter=",", ndmin=2)
        arrays[f"X_{side}"] = table[:, :-1].astype(np.float32)
        arrays[f"y_{side}"] = table[:, -1].astype(np.int64) - 1
    return arrays | {"feature_names": _numbered(arrays["X_train"].shape[1])}


def _activity(files: dict[str, bytes]) -> Arrays:
    archive = _only(files)
    if not any(name.endswith("features.txt") for name in _members(archive)):
        archive = _member(archive, "UCI HAR Dataset.zip")
    names, labels = (
        [line.split(maxsplit=1)[1].strip() for line in _member(archive, file).decode().splitlines() if line]
        for file in ("features.txt", "activity_labels.txt")
    )
    arrays = {"feature_names": np.array(names), "target_names": np.array(labels)}
    for side in ("train", "test"):
        for key, kind in (("X", np.float32), ("y", np.int64), ("subject", np.int64)):
            text = _member(archive, f"{side}/{key}_{side}.txt")
            arrays[f"{key}_{side}"] = np.loadtxt(io.BytesIO(text), ndmin=2 if key == "X" else 1).astype(kind)
        arrays[f"y_{side}"] -= 1
    return arrays


def _coil20(files: dict[str, bytes]) -> Arrays:
    from PIL import Image

    images = []
    with zipfile.ZipFile(io.BytesIO(_only(files))) as archive:
        for member in archive.namelist():
            match = re.fullmatch(r"obj(\d+)__(\d+)\.png", PurePosixPath(member).name)
            if match:
                with Image.open(io.BytesIO(archive.read(member))) as image:
                    grey = image.convert("L")
                if grey.size != (128, 128):
                    raise ValueError(f"{member} is not 128 x 128 pixels")
                small = grey.resize((20, 20), Image.Resampling.BICUBIC)
                images.append((int(match[1]), int(match[2]), np.array(small), np.array(grey)))
    images.sort(key=lambda item: item[:2])
    objects, poses, small_images, large_images = zip(*images, strict=True)
    return {
        "X": np.stack(small_images).reshape(len(images), -1),
        "y": np.array(objects) - 1,
        "pose": np.array(poses),
        "images_128": np.stack(large_images),
        "feature_names": _pixels(20, 20),
        "target_names": np.array([f"obj{i}" for i in sorted(set(objects))]),
    }


def _matlab(files: dict[str, bytes]) -> Arrays:
    import scipy.sparse as sp
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(io.BytesIO(_only(files)), variable_names=["X", "Y"])
    except MatReadError as error:
        raise ValueError(str(error)) from None
    X = content["X"].toarray() if sp.issparse(content["X"]) else content["X"]
    labels, y = np.unique(np.ravel(content["Y"]), return_inverse=True)
    return {
        "X": X,
        "y": y,
        "feature_names": _numbered(X.shape[1]),
        "target_names": np.array([f"{label:g}" for label in labels.tolist()]),
    }


def _only(files: dict[str, bytes]) -> bytes:
    (content,) = files.values()
    return content


def _members(archive: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return file.namelist()


def _member(archive: bytes, path: str) -> bytes:
    """The file of a zip archive whose path is ``path`` or ends with it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        for name in file.namelist():
            if name == path or name.endswith("/" + path):
                return file.read(name)
    raise KeyError(f"{path} is not in the archive")


def _pixels(height: int, width: int) -> NDArray[Any]:
    return np.array([f"pixel_{row:02}_{column:02}" for row in range(height) for column in range(width)])


def _numbered(features: int) -> NDArray[Any]:
    return np.array([f"f{i}" for i in range(1, features + 1)])


PARSERS: dict[str, Callable[[dict[str, bytes]], Arrays]] = {
    "mnist": lambda files: _digits(files, tuple("0123456789")),
    "fashion_mnist": lambda files: _digits(files, CLOTHES),
    "mice_protein": _mice_protein,
    "isolet": _isolet,
    "activity": _activity,
    "coil20": _coil20,
    "matlab": _matlab,
}
