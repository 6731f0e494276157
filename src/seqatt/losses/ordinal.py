"""Ordinal targets: levels in an order, such as grades, by one logistic loss per step from a level to the next.

A target of K levels becomes K - 1 labels, "above level j" (Frank and Hall 2001; Li and Lin 2007). So a mistake costs
the more, the more levels it is away, and no distance between levels is assumed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.losses.classes import MultilabelLoss
from seqatt.losses.loss import Encoding, Floats, Metrics, Score, explained, one_number

MAX_LEVELS = 50


class OrdinalLoss(MultilabelLoss):
    """Outputs and targets have a column per level but the lowest; the predicted level counts the outputs above 0."""

    name, metrics, score_name = "ordinal", ("mae", "kappa", "accuracy"), "d2"
    numeric, smoothed = True, False

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        levels = np.unique(one_number(y, argument, self.name))
        if not 2 <= len(levels) <= MAX_LEVELS:
            raise ValueError(
                f"{argument}: task='ordinal' needs 2 to {MAX_LEVELS} levels, got {len(levels)}; use 'regression'"
            )
        encoding = Encoding(np.empty(0), len(levels) - 1, levels)
        return encoding._replace(values=self.encode(y, encoding, argument))

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        values = one_number(y, argument, self.name)
        unknown = values[~np.isin(values, encoding.classes)]
        if len(unknown):
            raise ValueError(f"{argument}: level {unknown[0]:g} does not occur in the training rows")
        return np.asarray(values > encoding.classes[:-1], dtype=np.float32)

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        """Mean absolute error in levels, Cohen's kappa with quadratic weights, accuracy."""
        predicted, level = (outputs > 0).sum(1), targets.sum(1)
        by_chance = ((predicted[:, None] - np.arange(targets.shape[1] + 1)) ** 2).mean(0)
        expected = by_chance @ np.bincount(level.astype(np.int64), minlength=targets.shape[1] + 1)
        squares = float(((predicted - level) ** 2).sum())
        return {
            "mae": float(np.abs(predicted - level).mean()),
            "kappa": 1 - squares / expected if expected > 0 else float("nan"),
            "accuracy": float((predicted == level).mean()),
        }

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """The share of the absolute error, in levels, that the features save."""
        level = targets.sum(1)
        return explained(np.abs((outputs > 0).sum(1) - level), np.abs(np.median(level) - level))

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return 0.0
