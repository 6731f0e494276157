"""Masks: how attention logits become the weights of the unselected features (paper, section 4.2).

A mask computes the weights and, from the gradient with respect to the weights, the gradient with respect to
the logits. All shapes are (T, d). ``blocked`` is minus infinity for features that get no weight (the selected
ones and those that may not be selected) and 0 for the others; at least one feature is not blocked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from seqatt.training.backend import torch_private


class Mask(ABC):
    initial: float  # value of every logit at the beginning of a phase
    decay: float  # weight decay on the logits, as a fraction of the learning rate
    normalised: bool  # whether the weights of the features that are not blocked sum to 1

    @abstractmethod
    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        """Weights of the features that are not blocked, 0 for blocked ones; written into ``out`` if given."""

    @abstractmethod
    def backward(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        """Vector-Jacobian product: from the gradient with respect to the weights to that of the logits."""

    @abstractmethod
    def score(self, logits: Tensor) -> Tensor:
        """The score by which features are selected. Not the weights: these can underflow and then tie."""


def additive_mask(excluded: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The ``blocked`` of a boolean tensor: minus infinity where ``excluded`` is True, else 0."""
    return torch.zeros(excluded.shape, dtype=dtype, device=excluded.device).masked_fill_(excluded, -torch.inf)


@dataclass(frozen=True)
class SoftmaxMask(Mask):
    """Equation (1): ``s_i = exp(w_i / t) / sum_j exp(w_j / t)`` over the features that are not blocked."""

    normalised = True
    temperature: float = 1.0
    initial: float = 0.0
    decay: float = 0.0

    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        scaled = logits if self.temperature == 1 else logits / self.temperature
        return torch.softmax(scaled + blocked, -1, out=out)

    def backward(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
        logits_grad = torch_private.softmax_backward(grad, weights, -1, grad.dtype)
        return logits_grad if self.temperature == 1 else logits_grad / self.temperature

    def score(self, logits: Tensor) -> Tensor:
        return logits


@dataclass(frozen=True)
class PowerMask(Mask):
    """``s_i = |w_i|^p``, or ``|w_i|^p / sum_j |w_j|^p`` over the features that are not blocked.

    The unnormalised form is that of Definition 3.1 and depends on its l2 penalty: without weight decay,
    nothing reduces the weights of useless features. Its logits start low, because at full weight the model
    would use unselected features like selected ones.
    """

    power: int
    normalised: bool
    initial: float = 1.0
    decay: float = 0.0

    def weights(self, logits: Tensor, blocked: Tensor, out: Tensor | None = None) -> Tensor:
        value = logits.abs().pow(self.power).masked_fill(blocked < 0, 0.0)
        if self.normalised:
            value = value / self._total(value)
        return value if out is None else out.copy_(value)

    def backward(self, grad: Tensor, weights: Tensor, logits: Tensor) -> Tensor:
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


UNNORMALISED_INITIAL = 0.1  # first logits of the unnormalised masks
UNNORMALISED_DECAY = 0.1  # their weight decay, as a fraction of the learning rate

MASKS: dict[str, Mask] = {
    "softmax": SoftmaxMask(),
    "l1": PowerMask(1, normalised=False, initial=UNNORMALISED_INITIAL, decay=UNNORMALISED_DECAY),
    "l2": PowerMask(2, normalised=False, initial=UNNORMALISED_INITIAL, decay=UNNORMALISED_DECAY),
    "l1_normalised": PowerMask(1, normalised=True),
    "l2_normalised": PowerMask(2, normalised=True),
}


def make_mask(name: str, temperature: float = 1.0) -> Mask:
    """A mask by name; only the softmax mask has a temperature."""
    if name == "softmax":
        return SoftmaxMask(temperature)
    if temperature != 1:
        raise ValueError(f"temperature: only the softmax mask has one, not {name!r}")
    return MASKS[name]
