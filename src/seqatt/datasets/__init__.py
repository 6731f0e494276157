"""Named data sets: ``seqatt.datasets.load("mnist")``."""

from __future__ import annotations

from pathlib import Path

from seqatt.datasets.catalogue import CATALOGUE, find_entry
from seqatt.datasets.dataset import Dataset, Split, make_dataset, read_bundled
from seqatt.datasets.entry import DataError, DatasetEntry
from seqatt.datasets.locations import locate
from seqatt.datasets.npz import check_arrays, read_arrays

__all__ = ["DataError", "Dataset", "DatasetEntry", "Split", "fetch", "info", "load", "names"]


def names() -> list[str]:
    """The names of all data sets that ``load`` accepts."""
    return list(CATALOGUE)


def info(name: str) -> DatasetEntry:
    """Size, licence, citation and sources of a data set, without loading it."""
    return find_entry(name)


def fetch(name: str) -> Path | None:
    """Download a data set unless it is on this machine; returns its file, or None if scikit-learn includes it."""
    entry = find_entry(name)
    location = locate(entry)
    if location.where in ("download", "absent"):
        from seqatt.datasets.publisher_files import fetch_entry

        return fetch_entry(entry)
    return location.path


def load(name: str) -> Dataset:
    """Load a data set with raw values.

    It is read from the folder in ``SEQATT_DATA_DIR``, or from the user's cache, or downloaded from its original
    source into the cache. Values are not scaled and missing values are NaN: ``select`` and ``evaluate``
    standardise and impute with statistics of the training rows.

    Parameters
    ----------
    name : str
        One of ``names()``; ``info(name)`` gives size, licence and citation.

    Returns
    -------
    Dataset
        ``X, y, feature_names, target_names, task, groups, licence, citation``, and ``split()``.

    Raises
    ------
    DataError
        If the data set cannot be downloaded or read, or has an unexpected shape; the message names the remedy.

    Examples
    --------
    >>> import seqatt
    >>> wine = seqatt.datasets.load("wine")
    >>> X_train, y_train, X_test, y_test = wine.split(seed=0)
    >>> X_train.shape, X_test.shape
    ((142, 13), (36, 13))
    """
    entry = find_entry(name)
    if entry.bundled:
        arrays = read_bundled(entry)
        check_arrays(arrays, entry, "scikit-learn", "install another version of it")
        return make_dataset(entry, arrays)
    path = fetch(name)
    assert path is not None
    return make_dataset(entry, read_arrays(path, entry))
