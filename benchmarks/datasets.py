"""The paper's six data sets, read from .npz files in the folder SEQATT_DATA_DIR."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

# Epochs, batch size and seconds of one trial, from the paper's efficiency table.
PAPER = {
    "mice_protein": (2000, 256, 57.5),
    "mnist": (50, 256, 54.5),
    "fashion_mnist": (250, 128, 279.5),
    "isolet": (500, 256, 61.0),
    "coil20": (1000, 256, 52.0),
    "activity": (1000, 512, 123.0),
}
Rows = tuple[np.ndarray, np.ndarray]


def load(name: str) -> tuple[Rows, Rows]:
    """Training and test rows; without an official split, a random fifth is for testing."""
    if "SEQATT_DATA_DIR" not in os.environ:
        raise SystemExit("Set SEQATT_DATA_DIR to the folder with the data sets' .npz files.")
    with np.load(Path(os.environ["SEQATT_DATA_DIR"]) / f"{name}.npz") as file:
        if "X_train" in file:
            return (file["X_train"], file["y_train"]), (file["X_test"], file["y_test"])
        X, y = file["X"], file["y"]
    order = np.random.default_rng(1).permutation(len(y))
    train, test = order[len(y) // 5 :], order[: len(y) // 5]
    return (X[train], y[train]), (X[test], y[test])
