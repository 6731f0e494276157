"""CancelOut (Borisov, Haug, Kasneci 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.models.adam import Adam
from seqatt.training.selection_state import SelectionState

START = 4.0  # every gate nearly open


class CancelOutGate(Gate):
    """A feature enters with ``sigmoid(w)``; ``penalty * (sum sigmoid(w) - var w)`` is added to the loss."""

    def __init__(self, features: int, penalty: Tensor, rate: float) -> None:
        """``penalty`` (T,) is each model's."""
        self.logits = torch.full((len(penalty), features), START, device=penalty.device)
        self.weights = torch.sigmoid(self.logits)
        self._penalty = penalty[:, None]
        self._spread = 2 / max(1, features - 1)
        self._adam = Adam([self.logits], torch.tensor(rate, device=penalty.device))

    def is_thread_invariant(self) -> bool:
        return self.logits.numel() <= PARALLEL_SIZE

    def refresh(self, state: SelectionState) -> None:
        torch.sigmoid(self.logits, out=self.weights)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        slope = self.weights * (1 - self.weights)
        spreading = self._spread * (self.logits - self.logits.mean(1, keepdim=True))
        self._adam.step([(grad + self._penalty) * slope - self._penalty * spreading])
        self.refresh(state)

    def scores(self) -> Tensor:
        return self.logits

    def reset(self) -> None:
        self.logits.fill_(START)
        self._adam.forget()
        torch.sigmoid(self.logits, out=self.weights)
