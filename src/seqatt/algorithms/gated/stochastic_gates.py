"""Stochastic gates (Yamada et al. 2020): noisy gates between 0 and 1, with a penalty on open gates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.algorithms.gated.noisy_gate import NoisyGate
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch
from seqatt.training.selection_state import FeatureState

INITIAL_MEAN = 0.5  # of every gate: half open


class StochasticGate(NoisyGate):
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
        super().__init__(features, generators, device)
        self.means = torch.full((len(generators), features), INITIAL_MEAN, device=device)
        self.weights = self.means.clone()
        self._sigma = sigma
        self._penalty = penalty[:, None] / (sigma * math.sqrt(2 * math.pi))
        self._adam = Adam([self.means], torch.tensor(learning_rate, device=device))

    def is_thread_invariant(self) -> bool:
        return self.means.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        return

    def sample(self, noise: Tensor, generator: torch.Generator) -> Tensor:
        return noise.normal_(generator=generator)

    def observe(self, batch: Batch, state: FeatureState) -> None:
        torch.add(self.means, self.next_noise(), alpha=self._sigma, out=self.weights)
        self.weights.clamp_(0, 1)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        inside = (self.weights > 0) & (self.weights < 1)
        density = torch.exp(-0.5 * (self.means / self._sigma).square())
        self._adam.step([grad * inside + self._penalty * density])

    def scores(self) -> Tensor:
        return self.means

    def reset(self) -> None:
        self.means.fill_(INITIAL_MEAN)
        self._adam.reset()


@register_gated(
    "stochastic_gates", penalties=lambda k: tuple(strength / k for strength in (0.1, 0.3, 1.0, 3.0))
)
def make_gate(context: GateContext) -> Gate:
    options, features = context.options, context.columns.features
    return StochasticGate(features, context.penalty, options.sigma, options.learning_rate, context.generators)
