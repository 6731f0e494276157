"""The Gram matrix of numbers and one-hot encoded categories, without materialising the one-hot columns.

A row has at most one 1 in the columns of a category. So the product of two categories is a table of joint
counts, and that of a category and a number is the sum of the number per value. The cost per row is quadratic in
the number of features, not in the number of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class CategoryProducts(NamedTuple):
    """Total weight, weighted means (c,) and centred products (c, c), upper triangle only.

    The columns are the numbers, then one per value of each category, then the targets.
    """

    weight: float
    mean: Floats
    products: Floats


def category_products(
    numbers: NDArray[np.floating[Any]],
    indicators: list[NDArray[np.int64]],
    widths: list[int],
    targets: Floats,
    weights: Floats,
) -> CategoryProducts:
    """The products of n rows with numbers (n, p), targets (n, t) and weights (n,).

    Per category, ``indicators`` (n,) is the column with the 1, from 0 to its width - 1; -1 means none.
    """
    weight = float(weights.sum())
    dense = np.concatenate([numbers, targets], axis=1, dtype=np.float64)
    mean = weights @ dense / weight
    dense -= mean
    weighted = dense * weights[:, None]
    values = [
        np.where(indicator < 0, width, indicator) for indicator, width in zip(indicators, widths, strict=True)
    ]
    counts, sums = _sums_by_value(values, widths, weighted, weights)
    p, d = numbers.shape[1], numbers.shape[1] + sum(widths)
    products = np.empty((d + targets.shape[1],) * 2)
    square = dense.T @ weighted
    products[:p, :p], products[:p, d:], products[d:, d:] = square[:p, :p], square[:p, p:], square[p:, p:]
    products[:p, p:d], products[p:d, d:] = sums[:, :p].T, sums[:, p:]
    products[p:d, p:d] = _joint_counts(values, widths, counts, weights)
    products[p:d, p:d] -= np.outer(counts, counts / weight)
    products[d:, :d] = products[p:d, :p] = 0.0  # below the diagonal
    return CategoryProducts(weight, np.concatenate([mean[:p], counts / weight, mean[p:]]), products)


def _sums_by_value(
    values: list[NDArray[np.int64]], widths: list[int], weighted: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """The total weight of each value, and the sums of the weighted columns over the rows that have it."""
    if not values:
        return np.zeros(0), np.zeros((0, weighted.shape[1]))
    n, widened = len(weights), np.array(widths) + 1  # one more column, for values without one
    starts = np.cumsum([0, *widened[:-1]], dtype=np.int64)
    columns = (np.stack(values, axis=1) + starts).ravel()
    one_hot = sp.csr_array(
        (np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, len(values))),
        shape=(n, widened.sum()),
    )
    sums = one_hot.T @ np.concatenate([weights[:, None], weighted], axis=1)
    sums = np.delete(sums, starts + widened - 1, axis=0)
    return sums[:, 0], sums[:, 1:]


def _joint_counts(
    values: list[NDArray[np.int64]], widths: list[int], counts: Floats, weights: Floats
) -> Floats:
    """The total weight of the rows that have both of two values: the upper triangle of blocks."""
    out = np.zeros((len(counts), len(counts)))
    row_weights = None if (weights == weights[0]).all() else weights  # counting without weights is faster
    starts = np.cumsum([0, *widths])
    for u, first in enumerate(values):
        block = slice(starts[u], starts[u + 1])
        np.fill_diagonal(out[block, block], counts[block])
        for v in range(u + 1, len(values)):
            shape = widths[u] + 1, widths[v] + 1
            cells = first * shape[1] + values[v]
            joint = np.bincount(cells, row_weights, shape[0] * shape[1]).reshape(shape)[:-1, :-1]
            out[block, starts[v] : starts[v + 1]] = joint if row_weights is not None else joint * weights[0]
    return out
