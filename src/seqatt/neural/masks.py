"""Masks: how attention logits become the weights of the unselected features (paper, section 4.2).

A mask gives the weights and, given the gradient with respect to them, the gradient with respect to the
logits. Shapes are (T, d); ``barred`` marks the features that have no share: the kept ones, and those
that may not be chosen. At least one is never barred.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


class Mask(ABC):
    start: float  # what the logits are at the beginning of a phase
    decay: float  # weight decay on the logits

    @abstractmethod
    def weights(self, logits: Tensor, barred: Tensor) -> Tensor:
        """Weights of the features that are not barred, 0 for those that are."""

    @abstractmethod
    def pull(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        """Vector-Jacobian product: the gradient with respect to the logits."""

    @abstractmethod
    def score(self, logits: Tensor) -> Tensor:
        """What a choice is made by. Never the weights: they can underflow to a tie."""


@dataclass(frozen=True)
class Softmax(Mask):
    """Equation (1): ``s_i = exp(w_i / t) / sum_j exp(w_j / t)`` over the free features."""

    temperature: float = 1.0
    start: float = 0.0
    decay: float = 0.0

    def weights(self, logits: Tensor, barred: Tensor) -> Tensor:
        scaled = logits if self.temperature == 1 else logits / self.temperature
        return torch.softmax(scaled.masked_fill(barred, -torch.inf), -1)

    def pull(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        flow = weights * grad
        flow = torch.addcmul(flow, weights, flow.sum(-1, keepdim=True), value=-1)
        return flow if self.temperature == 1 else flow / self.temperature

    def score(self, logits: Tensor) -> Tensor:
        return logits


@dataclass(frozen=True)
class Power(Mask):
    """``s_i = |w_i|^p``, or that divided by its sum over the free features.

    The unnormalised form is the one of Definition 3.1 and lives by its l2 penalty: without decay
    nothing holds the weights of useless features back.
    """

    power: int
    normalised: bool
    start: float = 1.0
    decay: float = 0.0

    def weights(self, logits: Tensor, barred: Tensor) -> Tensor:
        value = logits.abs().pow(self.power).masked_fill(barred, 0.0)
        return value / self._total(value) if self.normalised else value

    def pull(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        slope = torch.where(weights > 0, self.power * logits.sign() * logits.abs().pow(self.power - 1), 0.0)
        if not self.normalised:
            return grad * slope
        value = torch.where(weights > 0, logits.abs().pow(self.power), 0.0)
        return (grad - (weights * grad).sum(-1, keepdim=True)) * slope / self._total(value)

    def score(self, logits: Tensor) -> Tensor:
        return logits.abs()

    @staticmethod
    def _total(value: Tensor) -> Tensor:
        return value.sum(-1, keepdim=True).clamp_min(torch.finfo(value.dtype).tiny)


DECAY = 1e-2  # of the unnormalised masks, in units of the mean training loss

MASKS: dict[str, Mask] = {
    "softmax": Softmax(),
    "l1": Power(1, normalised=False, decay=DECAY),
    "l2": Power(2, normalised=False, decay=DECAY),
    "l1_normalised": Power(1, normalised=True),
    "l2_normalised": Power(2, normalised=True),
}
