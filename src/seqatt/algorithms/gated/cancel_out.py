"""CancelOut (Borisov, Haug and Kasneci 2019): sigmoid gates with a penalty that closes them."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.selection_state import FeatureState

INITIAL_LOGIT = 4.0  # of every gate: nearly open


class CancelOutGate(Gate):
    """The weight of a feature is ``sigmoid(w)``; ``penalty * (sum sigmoid(w) - var(w))`` is added to the loss."""

    def __init__(self, features: int, penalty: Tensor, learning_rate: float) -> None:
        """``penalty`` (T,) has one strength per model."""
        self.logits = torch.full((len(penalty), features), INITIAL_LOGIT, device=penalty.device)
        self.weights = torch.sigmoid(self.logits)
        self._penalty = penalty[:, None]
        self._variance_factor = 2 / max(1, features - 1)
        self._adam = Adam([self.logits], torch.tensor(learning_rate, device=penalty.device))

    def is_thread_invariant(self) -> bool:
        return self.logits.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        torch.sigmoid(self.logits, out=self.weights)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        slope = self.weights * (1 - self.weights)
        variance_gradient = self._variance_factor * (self.logits - self.logits.mean(1, keepdim=True))
        self._adam.step([(grad + self._penalty) * slope - self._penalty * variance_gradient])
        self.refresh(state)

    def scores(self) -> Tensor:
        return self.logits

    def reset(self) -> None:
        self.logits.fill_(INITIAL_LOGIT)
        self._adam.reset()
        torch.sigmoid(self.logits, out=self.weights)


@register_gated("cancel_out", penalties=lambda k: tuple(strength / k for strength in (0.01, 0.03, 0.1, 0.3)))
def make_gate(context: GateContext) -> Gate:
    return CancelOutGate(context.columns.features, context.penalty, context.options.learning_rate)
