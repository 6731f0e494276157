"""Quantile regression: the value that a share of the rows is below, by the pinball loss (Koenker and Bassett 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.losses.loss import Encoding, Floats, Loss, Metrics, Score, explained, one_number
from seqatt.losses.squared import moments


@dataclass(frozen=True)
class QuantileLoss(Loss):
    """``level`` of the error above the output, 1 - level of the error below it; numbers are standardised."""

    level: float = 0.5

    name, metrics, score_name = "quantile", ("d2", "pinball"), "d2"
    stand_in, streams = "whether a row is above the quantile of all rows", True

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        values = one_number(y, argument, self.name)
        shift, scale = moments(values, weights, argument)
        return Encoding(((values - shift) / scale).astype(np.float32), 1, None, shift, scale)

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        return one_number(y, argument, self.name)

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        error = y - out
        return torch.maximum(self.level * error, (self.level - 1) * error).squeeze(-1)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        return (out >= y).to(out.dtype).sub_(self.level)

    def as_numbers(self, values: NDArray[Any], sample: NDArray[Any] | None = None) -> NDArray[Any]:
        """The gradient of the best constant: a feature that changes the spread alone is related to it as well."""
        sample = values if sample is None else sample
        limit = np.quantile(sample, self.level)
        return np.asarray(values > limit if (sample > limit).any() else values >= limit, dtype=np.float32)

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        loss = self._pinball(outputs * encoding.scale + encoding.shift, targets)
        without = self._pinball(np.quantile(targets, self.level), targets)
        return {"d2": explained(loss, without).mean, "pinball": float(loss.mean())}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        without = self._pinball(np.quantile(targets, self.level), targets)
        return explained(self._pinball(outputs, targets), without)

    def _pinball(self, predicted: Any, y: NDArray[Any]) -> Floats:
        error = y.astype(np.float64) - predicted
        return np.asarray(np.maximum(self.level * error, (self.level - 1) * error))[:, 0]
