"""The interface of all gates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import GradientPenalty
from seqatt.training.selection_state import FeatureState
from seqatt.training.state import Arrays, copy_state, load_state, named_attributes


class Gate(ABC):
    """Scales features by weights (T, d), learns from their gradient, and scores the unselected features."""

    weights: Tensor  # of all features in an "attended" phase; always current, updated in place
    scoring_rows = 0  # rows per model that ``score_rows`` gets before ``scores`` is called
    graph_capturable = True  # whether its part of a step consists of tensor operations only
    gradient_penalty: GradientPenalty | None = None  # added to the loss, which then trains through autograd

    def is_thread_invariant(self) -> bool:
        """Whether its results are the same with any number of threads."""
        return False

    @abstractmethod
    def refresh(self, state: FeatureState) -> None:
        """Update the weights after features were selected or dropped."""

    def draw(self, steps: int) -> None:
        """Draw the random numbers of the next steps: a step replayed from a CUDA graph cannot draw any."""
        return

    def observe(self, batch: Batch, state: FeatureState) -> None:
        """Receive a batch before the model is trained on it."""
        return

    @abstractmethod
    def update(self, grad: Tensor, state: FeatureState) -> None:
        """One step along the gradient (T, d) of the loss with respect to the weights."""

    def score_rows(self, batches: Iterable[Batch], state: FeatureState) -> None:
        """Receive ``scoring_rows`` rows at the end of a phase, before ``scores`` is called."""
        return

    @abstractmethod
    def scores(self) -> Tensor:
        """Scores (T, d): the unselected features with the highest are selected next."""

    @abstractmethod
    def reset(self) -> None:
        """Reset everything learnt, including the optimizer's moments."""

    def state_arrays(self) -> Arrays:
        """Copies of the tensors and generators among its attributes, for a checkpoint."""
        return copy_state(named_attributes(self))

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore what ``state_arrays`` returned."""
        load_state(named_attributes(self), arrays)


class OpenGate(Gate):
    """A gate that passes every feature at weight 1 and learns nothing; its scores come from the model."""

    def refresh(self, state: FeatureState) -> None:
        return

    def update(self, grad: Tensor, state: FeatureState) -> None:
        return

    def reset(self) -> None:
        return
