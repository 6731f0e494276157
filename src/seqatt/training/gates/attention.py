"""Sequential Attention's gate: 1 on kept features, the mask of trained logits on the others."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.masks import Mask, SoftmaxMask
from seqatt.training.models.adam import Adam
from seqatt.training.selection_state import SelectionState


class AttentionGate(Gate):
    def __init__(self, trials: int, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        self.mask = mask
        self.logits = torch.full((trials, features), mask.start, device=device)
        self.weights = torch.zeros_like(self.logits)
        self._shares = torch.zeros_like(self.logits)
        self._rate = rate
        self._adam = Adam([self.logits], torch.tensor(rate, device=device))

    def is_thread_invariant(self) -> bool:
        # A softmax is one thread's work for each trial; the sums of the other masks may be divided.
        return isinstance(self.mask, SoftmaxMask) or self.logits.shape[1] <= PARALLEL_SIZE

    def refresh(self, state: SelectionState) -> None:
        self.mask.weights(self.logits, state.blocked, out=self._shares)
        torch.add(self._shares, state.selected, out=self.weights)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        pulled = self.mask.pull(grad, self._shares, self.logits)
        self._adam.step([pulled])
        # Beside Adam, not through it: there the pull would outweigh the gradients of a wide table.
        if self.mask.decay:
            self.logits.mul_(1 - self.mask.decay * self._rate)
        self.refresh(state)

    def scores(self) -> Tensor:
        return self.mask.score(self.logits)

    def reset(self) -> None:
        self.logits.fill_(self.mask.start)
        self._adam.forget()
