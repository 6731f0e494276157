"""Reads the data sets that scikit-learn includes."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from seqatt.datasets.entry import DatasetEntry
from seqatt.datasets.npz import Arrays

OPTIONS = {"diabetes": {"scaled": False}}  # by default scikit-learn standardises this one


def read_bundled(entry: DatasetEntry) -> Arrays:
    """The arrays of one of scikit-learn's data sets, with raw values."""
    loader = getattr(import_module("sklearn.datasets"), f"load_{entry.name}")
    data = loader(**OPTIONS.get(entry.name, {}))
    labels = [str(name) for name in data.target_names] if entry.classes else ["progression"]
    return {
        "X": data.data,
        "y": data.target,
        "feature_names": np.array([str(name) for name in data.feature_names]),
        "target_names": np.array(labels),
    }
