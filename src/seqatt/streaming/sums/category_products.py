"""Products of columns that are numbers or values of categories, without opening the categories.

A category is a block of columns of which a row has one 1 at most. Two such blocks multiply to counts of how
often their values meet, and a block and a number to sums of the number by value: a row costs the square of
the number of features, not that of the number of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class CategoryProducts(NamedTuple):
    """Weight, weighted means and products around them (the upper triangle): numbers, values, targets."""

    weight: float
    mean: Floats
    spread: Floats


def category_products(
    numbers: NDArray[np.floating[Any]],
    slots: list[NDArray[np.int64]],
    widths: list[int],
    targets: Floats,
    weights: Floats,
) -> CategoryProducts:
    """Of some rows; ``slots`` has a category's number of the value in each row, -1 where it has no column."""
    weight = float(weights.sum())
    dense = np.concatenate([numbers, targets], axis=1, dtype=np.float64)
    middle = weights @ dense / weight
    dense -= middle
    weighted = dense * weights[:, None]
    cells = [np.where(slot < 0, width, slot) for slot, width in zip(slots, widths, strict=True)]
    counts, sums = _by_value(cells, widths, weighted, weights)
    p, d = numbers.shape[1], numbers.shape[1] + sum(widths)
    spread = np.empty((d + targets.shape[1],) * 2)
    square = dense.T @ weighted
    spread[:p, :p], spread[:p, d:], spread[d:, d:] = square[:p, :p], square[:p, p:], square[p:, p:]
    spread[:p, p:d], spread[p:d, d:] = sums[:, :p].T, sums[:, p:]
    spread[p:d, p:d] = _meetings(cells, widths, counts, weights)
    spread[p:d, p:d] -= np.outer(counts, counts / weight)
    spread[d:, :d] = spread[p:d, :p] = 0.0  # below the triangle
    return CategoryProducts(weight, np.concatenate([middle[:p], counts / weight, middle[p:]]), spread)


def _by_value(
    cells: list[NDArray[np.int64]], widths: list[int], weighted: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """The weight of each value, and the sums of other columns over the rows that have it."""
    if not cells:
        return np.zeros(0), np.zeros((0, weighted.shape[1]))
    n, wide = len(weights), np.array(widths) + 1  # one more, for what has no column
    starts = np.cumsum([0, *wide[:-1]], dtype=np.int64)
    places = (np.stack(cells, axis=1) + starts).ravel()
    hot = sp.csr_array(
        (np.ones(len(places)), places, np.arange(0, len(places) + 1, len(cells))), shape=(n, wide.sum())
    )
    found = hot.T @ np.concatenate([weights[:, None], weighted], axis=1)
    found = np.delete(found, starts + wide - 1, axis=0)
    return found[:, 0], found[:, 1:]


def _meetings(cells: list[NDArray[np.int64]], widths: list[int], counts: Floats, weights: Floats) -> Floats:
    """How often, by weight, two values are in a row: the upper triangle of blocks."""
    out = np.zeros((len(counts), len(counts)))
    even = None if (weights == weights[0]).all() else weights
    starts = np.cumsum([0, *widths])
    for u, mine in enumerate(cells):
        here = slice(starts[u], starts[u + 1])
        np.fill_diagonal(out[here, here], counts[here])
        for v in range(u + 1, len(cells)):
            shape = widths[u] + 1, widths[v] + 1
            met = np.bincount(mine * shape[1] + cells[v], even, shape[0] * shape[1]).reshape(shape)
            met = met[:-1, :-1] if even is not None else met[:-1, :-1] * weights[0]
            out[here, starts[v] : starts[v + 1]] = met
    return out
