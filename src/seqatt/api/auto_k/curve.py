"""Scores of networks by number of features, and the number that a rule chooses from them.

The score of two classes is the AUC, which needs neither balanced classes nor calibrated outputs; that of more classes
and of several labels is the accuracy, and that of numbers R².
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.answer_options import BEST, ONE_STANDARD_ERROR
from seqatt.api.evaluation import Metrics

MARGIN = (
    0.01  # share of the gain of the best size that counts as nothing, where one standard error is even less
)
NOTHING = 2.0  # standard errors by which the best size must beat no features, else none is chosen


def choose_size(curve: dict[str, Any], rule: str | float) -> int:
    """The number of features that the rule chooses; 0 if no size is clearly better than no features."""
    sizes, means, errors = curve["sizes"], np.array(curve["means"]), np.array(curve["standard_errors"])
    best = int(means.argmax())
    if means[best] - curve["no_features"] <= NOTHING * errors[best]:
        return 0
    if rule == BEST:
        return int(sizes[best])
    if rule == ONE_STANDARD_ERROR:
        enough = means[best] - max(errors[best], MARGIN * (means[best] - curve["no_features"]))
    else:
        share = float(rule)
        enough = curve["no_features"] + share * (curve["all_features"] - curve["no_features"])
    reaches = np.flatnonzero(means >= min(enough, means[best]))
    return int(sizes[reaches[0]])


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
    of_positive = _share_below(below, above)
    of_negative = 1 - _share_below(above, below)
    variance = _variance(of_positive) / len(above) + _variance(of_negative) / len(below)
    return {"mean": float(of_positive.mean()), "standard_error": float(np.sqrt(variance))}


def _share_below(values: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the sorted values below each point; ties count half."""
    left, right = np.searchsorted(values, points, "left"), np.searchsorted(values, points, "right")
    return np.asarray((left + right) / (2 * len(values)))


def _variance(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
