"""Stochastic gates (Yamada et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.batch import Batch
from seqatt.training.gates.gate import Gate
from seqatt.training.models.adam import Adam
from seqatt.training.selection_state import SelectionState

OPEN_HALF = 0.5  # where every gate starts
AHEAD = 64  # steps whose noise is drawn at a time, at most


class StochasticGate(Gate):
    """A feature enters with ``min(1, max(0, mu + sigma * noise))``, the noise new at every step.

    The penalty is the expected number of open gates, ``sum_f Phi(mu_f / sigma)``, which has a gradient.
    """

    def __init__(
        self,
        features: int,
        penalty: Tensor,
        sigma: float,
        rate: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        """``penalty`` (T,) is each model's."""
        device = penalty.device
        self.means = torch.full((len(generators), features), OPEN_HALF, device=device)
        self.weights = self.means.clone()
        self._sigma = sigma
        self._penalty = penalty[:, None] / (sigma * math.sqrt(2 * math.pi))
        self._generators = list(generators)
        self._noise = torch.zeros(AHEAD, *self.means.shape, device=device)
        self._drawn = torch.empty(self._noise.shape)
        self._used = AHEAD
        self._step = 0
        self._adam = Adam([self.means], torch.tensor(rate, device=device))

    def is_thread_invariant(self) -> bool:
        return self.means.numel() <= PARALLEL_SIZE

    def refresh(self, state: SelectionState) -> None:
        return

    def load(self, steps: int) -> None:
        done = self._step = 0
        while done < steps:
            if self._used == AHEAD:
                self._draw()
            some = min(steps - done, AHEAD - self._used)
            self._noise[done : done + some].copy_(self._drawn[self._used : self._used + some])
            self._used += some
            done += some

    def _draw(self) -> None:
        """A block of steps at a time, whatever is asked for: the same noise in whatever portions."""
        for t, generator in enumerate(self._generators):
            self._drawn[:, t] = torch.randn(AHEAD, self.means.shape[1], generator=generator)
        self._used = 0

    def observe(self, batch: Batch, state: SelectionState) -> None:
        torch.add(self.means, self._noise[self._step], alpha=self._sigma, out=self.weights)
        self.weights.clamp_(0, 1)
        self._step += 1

    def update(self, grad: Tensor, state: SelectionState) -> None:
        inside = (self.weights > 0) & (self.weights < 1)
        density = torch.exp(-0.5 * (self.means / self._sigma).square())
        self._adam.step([grad * inside + self._penalty * density])

    def scores(self) -> Tensor:
        return self.means

    def reset(self) -> None:
        self.means.fill_(OPEN_HALF)
        self._adam.forget()
