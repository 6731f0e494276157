"""Continuous values as a few codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]


def bin_values(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> Codes:
    """Equal-frequency bins, in the order of the values; up to ``bins`` distinct values stay as they are.

    A value goes where the middle of its own share of the rows lies, so that one frequent value (the zeros of
    counts or pixels) has a bin of its own, at whichever end it is.
    """
    return np.searchsorted(bin_edges(values, bins, weights), values, side="right")


def bin_edges(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> NDArray[Any]:
    """The least value of every bin but the first."""
    ordered = np.sort(values)
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    distinct = ordered[first]
    edges = distinct[1:]
    if len(distinct) > bins:
        if weights is None:
            share = np.diff(np.r_[first, len(values)]).astype(np.float64)
        else:
            share = np.bincount(np.searchsorted(distinct, values), weights)
        middle = np.cumsum(share) - share / 2
        level = np.floor(bins * middle / share.sum())
        edges = edges[np.diff(level) > 0]
    return edges


def join(codes: Codes, others: Codes) -> Codes:
    """One code for each pair that occurs."""
    pairs = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)[1]
    return np.asarray(pairs, dtype=np.intp).reshape(-1)
