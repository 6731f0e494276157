"""Continuous values as a few integer codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]


def bin_values(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> Codes:
    """The bin of each value, in bins of equal frequency; up to ``bins`` distinct values get a bin each.

    A value belongs to the bin of the middle of its share of the rows. A frequent value, such as the zeros of counts
    or pixels, thus has a bin of its own, even if it is the smallest or the largest.
    """
    return np.searchsorted(bin_edges(values, bins, weights), values, side="right")


def bin_edges(values: NDArray[Any], bins: int, weights: NDArray[Any] | None = None) -> NDArray[Any]:
    """The smallest value of every bin but the first."""
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
        bin_of = np.floor(bins * middle / share.sum())
        edges = edges[np.diff(bin_of) > 0]
    return edges


def join_codes(codes: Codes, others: Codes) -> Codes:
    """One code per pair of codes that occurs."""
    pairs = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)[1]
    return np.asarray(pairs, dtype=np.intp).reshape(-1)
