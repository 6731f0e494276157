"""Two common ways to choose features without a network, for comparison."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import mutual_info_classif


def forest(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> list[int]:
    """The k features that lower impurity most in 500 random trees."""
    trees = RandomForestClassifier(500, random_state=seed, n_jobs=-1).fit(X, y)
    return best(trees.feature_importances_, k)


def mutual_information(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> list[int]:
    """The k features that, each alone, tell most about the class.

    A table of at most 100 distinct whole numbers holds counts or categories and is taken as such.
    """
    discrete = bool(np.array_equal(X, np.round(X)) and len(np.unique(X)) <= 100)
    return best(mutual_info_classif(X, y, discrete_features=discrete, random_state=seed), k)


def best(scores: np.ndarray, k: int) -> list[int]:
    """Positions of the k largest, best first."""
    return np.argsort(-scores, kind="stable")[:k].tolist()


RIVALS = {"forest": forest, "mutual_information": mutual_information}
