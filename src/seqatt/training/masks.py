"""Masks: how attention logits become the weights of the unselected features (paper, section 4.2).

A mask gives the weights and, given the gradient with respect to them, the gradient with respect to the
logits. Shapes are (T, d); ``blocked`` is minus infinity for the features that have no share, the kept ones
and those that may not be chosen, and 0 for the others, of which there is at least one.
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
    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        """Weights of the open features, 0 for the closed; into ``out`` if given."""

    @abstractmethod
    def pull(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        """Vector-Jacobian product: the gradient with respect to the logits."""

    @abstractmethod
    def score(self, logits: Tensor) -> Tensor:
        """What a choice is made by. Never the weights: they can underflow to a tie."""


def additive_mask(barred: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """What to add to the logits so that the barred features have no share."""
    return torch.zeros(barred.shape, dtype=dtype, device=barred.device).masked_fill_(barred, -torch.inf)


@dataclass(frozen=True)
class SoftmaxMask(Mask):
    """Equation (1): ``s_i = exp(w_i / t) / sum_j exp(w_j / t)`` over the free features."""

    temperature: float = 1.0
    start: float = 0.0
    decay: float = 0.0

    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        scaled = logits if self.temperature == 1 else logits / self.temperature
        return torch.softmax(scaled + blocked, -1, out=out)

    def pull(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        flow = torch._softmax_backward_data(grad, weights, -1, grad.dtype)
        return flow if self.temperature == 1 else flow / self.temperature

    def score(self, logits: Tensor) -> Tensor:
        return logits


@dataclass(frozen=True)
class PowerMask(Mask):
    """``s_i = |w_i|^p``, or that divided by its sum over the free features.

    The unnormalised form is the one of Definition 3.1 and lives by its l2 penalty: without decay
    nothing holds the weights of useless features back. It starts low, so that features that wait to be
    chosen do not serve the model as if they were.
    """

    power: int
    normalised: bool
    start: float = 1.0
    decay: float = 0.0

    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        value = logits.abs().pow(self.power).masked_fill(blocked < 0, 0.0)
        if self.normalised:
            value = value / self._total(value)
        return value if out is None else out.copy_(value)

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


START, DECAY = 0.1, 0.1  # of the unnormalised masks; the decay as a share of the learning rate

MASKS: dict[str, Mask] = {
    "softmax": SoftmaxMask(),
    "l1": PowerMask(1, normalised=False, start=START, decay=DECAY),
    "l2": PowerMask(2, normalised=False, start=START, decay=DECAY),
    "l1_normalised": PowerMask(1, normalised=True),
    "l2_normalised": PowerMask(2, normalised=True),
}
