"""Squared error: of numbers to predict."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from seqatt.losses.loss import Encoding, Floats, Loss, Metrics, Score, mean_score, to_floats


class SquaredError(Loss):
    """Numbers, standardised; the mean over several of them."""

    name, score_name = "regression", "r2"
    metrics: ClassVar[tuple[str, ...]] = ("r2", "rmse")
    streams = True

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        values = to_floats(y, argument)
        values = values[:, None] if values.ndim == 1 else values
        shift, scale = moments(values, weights, argument)
        standard = ((values - shift) / scale).astype(np.float32)
        return Encoding(standard, values.shape[1], None, shift, scale)

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        values = to_floats(y, argument)
        return values[:, None] if values.ndim == 1 else values

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        return (out - y).square().mean(-1)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        return (out - y).mul_(2 / out.shape[-1])

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        error = outputs * encoding.scale + encoding.shift - targets
        size = float(max(np.abs(error).max(), np.abs(targets).max()))
        unit = 1.0 if 1e-100 < size < 1e100 else max(size, np.finfo(np.float64).tiny)  # squares leave float64
        error, targets = error / unit, targets / unit
        total = ((targets - targets.mean(0)) ** 2).sum(0)
        r2 = 1 - (error**2).sum(0) / np.where(total > 0, total, 1.0)
        return {"r2": float(r2.mean()), "rmse": unit * float(np.sqrt((error**2).mean()))}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        variance = targets.var(0)
        return mean_score((1 - (outputs - targets) ** 2 / np.where(variance > 0, variance, 1.0)).mean(1))


def moments(values: Floats, weights: Floats | None, argument: str) -> tuple[Floats, Floats]:
    """The mean and the standard deviation of each column; 1 for a constant one."""
    shift = np.average(values, axis=0, weights=weights)
    largest = np.abs(values - shift).max(0)
    # Squares of very large or small numbers leave float64.
    max_deviation = np.where(largest > 0, largest, 1.0)
    squares = ((values - shift) / max_deviation) ** 2
    spread = max_deviation * np.sqrt(np.average(squares, axis=0, weights=weights))
    if not np.isfinite(spread).all():
        raise ValueError(f"{argument}: the values are too large to work with; rescale them")
    if not spread.any():
        raise ValueError(f"{argument}: every value is the same; there is nothing to predict")
    return shift, np.where(spread > 0, spread, 1.0)
