"""Embeddings of categories: tables of several widths, of which a step touches a few rows.

Rows learn by Adagrad with one accumulator each (as recommender systems do), so that a step costs what its
batch costs, whatever the size of the tables. A row's gradients are summed in the order of the batch, so the
sum is the same every time. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.data.files.columns import CategoricalColumn

WIDTHS = ((10, 2), (100, 4), (10_000, 8))  # up to so many places, so wide
WIDEST = 16
RATE = 0.1
SPREAD = 0.1  # of a feature's columns together at the start: a value seen rarely stays close to zero
FIRST = 0.01  # what an accumulator starts with, in gradients of a row's loss: single rows say little


def embedding_width(category: CategoricalColumn, told: int | Mapping[str, int] | None) -> int:
    """What the user says, else by cardinality."""
    asked = told.get(category.name) if isinstance(told, Mapping) else told
    if asked is not None:
        return int(asked)
    return next((width for most, width in WIDTHS if category.size <= most), WIDEST)


class EmbeddingTable:
    """The embeddings of all features of one width, one below the other."""

    def __init__(
        self,
        positions: list[int],
        sizes: list[int],
        width: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.positions = torch.tensor(positions, device=device)
        self.width = width
        self.sizes = sizes
        self.columns = len(positions) * width
        starts = np.cumsum([0, *sizes[:-1]])
        self.starts = torch.tensor(starts, dtype=torch.int32, device=device)
        values = torch.randn(sum(sizes), width, generator=generator) * (SPREAD / width**0.5)
        self.values = values.to(device)
        self.squares = torch.full((sum(sizes),), FIRST, device=device)
        self.rate = torch.tensor(RATE, device=device)
        self._rows: Tensor = torch.empty(0, dtype=torch.int32)

    def look_up(self, places: Tensor) -> Tensor:
        """The embeddings (B, columns) of places (B, m), which ``collect`` then knows."""
        self._rows = places.index_select(1, self.positions).add_(self.starts).view(-1)
        found: Tensor = self.values.index_select(0, self._rows)
        return found.view(len(places), self.columns)

    def collect(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Each row that was looked up, once, and the sum of its gradients among all (B, columns)."""
        rows, sums = self.merge(self._rows, grad.reshape(-1, self.width))
        # The loss is a mean: times the batch, a gradient is what its rows say, however many others there are.
        return rows, sums.mul_(len(grad))

    def merge(self, rows: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """Each of these rows (n,) once, and the sum of its gradients among all (n, width)."""
        distinct, order, starts = _on_cpu(rows) if grads.device.type == "cpu" else _at_once(rows)
        return distinct, F.embedding_bag(order, grads, starts, mode="sum")

    def learn(self, rows: Tensor, sums: Tensor) -> None:
        """A step for rows, of which only those without a gradient may be there twice."""
        self.squares.index_add_(0, rows, sums.square().mean(1))
        pace = self.rate / self.squares.index_select(0, rows).sqrt()
        self.values.index_add_(0, rows, sums * -pace.unsqueeze(1))


def _on_cpu(looked_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different rows, the lookups in their order, and where in it each row's begin."""
    keys = np.sort((looked_up.numpy().astype(np.int64) << 32) | np.arange(len(looked_up)))
    rows = keys >> 32
    new = np.ones(len(rows), dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    order = keys & 0xFFFFFFFF
    return torch.from_numpy(rows[starts]), torch.from_numpy(order), torch.from_numpy(starts)


def _at_once(looked_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same with as many rows as lookups: those that are over are row 0, and nothing is theirs to sum."""
    count = len(looked_up)
    rows, order = torch.sort(looked_up, stable=True)
    new = torch.ones_like(rows, dtype=torch.bool)
    torch.ne(rows[1:], rows[:-1], out=new[1:])
    slot = torch.where(new, new.cumsum(0) - 1, count)  # what is not new goes where nobody looks
    numbers = torch.arange(count, device=rows.device)
    starts = torch.full((count + 1,), count, device=rows.device).scatter_(0, slot, numbers)
    touched = torch.zeros_like(starts).scatter_(0, slot, rows.long())
    return touched[:-1], order, starts[:-1]


def make_embedding_tables(
    categories: Sequence[CategoricalColumn],
    told: int | Mapping[str, int] | None,
    generator: torch.Generator,
    device: torch.device,
) -> list[EmbeddingTable]:
    widths = [embedding_width(category, told) for category in categories]
    return [
        EmbeddingTable(positions, [categories[p].size for p in positions], width, generator, device)
        for width in sorted(set(widths))
        for positions in [[p for p, w in enumerate(widths) if w == width]]
    ]
