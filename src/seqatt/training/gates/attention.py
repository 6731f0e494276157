"""Sequential Attention's gate: weight 1 for selected features, the mask of trained logits for the others."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.gates.masks import Mask, SoftmaxMask
from seqatt.training.selection_state import FeatureState


class AttentionGate(Gate):
    """One logit per model and feature (T, d), trained by Adam at the constant learning rate ``lr``.

    A gate that ``keeps_logits`` does not reset them between phases.
    """

    keeps_logits = False

    def __init__(self, models: int, features: int, mask: Mask, lr: float, device: torch.device) -> None:
        self.mask = mask
        self.logits = torch.full((models, features), mask.initial, device=device)
        self.weights = torch.zeros_like(self.logits)
        self._mask_weights = torch.zeros_like(self.logits)
        self._lr = lr
        self._adam = Adam([self.logits], torch.tensor(lr, device=device))

    def resized(self, features: int) -> AttentionGate:
        """A new gate for another number of features."""
        return AttentionGate(len(self.logits), features, self.mask, self._lr, self.logits.device)

    def is_thread_invariant(self) -> bool:
        # One thread computes the softmax of a row; the sums of the other masks may be divided among threads.
        return isinstance(self.mask, SoftmaxMask) or self.logits.shape[1] <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        self.mask.weights(self.logits, state.blocked, out=self._mask_weights)
        torch.add(self._mask_weights, state.selected, out=self.weights)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        logits_grad = self.mask.backward(grad, self._mask_weights, self.logits)
        self._adam.step([logits_grad])
        # Decoupled weight decay (as in AdamW): as part of the gradient it would outweigh the small gradients
        # of a wide table.
        if self.mask.decay:
            self.logits.mul_(1 - self.mask.decay * self._lr)
        self.refresh(state)

    def scores(self) -> Tensor:
        return self.mask.score(self.logits)

    def reset(self) -> None:
        if self.keeps_logits:
            return
        self.logits.fill_(self.mask.initial)
        self._adam.reset()
