"""Poisson regression: counts, or other numbers that are not negative, by the logarithm of their mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.losses.loss import Encoding, Floats, Loss, Metrics, Score, explained, one_number

MAX_LOG_RATE = 15.0  # beyond, the loss continues as a line: float32 has no exponential of 89


class PoissonLoss(Loss):
    """The output is the logarithm of the rate, in units of the mean; the loss is half the deviance, less a constant."""

    name, metrics, score_name = "poisson", ("d2", "deviance"), "d2"
    streams = True

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        values = self.encode(y, None, argument)
        if not (values != values[0]).any():
            raise ValueError(f"{argument}: every value is the same; there is nothing to predict")
        mean = np.average(values, axis=0, weights=weights)
        if not (mean > 0).all():
            raise ValueError(f"{argument}: every row of positive weight is 0; there is nothing to predict")
        return Encoding((values / mean).astype(np.float32), 1, None, np.zeros(1), mean)

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        values = one_number(y, argument, self.name)
        if (values < 0).any():
            raise ValueError(
                f"{argument}: task='poisson' needs counts of at least 0, got {values.min():g}; use 'regression'"
            )
        return values

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        beyond = torch.relu(out - MAX_LOG_RATE)
        return (torch.exp(out - beyond) * (1 + beyond) - y * out).squeeze(-1)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        return torch.exp(out).clamp_(max=float(np.exp(MAX_LOG_RATE))).sub_(y)

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        deviance = _deviance(np.exp(np.minimum(outputs, MAX_LOG_RATE)) * encoding.scale, targets)
        without = _deviance(np.maximum(targets.mean(), 1e-12), targets)
        return {"d2": explained(deviance, without).mean, "deviance": float(deviance.mean())}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        rate = np.exp(np.minimum(outputs, MAX_LOG_RATE))
        return explained(_deviance(rate, targets), _deviance(np.maximum(targets.mean(), 1e-12), targets))


def _deviance(rate: Any, y: NDArray[Any]) -> Floats:
    """The deviance of each row, 2 (y log(y / rate) - y + rate)."""
    y = y.astype(np.float64)
    ratio = np.where(y > 0, y / np.maximum(rate, np.finfo(np.float64).tiny), 1.0)
    return np.asarray(2 * (y * np.log(ratio) - y + rate))[:, 0]
