"""Problems with a known answer."""

from __future__ import annotations

import numpy as np
import pandas as pd

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


def mixed_frame(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with missing values, a category of three values, one of thirty, a flag; all of them matter."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": 1e6 + rng.normal(size=rows), "age": rng.normal(size=rows)})
    frame.loc[::9, "age"] = np.nan
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], rows))
    frame.loc[::11, "colour"] = np.nan
    frame["city"] = rng.choice([f"city {i}" for i in range(30)], rows)
    frame["flag"] = rng.random(rows) > 0.5
    frame["noise"] = rng.normal(size=rows)
    south = frame["city"].str.slice(5).astype(int) < 15
    score = frame["size"] - 1e6 + frame["age"].fillna(2) + 2 * (frame["colour"] == "red") + 2 * south
    return frame, np.where(score + 2 * frame["flag"] > 3, "high", "low")
