"""The score of a network's outputs on test rows, with its standard error over the rows.

The score of two classes is the AUC, which needs neither balanced classes nor calibrated outputs; that of more classes
and of several labels is the accuracy, and that of numbers R².
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.evaluation import Metrics, share_below

METRICS = {"binary": "auc", "multiclass": "accuracy", "multilabel": "accuracy", "regression": "r2"}


class Score(NamedTuple):
    """A mean over folds and its standard error over their rows."""

    mean: float
    standard_error: float


def score_outputs(task: str, outputs: NDArray[np.float64], targets: NDArray[Any]) -> Metrics:
    """The score of outputs (n, o) and its standard error over the rows; targets are encoded as in training."""
    if task == "binary":
        logit = outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0]
        return _auc(logit, targets.reshape(-1) > 0.5)
    if task == "regression":
        variance = targets.var(0)
        rows = (1 - (outputs - targets) ** 2 / np.where(variance > 0, variance, 1.0)).mean(1)
    elif task == "multilabel":
        rows = ((outputs > 0) == (targets > 0.5)).mean(1)
    else:
        rows = (outputs.argmax(1) == targets).astype(np.float64)
    return {"mean": float(rows.mean()), "standard_error": float(rows.std(ddof=1) / np.sqrt(len(rows)))}


def score_without_features(task: str, train: NDArray[Any], test: NDArray[Any]) -> float:
    """The score of what is most frequent among the training rows, or of their mean."""
    if task == "binary":
        return 0.5
    if task == "regression":
        return 0.0
    if task == "multilabel":
        return float(((train.mean(0) > 0.5) == (test > 0.5)).mean())
    return float((test == np.bincount(train).argmax()).mean())


def _auc(logit: NDArray[np.float64], positive: NDArray[np.bool_]) -> Metrics:
    """AUC with its standard error by DeLong, DeLong and Clarke-Pearson (1988)."""
    above, below = np.sort(logit[positive]), np.sort(logit[~positive])
    if not (len(above) and len(below)):
        return {"mean": 0.5, "standard_error": 0.0}
    of_positive = share_below(below, above)
    of_negative = 1 - share_below(above, below)
    variance = _variance(of_positive) / len(above) + _variance(of_negative) / len(below)
    return {"mean": float(of_positive.mean()), "standard_error": float(np.sqrt(variance))}


def _variance(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
