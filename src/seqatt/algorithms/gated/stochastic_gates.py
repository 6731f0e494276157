"""Stochastic gates (Yamada et al. 2020): noisy gates between 0 and 1, with a penalty on open gates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, PenaltyOptions, register_gated
from seqatt.options import option
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch
from seqatt.training.selection_state import FeatureState
from seqatt.training.state import Arrays
from seqatt.validation import number

INITIAL_MEAN = 0.5  # of every gate: half open
DRAWN_STEPS = 64  # steps whose noise is drawn at a time


class StochasticGate(Gate):
    """The weight of a feature is ``min(1, max(0, mu + sigma * noise))``, with new noise at every step.

    The penalty is the expected number of open gates, ``sum_f Phi(mu_f / sigma)``, which is differentiable.
    """

    def __init__(
        self,
        features: int,
        penalty: Tensor,
        sigma: float,
        learning_rate: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        """``penalty`` (T,) has one strength per model."""
        device = penalty.device
        self.means = torch.full((len(generators), features), INITIAL_MEAN, device=device)
        self.weights = self.means.clone()
        self._sigma = sigma
        self._penalty = penalty[:, None] / (sigma * math.sqrt(2 * math.pi))
        self._generators = list(generators)
        self._noise = torch.zeros(DRAWN_STEPS, *self.means.shape, device=device)
        self._drawn = torch.empty(self._noise.shape)
        self._used = DRAWN_STEPS
        self._step = 0
        self._adam = Adam([self.means], torch.tensor(learning_rate, device=device))

    def is_thread_invariant(self) -> bool:
        return self.means.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        return

    def draw(self, steps: int) -> None:
        done = self._step = 0
        while done < steps:
            if self._used == DRAWN_STEPS:
                self._draw_noise()
            count = min(steps - done, DRAWN_STEPS - self._used)
            self._noise[done : done + count].copy_(self._drawn[self._used : self._used + count])
            self._used += count
            done += count

    def _draw_noise(self) -> None:
        """Draw a fixed number of steps at a time, so that the noise does not depend on the size of chunks."""
        for t, generator in enumerate(self._generators):
            self._drawn[:, t] = torch.randn(DRAWN_STEPS, self.means.shape[1], generator=generator)
        self._used = 0

    def observe(self, batch: Batch, state: FeatureState) -> None:
        torch.add(self.means, self._noise[self._step], alpha=self._sigma, out=self.weights)
        self.weights.clamp_(0, 1)
        self._step += 1

    def update(self, grad: Tensor, state: FeatureState) -> None:
        inside = (self.weights > 0) & (self.weights < 1)
        density = torch.exp(-0.5 * (self.means / self._sigma).square())
        self._adam.step([grad * inside + self._penalty * density])

    def scores(self) -> Tensor:
        return self.means

    def reset(self) -> None:
        self.means.fill_(INITIAL_MEAN)
        self._adam.reset()

    def state_arrays(self) -> Arrays:
        return super().state_arrays() | {"used": np.array(self._used)}

    def load_arrays(self, arrays: Arrays) -> None:
        super().load_arrays(arrays)
        self._used = int(arrays["used"])


@dataclass(frozen=True)
class StochasticGatesOptions(PenaltyOptions):
    """Options of stochastic gates."""

    sigma: float = option(0.5, number(above=0), "Standard deviation of the gates' noise.")


@register_gated(
    "stochastic_gates",
    title="Stochastic gates",
    summary="noisy gates between 0 and 1, with a penalty on open gates",
    options=StochasticGatesOptions,
    penalties=lambda k: tuple(strength / k for strength in (0.1, 0.3, 1.0, 3.0)),
)
def make_gate(context: GateContext) -> Gate:
    options, features = context.options, context.columns.features
    return StochasticGate(features, context.penalty, options.sigma, options.learning_rate, context.generators)
