"""Gradients of all ranks added up, before everyone takes the same step.

Of the tables of embeddings only the rows that someone looked up travel, in one message of a fixed size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqatt.distributed.process_group import ProcessGroup
from seqatt.streaming.embeddings import EmbeddingTable
from seqatt.streaming.network import EmbeddingMLP


class RankMeans:
    """Makes means over my rows of a step those over all ranks' rows, which are ``total``."""

    def __init__(self, team: ProcessGroup) -> None:
        self._team, self.total = team, 1

    def share(self, means: Sequence[Tensor], rows: int) -> None:
        """In place. Of no rows a mean is not a number, and counts for nothing."""
        if self._team.size == 1:
            return
        for mean in means:
            if rows:
                mean.mul_(rows / self.total)
            else:
                mean.zero_()
        self._team.add_up(means)


@torch.no_grad()
def distributed_train_step(
    team: ProcessGroup,
    network: EmbeddingMLP,
    batch: tuple[Tensor, Tensor, Tensor, Tensor],
    total: int,
    most: int,
) -> tuple[Tensor, Tensor]:
    """What ``EmbeddingMLP.train`` does, for my rows among ``total``, of which a rank has at ``most`` so many."""
    rows = len(batch[0])
    loss, grad = network.differentiate(*batch) if rows else network.zero_gradients()
    _exchange(team, network, [loss, grad], rows / total, most)
    network.learn()
    return loss, grad


def _exchange(
    team: ProcessGroup, network: EmbeddingMLP, results: Sequence[Tensor], share: float, most: int
) -> None:
    """In place: gradients and ``results``, which are means over my ``share`` of the rows."""
    means = [*network.grads, *results]
    for mean in means:
        mean.mul_(share)
    team.add_up(means)
    rooms = [_room(table, most) for table in network.tables]
    if not rooms:
        return
    flat = torch.cat(
        [_pack(rows, sums, room) for (rows, sums), room in zip(network.moved, rooms, strict=True)]
    )
    sizes = [room * (1 + table.width) for table, room in zip(network.tables, rooms, strict=True)]
    parts = torch.split(team.gather(flat), sizes, 1)
    network.moved = [
        table.merge(*_unpack(part, table.width, room))
        for table, part, room in zip(network.tables, parts, rooms, strict=True)
    ]


def _room(table: EmbeddingTable, most: int) -> int:
    """How many different rows of a table one rank can look up in a step."""
    return sum(min(most, size) for size in table.sizes)


def _pack(rows: Tensor, sums: Tensor, room: int) -> Tensor:
    """Rows and their sums as one list of numbers, filled up with row 0 and nothing to add to it."""
    flat = sums.new_zeros(room * (1 + sums.shape[1]))
    used = min(len(rows), room)
    flat[:used] = rows[:used].to(torch.int32).view(torch.float32)
    flat[room : room + used * sums.shape[1]] = sums[:used].reshape(-1)
    return flat


def _unpack(part: Tensor, width: int, room: int) -> tuple[Tensor, Tensor]:
    rows = part[:, :room].contiguous().view(torch.int32).reshape(-1)
    return rows, part[:, room:].reshape(-1, width)
