"""Losses of classes: logistic for two classes and for several labels, softmax for more classes.

Labels are encoded where they are read, in ``data/tables/target.py``, because they may be of any type.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from seqatt.losses.loss import Floats, Loss, Metrics, Score, mean_score

# Outputs are usually a view of a (T, o, B) tensor; a softmax over o is much faster in that layout.


class SoftmaxLoss(Loss):
    """More than two classes: targets are class numbers (T, B)."""

    name, metrics, score_name = "multiclass", ("accuracy",), "accuracy"
    numeric, streams, smoothed = False, True, True

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        return -torch.log_softmax(out.mT, 1).gather(1, y.unsqueeze(1)).squeeze(1)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        grad = torch.softmax(out.mT, 1)
        label = y.unsqueeze(1)
        grad.scatter_add_(1, label, minus_ones(label.shape, grad.dtype, grad.device))
        return grad.mT

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        return {"accuracy": float((outputs.argmax(1) == targets).mean())}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        return mean_score((outputs.argmax(1) == targets).astype(np.float64))

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return float((test == np.bincount(train).argmax()).mean())


class MultilabelLoss(Loss):
    """Several labels of 0 and 1: the mean of their logistic losses."""

    name, score_name = "multilabel", "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    numeric, smoothed = False, True

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(out, y, reduction="none").mean(-1)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        grad = torch.sigmoid(out).sub_(y)
        return grad if out.shape[-1] == 1 else grad.div_(out.shape[-1])

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        return {"accuracy": float(((outputs > 0) == (targets > 0.5)).mean())}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        return mean_score(((outputs > 0) == (targets > 0.5)).mean(1))

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return float(((train.mean(0) > 0.5) == (test > 0.5)).mean())


class LogisticLoss(MultilabelLoss):
    """Two classes. Their score is the AUC, which needs neither balanced classes nor calibrated outputs."""

    name, metrics, score_name = "binary", ("accuracy", "auc", "log_loss"), "auc"
    streams = True

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        logit, label = _logit(outputs), targets[:, 0]
        above, below = logit[label > 0.5], np.sort(logit[label <= 0.5])
        return {
            "accuracy": float(((logit > 0) == (label > 0.5)).mean()),
            # From scikit-learn both would be a call, but its import takes longer than a small selection.
            "auc": float(share_below(below, above).mean()) if len(above) and len(below) else float("nan"),
            "log_loss": float(np.logaddexp(0.0, np.where(label > 0.5, -logit, logit)).mean()),
        }

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """AUC with its standard error by DeLong, DeLong and Clarke-Pearson (1988)."""
        logit, positive = _logit(outputs), targets.reshape(-1) > 0.5
        above, below = np.sort(logit[positive]), np.sort(logit[~positive])
        if not (len(above) and len(below)):
            return Score(0.5, 0.0)
        of_positive = share_below(below, above)
        of_negative = 1 - share_below(above, below)
        variance = _variance(of_positive) / len(above) + _variance(of_negative) / len(below)
        return Score(float(of_positive.mean()), float(np.sqrt(variance)))

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return 0.5

    def noise_error(self, test: NDArray[Any]) -> float:
        """That of Mann and Whitney's statistic (1947), which is exact for any number of rows."""
        positive = int((test > 0.5).sum())
        negative = test.size - positive
        return float(np.sqrt((test.size + 1) / (12 * positive * negative))) if positive and negative else 0.0


@lru_cache(maxsize=16)
def minus_ones(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full(shape, -1.0, dtype=dtype, device=device)


def share_below(values: Floats, points: Floats) -> Floats:
    """The share of the sorted values below each point; ties count half."""
    left, right = np.searchsorted(values, points, "left"), np.searchsorted(values, points, "right")
    return np.asarray((left + right) / (2 * len(values)))


def _logit(outputs: Floats) -> Floats:
    return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0]


def _variance(values: Floats) -> float:
    """The variance of shares between 0 and 1; of a single one, that of noise."""
    return float(values.var(ddof=1)) if len(values) > 1 else 1 / 12
