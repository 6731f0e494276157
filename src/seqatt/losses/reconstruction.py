"""Reconstruction: the target is the table itself; the selected features predict all its columns.

A selected feature predicts itself, so it is selected for what it tells about the others. All input columns have the
same weight: a category is encoded such that the variances of its columns add up to 1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from seqatt.losses.loss import Encoding, Floats, Metrics, Score, mean_score
from seqatt.losses.squared import SquaredError


class ReconstructionLoss(SquaredError):
    """Squared error of the standardised columns; a target is made of the encoded table, not of ``y``."""

    name = "reconstruction"
    metrics: ClassVar[tuple[str, ...]] = ("r2",)
    streams, has_univariate_test = False, False

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        raise ValueError(f"{argument}: task='reconstruction' predicts the table itself; leave {argument} out")

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        return {"r2": self.score(outputs, targets).mean}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """The share of the variance of all features that is explained."""
        total = targets.astype(np.float64).var(0).sum()
        return mean_score(1 - ((outputs - targets) ** 2).sum(1) / (total if total > 0 else 1.0))
