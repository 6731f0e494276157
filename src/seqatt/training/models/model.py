"""The interface of all trainable models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from seqatt.training.backend.threads import WorkerPool
from seqatt.training.loaders.batch import Batch
from seqatt.training.state import Arrays

MIN_COUPLED_ROWS = 32  # rows on which a loss of pairs of rows is measured, at least
# From the gradients (T, B, c) of each row's loss with respect to its inputs to a penalty (T,) per model.
GradientPenalty = Callable[[Tensor], Tensor]


class Model(ABC):
    """T models that train in one step. Inputs are (T, B, c), scaled by column weights (T, c)."""

    graph_capturable = False  # whether a step consists of tensor operations only, as a CUDA graph requires
    min_block_rows = 1  # rows on which a loss is measured, at least
    # Weight decay (T, c) of the first layer per column, part of the gradient of ``train_step`` as in torch.optim.Adam.
    # A gate with a penalty on these weights sets it and updates it in place.
    first_layer_decay: Tensor | None = None
    # Sum (T, h, c) of the gradients of the first layer over the steps since a gate set it or set it to zero.
    first_layer_gradients: Tensor | None = None

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether training gives the same result on any thread and with any number of threads."""
        return False

    def is_sliced(self, batch_size: int) -> bool:
        """Whether a batch is computed in slices, one thread each, on the pool set by ``use_pool``."""
        return False

    def use_pool(self, pool: WorkerPool) -> None:
        """Compute the slices of a batch on this pool."""
        return

    def embed(self, batch: Batch) -> Batch:
        """The batch as the other methods take it: with embeddings of its codes as further columns of ``x``."""
        return batch

    @abstractmethod
    def train_step(
        self, batch: Batch, weights: Tensor, *, gated: bool = True, all_ones: bool = False
    ) -> Tensor:
        """One optimizer step. Returns the gradient (T, c) of the mean loss with respect to ``weights``.

        Where no gate learns from that gradient (not ``gated``), a model need not compute it. Weights that are
        ``all_ones`` need no scaling.
        """

    @abstractmethod
    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        """One optimizer step on the mean loss plus a penalty on its input gradients, through autograd."""

    @abstractmethod
    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        """The gradient (T, B, c) of each row's loss with respect to its inputs; changes nothing."""

    @abstractmethod
    def first_layer(self) -> Tensor:
        """The weights (T, h, c) of the first layer, without a copy; an error if there is no such layer."""

    @abstractmethod
    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        """The gradient (T, h, c) of the mean loss with respect to the first layer scaled by ``weights``.

        For a column of weight 0, this is the gradient at first-layer weights of zero.
        """

    def _add_first_layer_decay(self, layer: Tensor, grad: Tensor) -> None:
        """Before the optimizer's step, record the gradient (T, h, c) of the first layer and add the decay to it."""
        if self.first_layer_gradients is not None:
            self.first_layer_gradients.add_(grad)
        if self.first_layer_decay is not None:
            grad.addcmul_(layer, self.first_layer_decay.unsqueeze(1))

    @abstractmethod
    def last_loss(self, batch: Batch) -> Tensor:
        """The mean loss (T,) on the batch of the last training step, before that step."""

    @abstractmethod
    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        """The mean loss (T,) on a batch, in evaluation mode; changes nothing."""

    def scale_first_layer(self, factors: Tensor) -> None:
        """Scale the first layer's weights of each column by ``factors`` (T, c), if there is such a layer."""
        return  # without a known first layer, nothing is scaled

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, valid: Tensor) -> Tensor:
        """The mean loss (T, m) without each of m sets of columns, that is with their weights at zero.

        ``columns`` (T, m, p) holds the column numbers, padded to a common p; ``valid`` (T, m, p) is 1 for
        columns and 0 for padding.
        """
        losses = []
        for i in range(columns.shape[1]):
            removed = torch.zeros_like(weights).scatter_reduce(1, columns[:, i], valid[:, i], "amax")
            losses.append(self.loss(batch, weights * (1 - removed)))
        return torch.stack(losses, 1)

    @abstractmethod
    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        """Outputs (T, B, o), in evaluation mode; changes nothing."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw new parameters and reset the optimizer."""

    @abstractmethod
    def scale_learning_rate(self, factor: float) -> None:
        """Set the learning rate to ``factor`` times the initial one."""

    @abstractmethod
    def state_arrays(self) -> Arrays:
        """Copies of everything that later steps depend on, for a checkpoint."""

    @abstractmethod
    def load_arrays(self, arrays: Arrays) -> None:
        """Restore what ``state_arrays`` returned."""


def weighted_mean(losses: Tensor, w: Tensor | None) -> Tensor:
    """Mean over the batch, the last dimension, with row weights ``w``, whose mean over all rows is 1."""
    return (losses if w is None else losses * w).mean(-1)
