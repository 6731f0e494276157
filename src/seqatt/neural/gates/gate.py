"""The promise every gate keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.rows import Batch
from seqatt.neural.state import State


class Gate(ABC):
    """Lets features in with weights (T, d), learns from their gradient, judges the unselected."""

    weights: Tensor  # of every feature while the model attends; always current, never moves
    judged_rows = 0  # how many it wants to see before it scores
    captured = True  # whether its part of a step is tensor work alone

    def shares_nothing(self) -> bool:
        """Whether its numbers come out the same on any number of threads."""
        return False

    @abstractmethod
    def refresh(self, state: State) -> None:
        """Bring the weights up to date with what has been chosen."""

    def load(self, steps: int) -> None:
        """Draw what the next steps need: a step itself may be a recording, which draws nothing."""
        return

    def look(self, batch: Batch, state: State) -> None:
        """See a batch before the model is trained on it."""
        return

    def train(self, body: Body, batch: Batch, weights: Tensor) -> Tensor:
        """One step of the model, columns entering with ``weights``; the gradient with respect to them."""
        return body.train(batch, weights)

    @abstractmethod
    def learn(self, grad: Tensor, state: State) -> None:
        """One step from the gradient of the loss with respect to the weights."""

    def judge(self, batches: Iterable[Batch], state: State) -> None:
        """See rows at the end of a phase, before scores are asked for."""
        return

    @abstractmethod
    def scores(self) -> Tensor:
        """How much each feature deserves to be chosen next."""

    @abstractmethod
    def reset(self) -> None:
        """Forget what was learnt, the optimizer's moments included."""


class Open(Gate):
    """Lets every feature in as it is and has nothing to learn of its own: what it judges is the model."""

    def refresh(self, state: State) -> None:
        return

    def learn(self, grad: Tensor, state: State) -> None:
        return

    def reset(self) -> None:
        return
