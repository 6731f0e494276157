"""Embeddings of categories: tables of several widths, of which a step touches a few rows.

Rows learn by Adagrad with one accumulator each (as recommender systems do), so that a step costs what its
batch costs, whatever the size of the tables. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from seqatt.stream.columns import Category

WIDTHS = ((10, 2), (100, 4), (10_000, 8))  # up to so many places, so wide
WIDEST = 16
RATE = 0.1
SPREAD = 0.1  # of a feature's columns together at the start: a value seen rarely stays close to zero
FIRST = 0.01  # what an accumulator starts with, in gradients of a row's loss: single rows say little


def width_of(category: Category, told: int | Mapping[str, int] | None) -> int:
    """What the user says, else by cardinality."""
    asked = told.get(category.name) if isinstance(told, Mapping) else told
    if asked is not None:
        return int(asked)
    return next((width for most, width in WIDTHS if category.size <= most), WIDEST)


class Table:
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
        starts = np.cumsum([0, *sizes[:-1]])
        self.starts = torch.tensor(starts, device=device)
        values = torch.randn(sum(sizes), width, generator=generator) * (SPREAD / width**0.5)
        self.values = values.to(device)
        self.squares = torch.full((sum(sizes),), FIRST, device=device)
        self.pace = 1.0  # of the rate, as training cools down
        self._rows = torch.empty(0, dtype=torch.int64)
        self._taken = torch.empty(0)

    def look_up(self, places: Tensor) -> Tensor:
        self._rows = (places.index_select(1, self.positions) + self.starts).reshape(-1)
        self._taken = self.values.index_select(0, self._rows).requires_grad_()
        return self._taken.view(len(places), -1)

    @torch.no_grad()
    def learn(self) -> None:
        """A step for every row that was looked up, from the sum of its gradients in the batch."""
        assert self._taken.grad is not None
        rows, order = torch.sort(self._rows)
        new = torch.ones_like(rows)
        new[1:] = rows[1:] != rows[:-1]
        segment = new.cumsum(0) - 1
        # The loss is a mean: times the batch, a gradient is what its rows say, however many others there are.
        grads = self._taken.grad[order] * (len(rows) / len(self.positions))
        sums = torch.zeros_like(self._taken).index_add_(0, segment, grads)
        # As many places as lookups, whatever the number of different rows: what is over adds zeros.
        touched = torch.zeros_like(rows).index_copy_(0, segment, rows)
        self.squares.index_add_(0, touched, sums.square().mean(1))
        pace = self.pace * RATE / self.squares.index_select(0, touched).sqrt()
        self.values.index_add_(0, touched, sums * -pace.unsqueeze(1))


def make_tables(
    categories: Sequence[Category],
    told: int | Mapping[str, int] | None,
    generator: torch.Generator,
    device: torch.device,
) -> list[Table]:
    widths = [width_of(category, told) for category in categories]
    return [
        Table(positions, [categories[p].size for p in positions], width, generator, device)
        for width in sorted(set(widths))
        for positions in [[p for p, w in enumerate(widths) if w == width]]
    ]
