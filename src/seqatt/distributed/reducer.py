"""Averages gradients over ranks, so that every rank takes the same step.

Only those rows of the embedding tables that a rank looked up are sent, in one message of fixed size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.distributed.process_group import ProcessGroup
from seqatt.training.models.embeddings import Embeddings
from seqatt.training.reducer import Reducer


class RankReducer(Reducer):
    """The reducer of several ranks. ``max_rows`` is the largest number of rows per step on one rank."""

    def __init__(self, ranks: ProcessGroup) -> None:
        self._ranks = ranks
        self.ranks = ranks.size
        self.max_rows = 0

    def average(self, means: Sequence[Tensor], rows: int) -> None:
        for mean in means:
            if rows:
                mean.mul_(rows / self.total)
            else:
                mean.zero_()  # a mean over no rows is NaN
        self._ranks.allreduce(means)

    def average_equally(self, values: Sequence[Tensor]) -> None:
        self._ranks.allreduce(values)
        for value in values:
            value.div_(self.ranks)

    def merge_embedding_gradients(self, embeddings: Embeddings, rows: int) -> None:
        # A rank's gradients are those of the mean over its rows, times their number: the sum over ranks is right.
        capacity = embeddings.models * sum(min(self.max_rows, size) for size in embeddings.sizes)
        message = self._ranks.allgather(_pack(*embeddings.grads, capacity))
        embeddings.grads = embeddings.merge(*_unpack(message, embeddings.width, capacity))


def _pack(rows: Tensor, sums: Tensor, capacity: int) -> Tensor:
    """Row numbers (n,) and gradient sums (n, width) in one flat tensor, padded with row 0 and zero gradients."""
    flat = sums.new_zeros(capacity * (1 + sums.shape[1]))
    used = min(len(rows), capacity)
    flat[:used] = rows[:used].to(torch.int32).view(torch.float32)
    flat[capacity : capacity + used * sums.shape[1]] = sums[:used].reshape(-1)
    return flat


def _unpack(message: Tensor, width: int, capacity: int) -> tuple[Tensor, Tensor]:
    """Row numbers and gradient sums of all ranks from (ranks, capacity * (1 + width))."""
    rows = message[:, :capacity].contiguous().view(torch.int32).reshape(-1)
    return rows, message[:, capacity:].reshape(-1, width)
