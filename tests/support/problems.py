"""Problems with a known answer."""

from __future__ import annotations

import numpy as np

Problem = tuple[np.ndarray, np.ndarray]


def linear_problem(task: str, *, rows: int = 300, features: int = 8, seed: int = 0) -> Problem:
    """Features 1 and 4 decide; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    signal = 2 * X[:, 1] - 2 * X[:, 4]
    other = X[:, 1] + X[:, 4]
    targets = {
        "binary": (signal > 0).astype(int),
        "multiclass": np.digitize(signal, [-1.5, 1.5]),
        "multilabel": np.stack([signal > 0, other > 0], 1).astype(int),
        "regression": signal + 0.1 * rng.normal(size=rows),
        "multi-output": np.stack([signal, other], 1) + 0.1 * rng.normal(size=(rows, 2)),
    }
    return X, targets[task]
