"""A synthetic problem: five informative features that act jointly, fifteen linear combinations, 480 of noise."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification

from seqatt.datasets import Dataset

ROWS, FEATURES, INFORMATIVE, REDUNDANT = 2_000, 500, 5, 15


def planted(seed: int) -> Dataset:
    """A data set whose classes each have a random half of the 32 corners of a five-dimensional hypercube.

    One informative feature alone says little about the class; all five together determine it almost fully.
    ``feature_names`` begin with the kind of the column: informative, redundant or noise.
    """
    X, y = _make(seed, shuffle=True)
    unshuffled, _ = _make(seed, shuffle=False)
    # Shuffling moves rows and columns but changes no value, so a sorted column identifies its origin.
    kinds = ["informative"] * INFORMATIVE + ["redundant"] * REDUNDANT
    kinds += ["noise"] * (FEATURES - len(kinds))
    kind_of = {
        column.tobytes(): kind for column, kind in zip(np.sort(unshuffled, 0).T.copy(), kinds, strict=True)
    }
    names = tuple(f"{kind_of[c.tobytes()]}_{i}" for i, c in enumerate(np.sort(X, 0).T.copy()))
    return Dataset(
        name="planted",
        title="Planted problem",
        X=X,
        y=y,
        feature_names=names,
        target_names=("0", "1"),
        task="binary",
        licence="generated",
        citation="scikit-learn's make_classification",
        splits=("rows",),
    )


def _make(seed: int, *, shuffle: bool) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        ROWS,
        FEATURES,
        n_informative=INFORMATIVE,
        n_redundant=REDUNDANT,
        n_clusters_per_class=16,
        flip_y=0.01,
        class_sep=1.0,
        shuffle=shuffle,
        random_state=seed,
    )
