"""Sequential Attention's gate: 1 on kept features, the mask of trained logits on the others."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.neural.adam import Adam
from seqatt.neural.gates.gate import Gate
from seqatt.neural.masks import Mask, Softmax
from seqatt.neural.product import DIVIDED_FROM
from seqatt.neural.state import State


class Attention(Gate):
    def __init__(self, trials: int, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        self.mask = mask
        self.logits = torch.full((trials, features), mask.start, device=device)
        self.weights = torch.zeros_like(self.logits)
        self._shares = torch.zeros_like(self.logits)
        self._rate = rate
        self._adam = Adam([self.logits], torch.tensor(rate, device=device))

    def shares_nothing(self) -> bool:
        # A softmax is one thread's work for each trial; the sums of the other masks may be divided.
        return isinstance(self.mask, Softmax) or self.logits.shape[1] <= DIVIDED_FROM

    def refresh(self, state: State) -> None:
        self.mask.weights(self.logits, state.closed, out=self._shares)
        torch.add(self._shares, state.kept, out=self.weights)

    def learn(self, grad: Tensor, state: State) -> None:
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
