"""Reads, checks and writes the .npz file of a data set; pickled objects are refused, writes are atomic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets.entry import DataError, DatasetEntry, writing_into
from seqatt.json_files import atomic_file

Arrays = dict[str, NDArray[Any]]
# Optional arrays, one value per row.
ROW_NOTES = ("mouse_id", "subject_train", "subject_test", "subset_train")


def read_arrays(path: Path, entry: DatasetEntry) -> Arrays:
    """The arrays of a .npz file, checked against the catalogue."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in (*entry.keys, *ROW_NOTES) if key in file.files}
    except Exception as error:  # a flipped bit in the archive's directory makes readers raise almost anything
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise DataError(f"{path}: cannot be read as a .npz file ({reason}); delete or replace it") from None
    check_arrays(arrays, entry, str(path), "delete it or put the right file there")
    return arrays


def check_arrays(arrays: Arrays, entry: DatasetEntry, source: str, remedy: str) -> None:
    """Check shapes, labels and names; an error message begins with ``source`` and ends with ``remedy``."""
    for problem in _problems(arrays, entry):
        raise DataError(f"{source}: {problem}; {remedy}")


def _problems(arrays: Arrays, entry: DatasetEntry) -> Iterator[str]:
    missing = [key for key in entry.keys if key not in arrays]
    if missing:
        yield f"has no array {missing[0]!r}, {entry.name} needs {', '.join(entry.keys)}"
    sides = ("_train", "_test") if len(entry.rows) == 2 else ("",)
    for side, rows in zip(sides, entry.rows, strict=True):
        X, y = arrays[f"X{side}"], arrays[f"y{side}"]
        if X.dtype.kind not in "biuf":
            yield f"X{side} must hold numbers, not {X.dtype}"
        if X.shape != (rows, entry.features):
            yield f"X{side} has shape {X.shape}, {entry.name} has {(rows, entry.features)}"
        if y.shape != (rows,):
            yield f"y{side} has shape {y.shape}, {entry.name} has {(rows,)}"
        if entry.classes and not (y.dtype.kind in "iu" and set(y.tolist()) == set(range(entry.classes))):
            yield f"y{side} must hold every class from 0 to {entry.classes - 1}, as integers"
        if not entry.classes and not (y.dtype.kind in "iuf" and np.isfinite(y).all()):
            yield f"y{side} must hold finite numbers"
    for key, length in (("feature_names", entry.features), ("target_names", max(entry.classes, 1))):
        if arrays[key].shape != (length,) or arrays[key].dtype.kind != "U":
            yield f"{key} must be {length} strings"
    for key in ROW_NOTES:
        rows = entry.rows[-1] if key.endswith("_test") else entry.rows[0]
        if key in arrays and arrays[key].shape != (rows,):
            yield f"{key} must have {rows} values"


def write_arrays(path: Path, arrays: Arrays, name: str) -> None:
    """Write a .npz file completely or not at all; the caller holds the lock of the data set."""
    with writing_into(path.parent, name):
        path.parent.mkdir(parents=True, exist_ok=True)
        for partial in path.parent.glob(f".{path.name}.*.part"):  # left by a process that was killed
            partial.unlink(missing_ok=True)
        with atomic_file(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
