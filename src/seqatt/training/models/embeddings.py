"""Embeddings of categories; a step updates only the rows of the table that it looked up.

The optimizer is row-wise Adagrad (one accumulator per row, as in recommender systems), so that the cost of a
step depends on the batch and not on the size of the tables. The gradients of a row are summed in the order of
the batch, which makes the sum reproducible. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

NARROW_CODES = 100  # codes of the largest category up to which embeddings are narrow
NARROW, WIDE = 4, 8  # widths of embeddings
EMBEDDING_LR = 0.1  # learning rate of Adagrad
INITIAL_SCALE = 0.1  # approximate initial norm of an embedding: rarely seen values stay close to zero
INITIAL_SQUARE = 0.01  # initial sum of squared gradients: keeps the first steps of a value small


def default_embedding_width(code_counts: Sequence[int]) -> int:
    """The width of all embeddings: categories of one width are looked up and updated together."""
    return NARROW if max(code_counts, default=0) <= NARROW_CODES else WIDE


class Embeddings:
    """The embeddings of m categories for T models, stacked in one table: ``values`` (T * codes, width).

    ``sizes`` are the numbers of codes of the categories.
    """

    def __init__(self, sizes: Sequence[int], width: int, models: int, device: torch.device) -> None:
        self.sizes, self.width, self.models = list(sizes), width, models
        self.columns = len(sizes) * width
        self._codes = sum(sizes)
        starts = np.cumsum([0, *sizes[:-1]]) + self._codes * np.arange(models)[:, None, None]
        self._starts = torch.tensor(starts, dtype=torch.int32, device=device)  # (T, 1, m)
        self.values = torch.zeros(models * self._codes, width, device=device)
        self.squares = torch.full((len(self.values),), INITIAL_SQUARE, device=device)
        self._all_rows = torch.arange(len(self.values), device=device)
        self.lr = torch.tensor(EMBEDDING_LR, device=device)
        self._looked_up = torch.empty(0, dtype=torch.int32)
        self.grads = self.values.new_empty(0).long(), self.values[:0]  # rows of the table and their gradients

    def reset_parameters(self, generators: Sequence[torch.Generator]) -> None:
        for values, generator in zip(torch.split(self.values, self._codes), generators, strict=True):
            drawn = torch.randn(self._codes, self.width, generator=generator)
            values.copy_(drawn * (INITIAL_SCALE / self.width**0.5))
        self.squares.fill_(INITIAL_SQUARE)

    def lookup(self, codes: Tensor) -> Tensor:
        """The embeddings (T, B, columns) of codes (T, B, m); their rows are remembered for ``collect``."""
        self._looked_up = (codes + self._starts).flatten()
        embeddings: Tensor = self.values.index_select(0, self._looked_up)
        return embeddings.view(*codes.shape[:2], self.columns)

    def collect(self, grad: Tensor) -> None:
        """Keep the distinct rows looked up last, and the sum of the gradients (T, B, columns) of each.

        On a CPU, small tables keep all their rows: to find the distinct ones would take longer.
        """
        flat = grad.reshape(-1, self.width)
        if grad.device.type == "cpu" and max(self.sizes, default=0) <= grad.shape[1]:
            rows, sums = self._all_rows, torch.zeros_like(self.values)
            sums.index_add_(0, self._looked_up.long(), flat)
        else:
            rows, sums = self.merge(self._looked_up, flat)
        # The loss is a mean over the batch; times B, a gradient does not depend on the number of other rows.
        self.grads = rows, sums.mul_(grad.shape[1])

    def collect_nothing(self) -> None:
        """``collect`` for a batch without rows."""
        self.grads = self._starts.flatten()[:0].long(), self.values[:0]

    def merge(self, rows: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """The distinct values of ``rows`` (n,), and the sum of the gradients (n, width) of each."""
        sort = (
            _sort_distinct if grads.device.type == "cpu" else partial(_sort_padded, padding=len(self.values))
        )
        distinct, order, starts = sort(rows)
        return distinct, self._sum_segments(grads, order, starts)

    def _sum_segments(self, grads: Tensor, order: Tensor, starts: Tensor) -> Tensor:
        """The sums of the gradients in the order ``order``, from each start to the next."""
        return F.embedding_bag(order, grads, starts, mode="sum")

    def step(self) -> None:
        """One step of Adagrad on the rows in ``grads``; only rows with zero gradients may occur twice."""
        rows, sums = self.grads
        if rows is self._all_rows:
            self.squares.add_(sums.square().mean(1))
            self.values.add_(sums * ((self.lr / self.squares.sqrt()).neg_().unsqueeze(1)))
            return
        self.squares.index_add_(0, rows, sums.square().mean(1))
        step_size = self.lr / self.squares.index_select(0, rows).sqrt()
        self.values.index_add_(0, rows, sums * -step_size.unsqueeze(1))

    def scale_learning_rate(self, factor: float) -> None:
        self.lr.fill_(EMBEDDING_LR * factor)

    def tables(self, model: int) -> list[Tensor]:
        """Copies of the embeddings (codes, width) of one model, one table per category."""
        values = self.values[model * self._codes : (model + 1) * self._codes]
        return [table.clone() for table in torch.split(values, self.sizes)]

    def named_state(self) -> Iterator[tuple[str, Tensor]]:
        yield "embeddings.values", self.values
        yield "embeddings.squares", self.squares


def _sort_distinct(looked_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows, the lookups sorted by row, and where those of each row start."""
    keys = np.sort((looked_up.numpy().astype(np.int64) << 32) | np.arange(len(looked_up)))
    rows = keys >> 32
    new = np.ones(len(rows), dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    order = keys & 0xFFFFFFFF
    return torch.from_numpy(rows[starts]), torch.from_numpy(order), torch.from_numpy(starts)


def _sort_padded(looked_up: Tensor, padding: int) -> tuple[Tensor, Tensor, Tensor]:
    """``_sort_distinct`` with fixed shapes, for CUDA graphs: padded to one row per lookup, with empty sums.

    The padding is every row below ``padding`` in turn: a GPU adds to different rows at once, but to one row one by one.
    """
    count = len(looked_up)
    rows, order = torch.sort(looked_up, stable=True)
    new = torch.ones_like(rows, dtype=torch.bool)
    torch.ne(rows[1:], rows[:-1], out=new[1:])
    slot = torch.where(new, new.cumsum(0) - 1, count)  # repeated rows go to the last slot, which is dropped
    numbers = torch.arange(count, device=rows.device)
    starts = torch.full((count + 1,), count, device=rows.device).scatter_(0, slot, numbers)
    distinct = torch.arange(count + 1, device=rows.device).remainder_(padding).scatter_(0, slot, rows.long())
    return distinct[:-1], order, starts[:-1]
