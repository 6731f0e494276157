"""The promise every gate keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from seqatt.neural.state import State


class Gate(ABC):
    """Lets features in with weights (T, d), learns from their gradient, judges the unselected."""

    weights: Tensor  # of every feature while the model attends; always current, never moves

    def shares_nothing(self) -> bool:
        """Whether its numbers come out the same on any number of threads."""
        return False

    @abstractmethod
    def refresh(self, state: State) -> None:
        """Bring the weights up to date with what has been chosen."""

    @abstractmethod
    def learn(self, grad: Tensor, state: State) -> None:
        """One step from the gradient of the loss with respect to the weights."""

    @abstractmethod
    def scores(self) -> Tensor:
        """How much each feature deserves to be chosen next."""

    @abstractmethod
    def reset(self) -> None:
        """Forget what was learnt, the optimizer's moments included."""
