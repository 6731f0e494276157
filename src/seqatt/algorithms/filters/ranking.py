"""From a score for every feature to a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData
from seqatt.selection import PhaseRecord, Trace

Floats = NDArray[np.float64]


def rank_features(data: TableData, scores: Floats, k: int, seconds: float) -> Trace:
    """The k best; equals go by their place in the table, constant features last."""
    ranked = np.lexsort((np.arange(data.features), -scores, data.constant)).tolist()
    taken = ranked[:k]
    return Trace(taken, ranked[k:], [PhaseRecord(1, "all", None, seconds, taken, scores=scores)])


def max_over_columns(feature_of: NDArray[np.int64], scores: Floats, features: int) -> Floats:
    """A feature is worth what the best of its columns is: many columns are no merit."""
    out = np.zeros(features)
    np.maximum.at(out, feature_of, scores)
    return out


def sum_over_columns(feature_of: NDArray[np.int64], importances: Floats, features: int) -> Floats:
    """Shares of one total add up."""
    return np.bincount(feature_of, importances, features).astype(np.float64)
