"""The promise every gate keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from seqatt.training.batch import Batch
from seqatt.training.models.model import Model
from seqatt.training.selection_state import SelectionState


class Gate(ABC):
    """Lets features in with weights (T, d), learns from their gradient, judges the unselected."""

    weights: Tensor  # of every feature while the model attends; always current, never moves
    scoring_rows = 0  # how many it wants to see before it scores
    graph_capturable = True  # whether its part of a step is tensor work alone

    def is_thread_invariant(self) -> bool:
        """Whether its numbers come out the same on any number of threads."""
        return False

    @abstractmethod
    def refresh(self, state: SelectionState) -> None:
        """Bring the weights up to date with what has been chosen."""

    def load(self, steps: int) -> None:
        """Draw what the next steps need: a step itself may be a recording, which draws nothing."""
        return

    def observe(self, batch: Batch, state: SelectionState) -> None:
        """See a batch before the model is trained on it."""
        return

    def train(self, model: Model, batch: Batch, weights: Tensor) -> Tensor:
        """One step of the model, columns entering with ``weights``; the gradient with respect to them."""
        return model.train(batch, weights)

    @abstractmethod
    def update(self, grad: Tensor, state: SelectionState) -> None:
        """One step from the gradient of the loss with respect to the weights."""

    def score_rows(self, batches: Iterable[Batch], state: SelectionState) -> None:
        """See rows at the end of a phase, before scores are asked for."""
        return

    @abstractmethod
    def scores(self) -> Tensor:
        """How much each feature deserves to be chosen next."""

    @abstractmethod
    def reset(self) -> None:
        """Forget what was learnt, the optimizer's moments included."""


class OpenGate(Gate):
    """Lets every feature in as it is and has nothing to learn of its own: what it judges is the model."""

    def refresh(self, state: SelectionState) -> None:
        return

    def update(self, grad: Tensor, state: SelectionState) -> None:
        return

    def reset(self) -> None:
        return
