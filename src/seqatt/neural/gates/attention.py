"""Sequential Attention's gate: 1 on kept features, the mask of trained logits on the others."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.neural.adam import Adam
from seqatt.neural.gates.gate import Gate
from seqatt.neural.masks import Mask
from seqatt.neural.state import State


class Attention(Gate):
    def __init__(self, trials: int, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        self.mask = mask
        self.logits = torch.full((trials, features), mask.start, device=device)
        self._shares = torch.zeros_like(self.logits)
        self._adam = Adam([self.logits], torch.tensor(rate, device=device))

    def weights(self, state: State) -> Tensor:
        self._shares = self.mask.weights(self.logits, state.barred)
        return self._shares + state.kept

    def learn(self, grad: Tensor) -> None:
        pulled = self.mask.pull(grad, self._shares, self.logits)
        if self.mask.decay:
            pulled.add_(self.logits, alpha=self.mask.decay)
        self._adam.step([pulled])

    def scores(self) -> Tensor:
        return self.mask.score(self.logits)

    def reset(self) -> None:
        self.logits.fill_(self.mask.start)
        self._adam.forget()
