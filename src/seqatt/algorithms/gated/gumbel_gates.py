"""Gumbel-sigmoid gates (AutoNFS, Wydmański and Śmieja 2025): noisy gates with a penalty on the number of open ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.algorithms.gated.noisy_gate import DRAWN_STEPS, NoisyGate
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.matmul import PARALLEL_SIZE
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch
from seqatt.training.selection_state import FeatureState
from seqatt.training.state import Arrays

# Learning rate of the logits in units of the network's. The authors compute the logits from a fixed random vector of 32
# numbers by a linear layer without hidden units. The gradients of a logit's 33 parameters are multiples of one another,
# so Adam moves the logit as if it were the parameter, at a learning rate that is larger by the sum of the vector's
# absolute values and 1, on average 26.5; and their layer has 13 times the learning rate of their network.
LOGIT_RATE = 35.0


class GumbelGate(NoisyGate):
    """The weight of a feature is ``sigmoid((logit + noise) / temperature)``, with new Gumbel noise at every step.

    ``penalty * sum_f weight_f`` is added to the loss. The temperature falls exponentially in ``steps`` steps.
    """

    def __init__(
        self,
        features: int,
        penalty: Tensor,
        temperatures: tuple[float, float],
        steps: int,
        learning_rate: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        """``penalty`` (T,) has one strength per model."""
        super().__init__(features, generators, penalty.device)
        self.logits = torch.zeros(len(generators), features, device=penalty.device)
        self.weights = torch.full_like(self.logits, 0.5)
        self._penalty = penalty[:, None]
        self._temperatures, self._steps, self._done = temperatures, steps, 0
        self._inverse_temperatures = torch.ones(DRAWN_STEPS, device=penalty.device)
        self._rate = self._inverse_temperatures[0]
        self._adam = Adam([self.logits], torch.tensor(LOGIT_RATE * learning_rate, device=penalty.device))

    def is_thread_invariant(self) -> bool:
        return self.logits.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        return

    def sample(self, noise: Tensor, generator: torch.Generator) -> Tensor:
        return noise.exponential_(generator=generator).log_().neg_()

    def draw(self, steps: int) -> None:
        super().draw(steps)
        first, last = self._temperatures
        share = (self._done + np.arange(steps)) / max(1, self._steps - 1)
        rates = (first / last) ** np.minimum(share, 1.0) / first
        self._inverse_temperatures[:steps].copy_(torch.from_numpy(rates))
        self._done += steps

    def observe(self, batch: Batch, state: FeatureState) -> None:
        self._rate = self._inverse_temperatures[self._step]
        torch.add(self.logits, self.next_noise(), out=self.weights)
        self.weights.mul_(self._rate).sigmoid_()

    def update(self, grad: Tensor, state: FeatureState) -> None:
        slope = self.weights * (1 - self.weights) * self._rate
        self._adam.step([(grad + self._penalty) * slope])

    def scores(self) -> Tensor:
        return self.logits

    def reset(self) -> None:
        self.logits.zero_()
        self._adam.reset()

    def state_arrays(self) -> Arrays:
        return super().state_arrays() | {"done": np.array(self._done)}

    def load_arrays(self, arrays: Arrays) -> None:
        super().load_arrays(arrays)
        self._done = int(arrays["done"])


@register_gated(
    "gumbel_gates", penalties=lambda k: tuple(strength / k for strength in (0.01, 0.03, 0.1, 0.3))
)
def make_gate(context: GateContext) -> Gate:
    options, features = context.options, context.columns.features
    return GumbelGate(
        features,
        context.penalty,
        options.temperatures,
        context.steps,
        options.learning_rate,
        context.generators,
    )
