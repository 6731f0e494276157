"""Gates with random noise that is new at every step, drawn ahead so that a step replayed from a CUDA graph has it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqatt.training.gates.gate import Gate
from seqatt.training.state import Arrays

DRAWN_STEPS = 64  # steps whose noise is drawn at a time


class NoisyGate(Gate):
    """A gate whose weights depend on noise (T, d); each of the T models has its own generator."""

    def __init__(self, features: int, generators: Sequence[torch.Generator], device: torch.device) -> None:
        self._generators = list(generators)
        self._noise = torch.zeros(DRAWN_STEPS, len(generators), features, device=device)
        self._drawn = torch.empty(self._noise.shape)
        self._used = DRAWN_STEPS
        self._step = 0

    @abstractmethod
    def sample(self, noise: Tensor, generator: torch.Generator) -> Tensor:
        """Fill ``noise`` (steps, d) with new random numbers; returns it."""

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
            self._drawn[:, t] = self.sample(torch.empty(DRAWN_STEPS, self._drawn.shape[2]), generator)
        self._used = 0

    def next_noise(self) -> Tensor:
        """The noise (T, d) of the next step."""
        self._step += 1
        return self._noise[self._step - 1]

    def state_arrays(self) -> Arrays:
        return super().state_arrays() | {"used": np.array(self._used)}

    def load_arrays(self, arrays: Arrays) -> None:
        super().load_arrays(arrays)
        self._used = int(arrays["used"])
