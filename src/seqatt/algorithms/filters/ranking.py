"""From one score per column to one per feature, and from scores to a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData
from seqatt.trace import PhaseRecord, Trace

Floats = NDArray[np.float64]


def rank_features(data: TableData, scores: Floats, k: int, seconds: float) -> Trace:
    """Select the k features with the highest scores; ties go to the lowest index, constant features come last."""
    ranked = np.lexsort((np.arange(data.features), -scores, data.constant)).tolist()
    taken = ranked[:k]
    return Trace(taken, ranked[k:], [PhaseRecord(1, "all", None, seconds, taken, scores=scores)])


def max_over_columns(feature_of: NDArray[np.int64], scores: Floats, features: int) -> Floats:
    """The highest score among the columns of each feature: for scores of single columns."""
    out = np.zeros(features)
    np.maximum.at(out, feature_of, scores)
    return out


def sum_over_columns(feature_of: NDArray[np.int64], importances: Floats, features: int) -> Floats:
    """The sum over the columns of each feature: for importances that are shares of one total."""
    return np.bincount(feature_of, importances, features).astype(np.float64)
