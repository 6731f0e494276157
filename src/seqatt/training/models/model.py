"""The promise every trainable model keeps, whoever wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from seqatt.training.batch import Batch

GradientPenalty = Callable[
    [Tensor], Tensor
]  # of a loss's gradients with respect to inputs (T, B, c), for T models


class Model(ABC):
    """``T`` models side by side. Inputs are (T, B, c) and enter scaled by column weights (T, c)."""

    graph_capturable = (
        False  # whether a step is tensor work alone, which an accelerator can record and replay
    )

    def is_thread_invariant(self, batch_size: int) -> bool:
        """Whether it may train on any thread beside others, and on any number of them, to the same end."""
        return False

    @abstractmethod
    def train(self, batch: Batch, weights: Tensor) -> Tensor:
        """One optimizer step. The gradient of the mean loss with respect to ``weights``."""

    @abstractmethod
    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        """One optimizer step on the mean loss and a penalty of its rows' gradients, through autograd."""

    @abstractmethod
    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        """The gradient (T, B, c) of every row's loss with respect to its inputs; nothing changes."""

    @abstractmethod
    def first_layer(self) -> Tensor:
        """The weights (T, h, c) of the first layer themselves; an error where there is no such layer."""

    @abstractmethod
    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        """The gradient (T, h, c) of the mean loss with respect to ``weights`` times the first layer's own.

        Of a column with weight 0 it is what the layer would learn of it from zero on.
        """

    @abstractmethod
    def last_loss(self, batch: Batch) -> Tensor:
        """The mean loss (T,) that the batch just trained on had before its step."""

    @abstractmethod
    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        """The mean loss (T,) with nothing learnt and nothing changed."""

    def shrink(self, factors: Tensor) -> None:
        """Scale what the first layer holds of each column by (T, c), where there is such a layer."""
        return  # a module of unknown make is left alone

    def losses_without(self, batch: Batch, weights: Tensor, columns: Tensor, live: Tensor) -> Tensor:
        """The mean loss (T, m) with each of m sets of columns silenced.

        ``columns`` (T, m, p) are padded to a common p and ``live`` is 0 on the padding.
        """
        losses = []
        for i in range(columns.shape[1]):
            silent = torch.zeros_like(weights).scatter_reduce(1, columns[:, i], live[:, i], "amax")
            losses.append(self.loss(batch, weights * (1 - silent)))
        return torch.stack(losses, 1)

    @abstractmethod
    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        """Outputs (T, B, o), with nothing changed."""

    @abstractmethod
    def restart(self) -> None:
        """Fresh weights and a fresh optimizer."""

    @abstractmethod
    def set_rate(self, factor: float) -> None:
        """Scale the learning rate the body was made with."""


def weighted_mean(rows: Tensor, w: Tensor | None) -> Tensor:
    """Weighted mean over the batch; row weights average 1 over the training rows."""
    return (rows if w is None else rows * w).mean(-1)
