"""From a score for every feature to a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqatt.selection import Step, Trace
from seqatt.source import Source

Floats = NDArray[np.float64]


def rank(source: Source, scores: Floats, k: int, seconds: float) -> Trace:
    """The k best; equals go by their place in the table, constant features last."""
    ranked = np.lexsort((np.arange(source.features), -scores, source.constant)).tolist()
    taken = ranked[:k]
    return Trace(taken, ranked[k:], [Step(1, "all", None, seconds, taken, scores=scores)])


def most_of_columns(owner: NDArray[np.int64], scores: Floats, features: int) -> Floats:
    """A feature is worth what the best of its columns is: many columns are no merit."""
    out = np.zeros(features)
    np.maximum.at(out, owner, scores)
    return out


def sum_of_columns(owner: NDArray[np.int64], importances: Floats, features: int) -> Floats:
    """Shares of one total add up."""
    return np.bincount(owner, importances, features).astype(np.float64)
