"""scikit-learn's LASSO as a reference: the features with the largest coefficients where the path first has k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, MultiTaskLasso, lars_path
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

STRENGTHS = 60  # of the penalty, from strong to weak, where there is no exact path


def select_by_lasso(X: Any, y: NDArray[Any], task: str, k: int) -> list[int]:
    """Least squares by LARS, classes by logistic regression; several outputs and classes share their features."""
    numbers = StandardScaler().fit_transform(
        X if isinstance(X, np.ndarray) else OrdinalEncoder().fit_transform(X)
    )
    coefficients = np.zeros(numbers.shape[1])
    for coefficients in _path(numbers, y, task):
        if np.count_nonzero(coefficients) >= k:
            break
    return [int(i) for i in np.argsort(-coefficients, kind="stable")[:k]]


def _path(X: NDArray[np.float64], y: NDArray[Any], task: str) -> Any:
    """Absolute coefficients per feature, from the strongest penalty on."""
    if task == "binary":
        # Before scikit-learn 1.8, l1_ratio=1 alone is no LASSO.
        lasso = {"l1_ratio": 1} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}
        for strength in np.geomspace(1e-4, 10, STRENGTHS):
            model = LogisticRegression(**lasso, solver="liblinear", C=strength, random_state=0)
            yield np.abs(model.fit(X, y).coef_[0])
        return
    values = np.eye(int(y.max()) + 1)[y] if task == "multiclass" else y.reshape(len(y), -1)
    values = (values - values.mean(0)) / values.std(0)
    if values.shape[1] == 1:
        _, _, coefficients = lars_path(X, values[:, 0], method="lasso", max_iter=500)
        yield from np.abs(coefficients).T
        return
    strongest = np.sqrt(((X.T @ values) ** 2).sum(1)).max() / len(X)
    for strength in strongest * np.geomspace(1, 0.01, STRENGTHS):
        yield np.abs(MultiTaskLasso(alpha=strength, max_iter=2000).fit(X, values).coef_).sum(0)
