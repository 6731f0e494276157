"""A planted problem: five features act only together, fifteen are combinations of them, 480 are noise."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification

from seqatt.datasets import Dataset

ROWS, FEATURES, INFORMATIVE, REDUNDANT = 2_000, 500, 5, 15


def planted(seed: int) -> Dataset:
    """Each class holds a random half of the 32 corners of a cube in five dimensions.

    A single feature tells little; all five tell nearly everything. ``feature_names`` say what each column
    is: informative, redundant or noise.
    """
    X, y = _make(seed, shuffle=True)
    in_order, _ = _make(seed, shuffle=False)
    # Shuffling moves rows and columns and changes no value, so a sorted column is known by its values.
    kinds = ["informative"] * INFORMATIVE + ["redundant"] * REDUNDANT
    kinds += ["noise"] * (FEATURES - len(kinds))
    known = {
        column.tobytes(): kind for column, kind in zip(np.sort(in_order, 0).T.copy(), kinds, strict=True)
    }
    names = tuple(f"{known[c.tobytes()]}_{i}" for i, c in enumerate(np.sort(X, 0).T.copy()))
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
