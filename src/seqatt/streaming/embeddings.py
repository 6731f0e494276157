"""Embedding tables of categories, one per embedding width; a step updates only the rows it looked up.

The optimizer is row-wise Adagrad (one accumulator per row, as in recommender systems), so that the cost of a
step depends on the batch and not on the size of the tables. The gradients of a row are summed in the order of
the batch, which makes the sum reproducible. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.data.files.columns import CategoricalColumn

WIDTHS = ((10, 2), (100, 4), (10_000, 8))  # (largest number of codes, width)
MAX_WIDTH = 16  # width for more codes than that
EMBEDDING_LR = 0.1  # learning rate of Adagrad
INITIAL_SCALE = 0.1  # approximate initial norm of an embedding: rarely seen values stay close to zero
INITIAL_SQUARE = 0.01  # initial sum of squared gradients: keeps the first steps of a value small


def embedding_width(category: CategoricalColumn, requested: int | Mapping[str, int] | None) -> int:
    """The option, for all features or by name; by default it follows the number of codes."""
    width = requested.get(category.name) if isinstance(requested, Mapping) else requested
    if width is not None:
        return int(width)
    return next((width for max_size, width in WIDTHS if category.size <= max_size), MAX_WIDTH)


class EmbeddingTable:
    """The embeddings of all features with one width, stacked: ``values`` (rows, width).

    ``positions`` are the features' columns in the codes (B, m), ``sizes`` their numbers of codes.
    """

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
        values = torch.randn(sum(sizes), width, generator=generator) * (INITIAL_SCALE / width**0.5)
        self.values = values.to(device)
        self.squares = torch.full((sum(sizes),), INITIAL_SQUARE, device=device)
        self.lr = torch.tensor(EMBEDDING_LR, device=device)
        self._rows: Tensor = torch.empty(0, dtype=torch.int32)

    def lookup(self, codes: Tensor) -> Tensor:
        """The embeddings (B, columns) of codes (B, m); their rows are remembered for ``collect``."""
        self._rows = codes.index_select(1, self.positions).add_(self.starts).view(-1)
        embeddings: Tensor = self.values.index_select(0, self._rows)
        return embeddings.view(len(codes), self.columns)

    def collect(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        """The distinct rows looked up last, and the sum of the gradients (B, columns) of each."""
        rows, sums = self.merge(self._rows, grad.reshape(-1, self.width))
        # The loss is a mean over the batch; times B, a gradient does not depend on the number of other rows.
        return rows, sums.mul_(len(grad))

    def merge(self, rows: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """The distinct among rows (n,), and the sum of the gradients (n, width) of each."""
        distinct, order, starts = _sort_distinct(rows) if grads.device.type == "cpu" else _sort_padded(rows)
        return distinct, F.embedding_bag(order, grads, starts, mode="sum")

    def apply_gradients(self, rows: Tensor, sums: Tensor) -> None:
        """One step of Adagrad on these rows; only rows with zero gradients may occur twice."""
        self.squares.index_add_(0, rows, sums.square().mean(1))
        step_size = self.lr / self.squares.index_select(0, rows).sqrt()
        self.values.index_add_(0, rows, sums * -step_size.unsqueeze(1))


def _sort_distinct(looked_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows, the lookups sorted by row, and where those of each row start."""
    keys = np.sort((looked_up.numpy().astype(np.int64) << 32) | np.arange(len(looked_up)))
    rows = keys >> 32
    new = np.ones(len(rows), dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    order = keys & 0xFFFFFFFF
    return torch.from_numpy(rows[starts]), torch.from_numpy(order), torch.from_numpy(starts)


def _sort_padded(looked_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same with fixed shapes, for CUDA graphs: padded to one row per lookup with row 0 and empty sums."""
    count = len(looked_up)
    rows, order = torch.sort(looked_up, stable=True)
    new = torch.ones_like(rows, dtype=torch.bool)
    torch.ne(rows[1:], rows[:-1], out=new[1:])
    slot = torch.where(new, new.cumsum(0) - 1, count)  # repeated rows go to the last slot, which is dropped
    numbers = torch.arange(count, device=rows.device)
    starts = torch.full((count + 1,), count, device=rows.device).scatter_(0, slot, numbers)
    distinct = torch.zeros_like(starts).scatter_(0, slot, rows.long())
    return distinct[:-1], order, starts[:-1]


def make_embedding_tables(
    categories: Sequence[CategoricalColumn],
    requested: int | Mapping[str, int] | None,
    generator: torch.Generator,
    device: torch.device,
) -> list[EmbeddingTable]:
    """One table per width, narrowest first."""
    widths = [embedding_width(category, requested) for category in categories]
    return [
        EmbeddingTable(positions, [categories[p].size for p in positions], width, generator, device)
        for width in sorted(set(widths))
        for positions in [[p for p, w in enumerate(widths) if w == width]]
    ]
