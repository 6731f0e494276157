"""Sums gradients over ranks, so that every rank takes the same step.

Of the embedding tables only the rows that a rank looked up are sent, in one message of fixed size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.distributed.process_group import ProcessGroup
from seqatt.streaming.embeddings import EmbeddingTable
from seqatt.streaming.network import EmbeddingMLP


class RankMeans:
    """Turns means over the rows of this rank into means over the ``total`` rows of all ranks."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group, self.total = group, 1

    def allreduce(self, means: Sequence[Tensor], rows: int) -> None:
        """In place; ``rows`` is the number on this rank. Without rows a mean is NaN and does not count."""
        if self._group.size == 1:
            return
        for mean in means:
            if rows:
                mean.mul_(rows / self.total)
            else:
                mean.zero_()
        self._group.allreduce(means)


@torch.no_grad()
def distributed_train_step(
    group: ProcessGroup,
    network: EmbeddingMLP,
    batch: tuple[Tensor, Tensor, Tensor, Tensor],
    total: int,
    max_rows: int,
) -> tuple[Tensor, Tensor]:
    """``EmbeddingMLP.train_step`` over the ``total`` rows of all ranks, of which each has at most ``max_rows``."""
    rows = len(batch[0])
    loss, grad = network.differentiate(*batch) if rows else network.zero_gradients()
    _allreduce_gradients(group, network, [loss, grad], rows / total, max_rows)
    network.apply_gradients()
    return loss, grad


def _allreduce_gradients(
    group: ProcessGroup, network: EmbeddingMLP, results: Sequence[Tensor], share: float, max_rows: int
) -> None:
    """In place: gradients and ``results`` are means over this rank's ``share`` of the rows, then over all rows."""
    means = [*network.grads, *results]
    for mean in means:
        mean.mul_(share)
    group.allreduce(means)
    capacities = [_capacity(table, max_rows) for table in network.tables]
    if not capacities:
        return
    flat = torch.cat(
        [
            _pack(rows, sums, capacity)
            for (rows, sums), capacity in zip(network.table_grads, capacities, strict=True)
        ]
    )
    sizes = [capacity * (1 + table.width) for table, capacity in zip(network.tables, capacities, strict=True)]
    messages = torch.split(group.allgather(flat), sizes, 1)
    network.table_grads = [
        table.merge(*_unpack(message, table.width, capacity))
        for table, message, capacity in zip(network.tables, messages, capacities, strict=True)
    ]


def _capacity(table: EmbeddingTable, max_rows: int) -> int:
    """The largest number of different table rows that one rank can look up in a step."""
    return sum(min(max_rows, size) for size in table.sizes)


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
